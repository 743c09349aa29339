// abi: threads=7
// Clean-up handlers of C, compiled without exceptions: jump buffers and no tables (pthread_cleanup_push(3)). In reverse
// order, where the thread is cancelled and where it calls pthread_exit; popped ones run if asked to, once; they run also
// for a loop that is cancelled anywhere.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      dprintf(2, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                          \
    }                                                                    \
  } while (0)

static char order[64];
static atomic_int entered;

static void note(void* c) { strcat(order, c); }

static void deeper(void) {
  pthread_cleanup_push(note, "1");
  entered = 1;
  sleep(1000);
  pthread_cleanup_pop(0);
}

static void* cancelled(void* unused) {
  (void)unused;
  pthread_cleanup_push(note, "4");
  pthread_cleanup_push(note, "x");
  pthread_cleanup_pop(0);
  pthread_cleanup_push(note, "0");
  pthread_cleanup_pop(1);
  pthread_cleanup_push(note, "3");
  pthread_cleanup_push(note, "2");
  deeper();
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return NULL;
}

static void* exits(void* value) {
  pthread_cleanup_push(note, "b");
  pthread_cleanup_push(note, "a");
  pthread_exit(value);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return NULL;
}

static void* returns(void* value) {
  pthread_cleanup_push(note, "r");
  pthread_cleanup_pop(1);
  return value;
}

static void* computes(void* unused) {
  (void)unused;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  pthread_cleanup_push(note, "2");
  pthread_cleanup_push(note, "1");
  entered = 1;
  for (;;) __asm__ volatile("");
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return NULL;
}

static void* run(void* (*body)(void*), void* argument, int cancel, const char* expected) {
  pthread_t thread;
  void* result = NULL;
  order[0] = 0;
  entered = 0;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0);
  if (cancel) {
    const struct timespec moment = {0, 500000};
    while (!entered) nanosleep(&moment, NULL);
    CHECK(pthread_cancel(thread) == 0);
  }
  CHECK(pthread_join(thread, &result) == 0);
  if (strcmp(order, expected)) dprintf(2, "handlers: '%s'\n", order);
  CHECK(strcmp(order, expected) == 0);
  return result;
}

int main(void) {
  CHECK(run(cancelled, NULL, 1, "01234") == PTHREAD_CANCELED);
  CHECK(run(exits, order, 0, "ab") == order);
  CHECK(run(returns, order, 0, "r") == order);
  for (int i = 0; i < 4; ++i) CHECK(run(computes, NULL, 1, "12") == PTHREAD_CANCELED);
  return 0;
}

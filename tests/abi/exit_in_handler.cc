// abi: threads=9
// pthread_exit in a signal handler ends the thread that the signal interrupted, wherever it was: glibc unwinds from the
// handler. It was computing, waiting for a condition (its mutex is held again in the clean-up), a semaphore, a thread,
// data, time or a signal. Its value is seen by the one who joins it.
#include <semaphore.h>

#include "cancel.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int ends[2], value;
static std::atomic<int> cleaned{0};
static pthread_t target;
static std::atomic<bool> waiting, leave{false};

static void handler(int) { pthread_exit(&value); }

static void expect_exit(const char* where, void (*body)(), bool unwinds = true) {
  waiting = false;
  const int before = cleaned;
  const pthread_t thread = start_counted(body, &cleaned);
  while (!waiting) sched_yield();
  settle();
  kill_perhaps_ended(thread, SIGUSR1);
  if (join(thread) != &value) FAIL("another value from %s", where);
  if (unwinds && cleaned != before + 1) FAIL("no clean-up in %s", where);
}

// The signal may come before the wait. Functions that it may interrupt have nothing to destroy: C++'s tables know calls
// only.
__attribute__((noinline)) static void keep_waiting() {
  waiting = true;
  for (;;) pthread_cond_wait(&cond, &mutex);
}

int main() {
  install(SIGUSR1, handler);
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  CHECK_EQ(pipe(ends), 0);
  pthread_mutexattr_t kind;
  CHECK_EQ(pthread_mutexattr_init(&kind), 0);
  CHECK_EQ(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK), 0);
  CHECK_EQ(pthread_mutex_init(&mutex, &kind), 0);
  expect_exit(
      "a loop",
      [] {
        waiting = true;
        for (;;) asm volatile("");
      },
      false);
  expect_exit("pthread_cond_wait", [] {
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    pthread_cleanup_push(release_held, &mutex);
    keep_waiting();
    pthread_cleanup_pop(0);
  });
  CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  expect_exit("sem_wait", [] { waiting = true, sem_wait(&sem); });
  expect_exit("read", [] {
    char byte;
    waiting = true;
    read(ends[0], &byte, 1);
  });
  expect_exit("sleep", [] { waiting = true, sleep(1000); });
  expect_exit("pause", [] { waiting = true, pause(); });
  expect_exit("raise", [] {
    waiting = true;
    raise(SIGUSR1);  // here, or by the other one's signal before
    FAIL("raise has returned");
  });
  target = start([] {
    while (!leave) nap(kMs);
  });
  expect_exit("pthread_join", [] { waiting = true, pthread_join(target, nullptr); });
  leave = true;
  CHECK_EQ(pthread_join(target, nullptr), 0);
}

// abi: threads=1
// pthread_atfork: prepare in reverse order, parent and child in order, all on the forking thread; locks that the
// handlers take are free in the child.
#include "abi.h"

static char order[64];
static size_t length = 0;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void note(char c) { order[length++] = c; }

int main() {
  CHECK_EQ(pthread_atfork([] { note('a'); }, [] { note('b'); }, [] { note('c'); }), 0);
  CHECK_EQ(pthread_atfork([] { pthread_mutex_lock(&mutex), note('d'); },
                          [] { note('e'), pthread_mutex_unlock(&mutex); },
                          [] { note('f'), pthread_mutex_unlock(&mutex); }),
           0);
  std::atomic<bool> stop{false};
  const pthread_t holder = start([&stop] {
    while (!stop) {
      pthread_mutex_lock(&mutex);
      burn(kMs / 2);
      pthread_mutex_unlock(&mutex);
      nap(100'000);  // a mutex promises no turns: without a pause main might never get it
    }
  });
  for (int round = 0; round < 5; ++round) {
    length = 0;
    const pid_t child = fork();
    if (child == 0) {
      CHECK(strcmp(order, "dacf") == 0);
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
      _exit(0);
    }
    CHECK(strcmp(order, "dabe") == 0);
    wait_exit(child, 0);
  }
  stop = true;
  join(holder);
}

// abi: threads=5 status=7
// main returns while others compute, wait on a mutex, sleep, read from a pipe and yield.
#include <sched.h>

#include "abi.h"

int main() {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static int ends[2];
  CHECK_EQ(pipe(ends), 0);
  pthread_mutex_lock(&mutex);
  start([] {
    for (;;) burn(kMs);
  });
  start([] { pthread_mutex_lock(&mutex); });
  start([] { nap(1000 * kSecond); });
  start([] {
    char byte;
    const ssize_t got = read(ends[0], &byte, 1);
    FAIL("read returned %zd", got);
  });
  start([] {
    for (;;) sched_yield();
  });
  settle();
  return 7;
}

// abi: threads=6
// siglongjmp out of a handler that interrupted a wait: the wait is over and forgotten, later wakes go to others.
#include <limits.h>
#include <setjmp.h>

#include "abi.h"

static thread_local sigjmp_buf escape;
static uint32_t word = 0;
static std::atomic<int> armed{0}, escaped{0};

int main() {
  install(SIGUSR1, [](int) { siglongjmp(escape, 1); });
  std::vector<pthread_t> threads;
  static std::atomic<int> step{0};
  for (int i = 0; i < 5; ++i)
    threads.push_back(start([i] {
      if (sigsetjmp(escape, 1) == 0) {
        ++armed;
        if (i % 2 == 0)
          futex(&word, FUTEX_WAIT_PRIVATE, 0);
        else
          nap(1000 * kSecond);
        FAIL("thread %d went on", i);
      }
      ++escaped;
      while (step == 0) nap(kMs);
    }));
  const pthread_t innocent = start([] { CHECK_EQ(futex(&word, FUTEX_WAIT_PRIVATE, 0), 0); });
  while (armed < 5) nap(kMs);
  settle();
  for (pthread_t thread : threads) CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
  for (int i = 0; escaped < 5 && i < 5000; ++i) nap(kMs);
  CHECK_EQ(escaped, 5);
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX), 1);
  join(innocent);
  step = 1;
  join_all(threads);
}

// abi: threads=30
// A thread that is cancelled, or throws, in the function of pthread_once leaves it undone (pthread_once(3p)): the next one
// does it, and who waited for it meanwhile is woken. The same for std::call_once's exceptions.
#include <mutex>

#include "abi.h"

static pthread_once_t once;
static std::atomic<int> tries, done;
static std::atomic<bool> entered;

static void first_waits() {
  if (++tries == 1) {
    entered = true;
    sleep(1000);
    FAIL("not cancelled");
  }
  ++done;
}

int main() {
  for (int round = 0; round < 5; ++round) {
    const pthread_once_t fresh = PTHREAD_ONCE_INIT;
    once = fresh;
    tries = done = 0;
    entered = false;
    const pthread_t first = start([] { pthread_once(&once, first_waits); });
    while (!entered) sched_yield();
    std::vector<pthread_t> others;
    for (int i = 0; i < 4; ++i)
      others.push_back(start([] {
        CHECK_EQ(pthread_once(&once, first_waits), 0);
        CHECK_EQ(done, 1);
      }));
    if (round % 2 == 0) settle();
    CHECK_EQ(done, 0);
    CHECK_EQ(pthread_cancel(first), 0);
    CHECK(join(first) == PTHREAD_CANCELED);
    for (pthread_t one : others) CHECK(join(one) == nullptr);
    CHECK_EQ(tries, 2);
    CHECK_EQ(done, 1);
  }
  // Before 2.34 glibc's is never tried again after an exception, and the others wait for ever (its bug 18435).
  const bool throws = libc_minor() >= 34;
  std::once_flag flag;
  std::atomic<int> calls{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 5; ++i)
    threads.push_back(start([&] {
      try {
        std::call_once(flag, [&] {
          burn(50'000);
          if (++calls < 3 && throws) throw 1;
        });
      } catch (int) {
      }
    }));
  join_all(threads);
  CHECK_EQ(calls, throws ? 3 : 1);
}

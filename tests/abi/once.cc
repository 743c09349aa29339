// abi: threads=40
// pthread_once and std::call_once run once, make the others wait, and may be tried again after an exception.
#include <mutex>
#include <stdexcept>

#include "abi.h"

static std::atomic<int> calls{0};
static volatile bool ready = false;
// Before 2.34 glibc's is never tried again after an exception, and the others wait for ever (its bug 18435).
static const bool throws = libc_minor() >= 34;

int main() {
  static pthread_once_t control = PTHREAD_ONCE_INIT;
  static std::once_flag flag;
  static std::atomic<int> tries{0}, thrown{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 20; ++i)
    threads.push_back(start([] {
      pthread_once(&control, [] {
        nap(10 * kMs);
        ++calls;
        ready = true;
      });
      CHECK(ready);
    }));
  for (int i = 0; i < 20; ++i)
    threads.push_back(start([] {
      try {
        std::call_once(flag, [] {
          nap(kMs);
          if (++tries < 5 && throws) throw std::runtime_error("again");
        });
      } catch (const std::runtime_error&) {
        ++thrown;
      }
    }));
  join_all(threads);
  CHECK_EQ(calls, 1);
  CHECK_EQ(tries, throws ? 5 : 1);
  CHECK_EQ(thrown, throws ? 4 : 0);
}

// abi: threads=9
// FUTEX_WAIT and FUTEX_WAKE by raw system call: values compared, exactly as many woken as asked, relative timeouts.
#include <limits.h>

#include "abi.h"

static uint32_t word = 0;

int main() {
  CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 1), EAGAIN);
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 10), 0);

  static std::atomic<int> woken{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 8; ++i)
    threads.push_back(start([] {
      CHECK_EQ(futex(&word, FUTEX_WAIT_PRIVATE, 0), 0);
      ++woken;
    }));
  settle();
  CHECK_EQ(woken, 0);
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 3), 3);
  settle();
  CHECK_EQ(woken, 3);
  uint32_t other = 0;
  CHECK_EQ(futex(&other, FUTEX_WAKE_PRIVATE, INT_MAX), 0);
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX), 5);
  join_all(threads);
  CHECK_EQ(woken, 8);

  const timespec timeout = to_timespec(30 * kMs), zero = {0, 0};
  join(start([&] {
    const int64_t begin = now_ns();
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 0, &timeout), ETIMEDOUT);
    CHECK(now_ns() - begin >= 30 * kMs);
    CHECK(now_ns() - begin < 5 * kSecond);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 0, &zero), ETIMEDOUT);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 1, &zero), EAGAIN);
  }));
  CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 0, &timeout), ETIMEDOUT);
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX), 0);
}

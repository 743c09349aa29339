// abi: threads=4
// WAIT_BITSET and WAKE_BITSET: masks choose the waiters; timeouts are absolute, on either clock.
#include <limits.h>

#include "abi.h"

static uint32_t word = 0;
static std::atomic<uint32_t> woken{0};

int main() {
  std::vector<pthread_t> threads;
  for (uint32_t i = 0; i < 4; ++i)
    threads.push_back(start([i] {
      CHECK_EQ(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, nullptr, nullptr, 1u << i), 0);
      woken |= 1u << i;
    }));
  settle();
  CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, 0x10), 0);
  CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, 0x6), 2);
  join(threads[1]);
  join(threads[2]);
  CHECK_EQ(woken, 0x6);
  // A plain wake matches every mask.
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 1), 1);
  CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, FUTEX_BITSET_MATCH_ANY), 1);
  join(threads[0]);
  join(threads[3]);

  timespec deadline = after_ns(30 * kMs);
  CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &deadline, nullptr, FUTEX_BITSET_MATCH_ANY),
              ETIMEDOUT);
  CHECK(now_ns() >= deadline.tv_sec * kSecond + deadline.tv_nsec);
  deadline = after_ns(30 * kMs, CLOCK_REALTIME);
  CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &deadline, nullptr, 1),
              ETIMEDOUT);
  CHECK(now_ns(CLOCK_REALTIME) >= deadline.tv_sec * kSecond + deadline.tv_nsec);
  const timespec past = {1, 0};
  const int64_t begin = now_ns();
  CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, nullptr, 1), ETIMEDOUT);
  CHECK(now_ns() - begin < 2 * kSecond);
}

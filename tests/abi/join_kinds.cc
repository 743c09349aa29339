// abi: threads=4
// tryjoin, timedjoin and clockjoin: EBUSY and ETIMEDOUT while the thread lives, the result afterwards.
#include "abi.h"

int main() {
  std::atomic<bool> go{false};
  const auto body = [&go] {
    while (!go) nap(kMs);
  };
  const pthread_t a = start(body), b = start(body), c = start(body), d = start(body);
  CHECK_EQ(pthread_tryjoin_np(a, nullptr), EBUSY);
  timespec deadline = after_ns(30 * kMs, CLOCK_REALTIME);
  const int64_t begin = now_ns();
  CHECK_EQ(pthread_timedjoin_np(b, nullptr, &deadline), ETIMEDOUT);
  deadline = after_ns(30 * kMs, CLOCK_MONOTONIC);
  CHECK_EQ(pthread_clockjoin_np(b, nullptr, CLOCK_MONOTONIC, &deadline), ETIMEDOUT);
  CHECK(now_ns() - begin >= 58 * kMs);
  go = true;
  deadline = after_ns(10 * kSecond, CLOCK_REALTIME);
  CHECK_EQ(pthread_timedjoin_np(b, nullptr, &deadline), 0);
  deadline = after_ns(10 * kSecond, CLOCK_MONOTONIC);
  CHECK_EQ(pthread_clockjoin_np(c, nullptr, CLOCK_MONOTONIC, &deadline), 0);
  int tries = 0;
  while (pthread_tryjoin_np(a, nullptr) == EBUSY && ++tries < 5000) nap(kMs);
  CHECK(tries < 5000);
  join(d);
}

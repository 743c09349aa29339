// abi: threads=2
// nanosleep and clock_nanosleep: never short, on every clock, relative and absolute; past times return at once;
// what the kernel refuses is refused.
#include "abi.h"

static void body() {
  for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI}) {
    int64_t begin = now_ns(clock);
    timespec time = to_timespec(15 * kMs);
    CHECK_EQ(clock_nanosleep(clock, 0, &time, nullptr), 0);
    CHECK(now_ns(clock) - begin >= 15 * kMs);
    CHECK(now_ns(clock) - begin < 5 * kSecond);
    begin = now_ns(clock);
    time = to_timespec(begin + 15 * kMs);
    CHECK_EQ(clock_nanosleep(clock, TIMER_ABSTIME, &time, nullptr), 0);
    CHECK(now_ns(clock) >= begin + 15 * kMs);
    begin = now_ns();
    time = to_timespec(kSecond);
    CHECK_EQ(clock_nanosleep(clock, TIMER_ABSTIME, &time, nullptr), 0);
    time = {0, 0};
    CHECK_EQ(clock_nanosleep(clock, 0, &time, nullptr), 0);
    CHECK(now_ns() - begin < 2 * kSecond);
    for (const timespec bad : {timespec{0, kSecond}, timespec{0, -1}, timespec{-1, 0}})
      CHECK_EQ(clock_nanosleep(clock, 0, &bad, nullptr), EINVAL);
  }
  int64_t begin = now_ns();
  const timespec time = to_timespec(15 * kMs);
  CHECK_EQ(nanosleep(&time, nullptr), 0);
  CHECK(now_ns() - begin >= 15 * kMs);
  begin = now_ns();
  CHECK_EQ(usleep(15000), 0);
  CHECK(now_ns() - begin >= 15 * kMs);
  CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &time, nullptr), EINVAL);
  CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &time, nullptr), ENOTSUP);
  CHECK_EQ(clock_nanosleep(12345, 0, &time, nullptr), EINVAL);
  CHECK_ERRNO(nanosleep(reinterpret_cast<const timespec*>(8), nullptr), EFAULT);
}

int main() {
  const pthread_t a = start(body), b = start(body);
  body();
  join(a);
  join(b);
}

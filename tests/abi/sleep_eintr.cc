// abi: threads=3
// A sleep interrupted by a handler says EINTR with the remaining time, also with SA_RESTART; absolute sleeps leave
// the remainder alone; a sleep continued with the remainder lasts as long as asked in all.
#include "abi.h"

static std::atomic<int> count{0};

static void poke(pthread_t target) {
  settle();
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
}

int main() {
  install(
      SIGUSR1, [](int) { ++count; }, SA_RESTART);
  const pthread_t relative = start([] {
    timespec left = {0, 0};
    const timespec time = {50, 0};
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left), EINTR);
    CHECK(left.tv_sec >= 40 && left.tv_sec < 50);
    CHECK(left.tv_nsec >= 0 && left.tv_nsec < kSecond);
    CHECK_EQ(count, 1);
  });
  poke(relative);
  join(relative);
  const pthread_t absolute = start([] {
    timespec left = {1234, 5678};
    const timespec time = after_ns(50 * kSecond, CLOCK_REALTIME);
    CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, &left), EINTR);
    CHECK(left.tv_sec == 1234 && left.tv_nsec == 5678);
  });
  poke(absolute);
  join(absolute);
  const pthread_t resumed = start([] {
    const int64_t begin = now_ns();
    timespec left = to_timespec(120 * kMs);
    int interrupted = 0;
    while (nanosleep(&left, &left) != 0) {
      CHECK_EQ(errno, EINTR);
      ++interrupted;
    }
    CHECK(interrupted >= 1);
    CHECK(now_ns() - begin >= 120 * kMs);
  });
  poke(resumed);
  poke(resumed);
  join(resumed);
}

// abi: threads=2
// timer_settime(2), timer_gettime(2): absolute times, also past ones, which expire at once; the old setting; disarming; what is
// refused changes nothing; a deleted timer is EINVAL.
#include "abi.h"

static std::atomic<int> count{0};

static void expect(int wanted) {
  for (int i = 0; count < wanted && i < 10000; ++i) nap(kMs / 2);
  CHECK_EQ(count, wanted);
}

static void body() {
  count = 0;
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer;
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  itimerspec old = {{1, 1}, {1, 1}};
  CHECK_EQ(timer_gettime(timer, &old), 0);
  CHECK(old.it_value.tv_sec == 0 && old.it_value.tv_nsec == 0 && old.it_interval.tv_sec == 0);
  // A time that is over.
  const itimerspec past = {{0, 0}, {0, 1}};
  CHECK_EQ(timer_settime(timer, TIMER_ABSTIME, &past, &old), 0);
  CHECK(old.it_value.tv_sec == 0 && old.it_value.tv_nsec == 0);
  expect(1);
  // One to come, not too early.
  const int64_t due = now_ns() + 10 * kMs;
  const itimerspec soon = {{0, 0}, to_timespec(due)};
  CHECK_EQ(timer_settime(timer, TIMER_ABSTIME, &soon, nullptr), 0);
  while (count < 2) nap(kMs / 4);
  CHECK(now_ns() >= due);
  // Far away, asked for, taken back.
  const itimerspec far = {{7, 5}, {1000, 0}}, never = {};
  CHECK_EQ(timer_settime(timer, 0, &far, nullptr), 0);
  CHECK_EQ(timer_gettime(timer, &old), 0);
  CHECK(old.it_value.tv_sec >= 900 && old.it_value.tv_sec <= 1000);
  CHECK(old.it_interval.tv_sec == 7 && old.it_interval.tv_nsec == 5);
  const itimerspec bad = {{0, 0}, {0, 1'000'000'000}}, negative = {{0, 0}, {0, -1}};
  CHECK_ERRNO(timer_settime(timer, 0, &bad, nullptr), EINVAL);
  CHECK_ERRNO(timer_settime(timer, 0, &negative, nullptr), EINVAL);
  CHECK_EQ(timer_gettime(timer, &old), 0);
  CHECK(old.it_value.tv_sec >= 900);
  CHECK_EQ(timer_settime(timer, 0, &never, &old), 0);
  CHECK(old.it_value.tv_sec >= 900 && old.it_interval.tv_sec == 7);
  CHECK_EQ(timer_gettime(timer, &old), 0);
  CHECK(old.it_value.tv_sec == 0 && old.it_value.tv_nsec == 0);
  nap(5 * kMs);
  CHECK_EQ(count, 2);
  // Periodic, until it is stopped.
  const itimerspec every = {{0, 2'000'000}, {0, 2'000'000}};
  CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
  while (count < 6) nap(kMs);
  CHECK_EQ(timer_delete(timer), 0);
  nap(5 * kMs);
  const int then = count;
  nap(10 * kMs);
  CHECK_EQ(count, then);
  CHECK_ERRNO(timer_delete(timer), EINVAL);
  CHECK_ERRNO(timer_settime(timer, 0, &every, nullptr), EINVAL);
  CHECK_ERRNO(timer_gettime(timer, &old), EINVAL);
  CHECK_ERRNO(timer_getoverrun(timer), EINVAL);
}

int main() {
  install(SIGUSR1, [](int) { ++count; });
  join(start([] {}));
  body();
  join(start(body));
}

// abi: threads=2
// timer_create(2): on CLOCK_REALTIME, MONOTONIC, BOOTTIME, TAI and the CPU clocks of process and thread; without an event the signal is
// SIGALRM; SIGEV_NONE only counts; one-shot timers expire once.
#include "abi.h"

#ifndef CLOCK_TAI
#define CLOCK_TAI 11
#endif

static std::atomic<int> alarms{0}, code{0};

static void wait_for(int wanted, bool computing) {
  for (int i = 0; alarms < wanted && i < 10000; ++i) {
    if (computing)
      burn(kMs / 2);
    else
      nap(kMs / 2);
  }
  CHECK_EQ(alarms, wanted);
  CHECK_EQ(code, SI_TIMER);
}

static void once(clockid_t clock, bool computing) {
  timer_t timer;
  if (timer_create(clock, nullptr, &timer) != 0) {
    CHECK_EQ(errno, ENOTSUP);
    return;
  }
  const int before = alarms;
  const itimerspec soon = {{0, 0}, {0, 3'000'000}};
  const int64_t begun = now_ns(clock);
  CHECK_EQ(timer_settime(timer, 0, &soon, nullptr), 0);
  wait_for(before + 1, computing);
  CHECK(now_ns(clock) - begun >= 3 * kMs || clock == CLOCK_THREAD_CPUTIME_ID);
  itimerspec left = {{1, 1}, {1, 1}};
  CHECK_EQ(timer_gettime(timer, &left), 0);
  CHECK(left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0 && left.it_interval.tv_sec == 0);
  CHECK_EQ(timer_delete(timer), 0);

  // Polled.
  sigevent event = {};
  event.sigev_notify = SIGEV_NONE;
  CHECK_EQ(timer_create(clock, &event, &timer), 0);
  const itimerspec late = {{0, 0}, {100, 0}};
  CHECK_EQ(timer_settime(timer, 0, &late, nullptr), 0);
  CHECK_EQ(timer_gettime(timer, &left), 0);
  CHECK(left.it_value.tv_sec >= 30 && left.it_value.tv_sec <= 100);
  CHECK_EQ(timer_delete(timer), 0);
  CHECK_EQ(alarms, before + 1);
}

static void all() {
  for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI}) once(clock, false);
  once(CLOCK_MONOTONIC, true);
  once(CLOCK_PROCESS_CPUTIME_ID, true);
  once(CLOCK_THREAD_CPUTIME_ID, true);
}

int main() {
  install_info(SIGALRM, [](int, siginfo_t* info, void*) {
    code = info->si_code;
    ++alarms;
  });
  join(start([] {}));
  all();
  join(start(all));
}

// abi: threads=6
// fork(2): the child inherits no timers (timer_create, setitimer, alarm); its CPU times begin at zero, also those of ended
// children. The parent's timers go on.
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>

#include "process.h"

namespace {

std::atomic<int> rang{0};

int64_t cpu_time() { return now_ns(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace

int main() {
  Crowd crowd;
  install(
      SIGUSR1, [](int) { ++rang; }, SA_RESTART);
  install(
      SIGVTALRM, [](int) {}, SA_RESTART);
  burn(20 * kMs);
  run_child([] { burn(5 * kMs); });
  tms before;
  times(&before);
  join(start([] {
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    timer_t timer;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    itimerspec every = {to_timespec(kMs), to_timespec(kMs)};
    CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
    const itimerval usual = {{0, 5000}, {0, 5000}};
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &usual, nullptr), 0);
    alarm(1000);
    const int64_t parents = cpu_time();
    run_child([&] {
      rang = 0;
      CHECK_EQ(alarm(0), 0u);
      itimerval now;
      CHECK_EQ(getitimer(ITIMER_REAL, &now), 0);
      CHECK(now.it_value.tv_sec == 0 && now.it_value.tv_usec == 0);
      CHECK_EQ(getitimer(ITIMER_VIRTUAL, &now), 0);
      CHECK(now.it_value.tv_sec == 0 && now.it_value.tv_usec == 0);
      itimerspec left;
      CHECK_EQ(syscall(SYS_timer_gettime, timer, &left), -1);
      CHECK_EQ(errno, EINVAL);
      CHECK(cpu_time() < parents);
      tms zero;
      times(&zero);
      CHECK_EQ(zero.tms_cutime + zero.tms_cstime, 0);
      rusage usage;
      CHECK_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
      CHECK(usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec == 0);
      burn(5 * kMs);
      nap(5 * kMs);
      CHECK_EQ(rang.load(), 0);
      // One of its own.
      join(start([] {}));
      timer_t mine;
      sigevent own = {};
      own.sigev_notify = SIGEV_SIGNAL;
      own.sigev_signo = SIGUSR1;
      CHECK_EQ(timer_create(CLOCK_MONOTONIC, &own, &mine), 0);
      const itimerspec once = {{}, to_timespec(kMs)};
      CHECK_EQ(timer_settime(mine, 0, &once, nullptr), 0);
      while (rang == 0) nap(kMs);
    });
    rang = 0;
    while (rang < 3) nap(kMs);
    CHECK_EQ(timer_delete(timer), 0);
    const itimerval none = {};
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &none, nullptr), 0);
    CHECK(alarm(0) > 900);
  }));
  crowd.end();
}

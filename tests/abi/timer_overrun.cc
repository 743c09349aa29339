// abi: threads=2
// timer_getoverrun(2), timer_create(2): a timer's signal is pending once, real-time or not; expirations while it is are counted in
// si_overrun and by timer_getoverrun. For the process and for one thread, taken by sigwaitinfo and by a handler.
#include "abi.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static siginfo_t seen;
static int count = 0;

// The signal is blocked and not pending. 20 periods pass.
static void blocked(int signal, bool to_thread, bool handler) {
  sigevent event = {};
  event.sigev_notify = to_thread ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
  event.sigev_signo = signal;
  event.sigev_value.sival_int = 123;
  event.sigev_notify_thread_id = gettid();
  timer_t timer;
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  CHECK_EQ(timer_getoverrun(timer), 0);
  const itimerspec every = {{0, 1'000'000}, {0, 1'000'000}}, never = {};
  CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
  nap(20 * kMs);
  const sigset_t set = signal_set({signal});
  sigset_t now;
  do CHECK_EQ(sigpending(&now), 0);
  while (sigismember(&now, signal) != 1);
  int overrun;
  if (handler) {
    count = 0;
    // It may come again at any time.
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
    CHECK(count >= 1);
    overrun = count == 1 ? timer_getoverrun(timer) : 18;
    if (count == 1) CHECK_EQ(overrun, seen.si_overrun);
  } else {
    const timespec minute = {60, 0};
    CHECK_EQ(sigtimedwait(&set, &seen, &minute), signal);
    overrun = timer_getoverrun(timer);
    CHECK_EQ(overrun, seen.si_overrun);
  }
  // What is on its way to one thread is counted with the next: no expiration is lost.
  for (int64_t total = overrun + 1; to_thread && total < 20; total += seen.si_overrun + 1)
    CHECK_EQ(sigwaitinfo(&set, &seen), signal);
  CHECK(overrun >= (to_thread ? 0 : 18) && overrun < 100000);
  CHECK_EQ(seen.si_code, SI_TIMER);
  CHECK_EQ(seen.si_value.sival_int, 123);
  CHECK_EQ(timer_settime(timer, 0, &never, nullptr), 0);
  // At most one more can have come.
  const timespec none = {0, 0};
  if (sigtimedwait(&set, nullptr, &none) == signal) CHECK_ERRNO(sigtimedwait(&set, nullptr, &none), EAGAIN);
  CHECK_EQ(timer_delete(timer), 0);
}

int main() {
  const sigset_t set = signal_set({SIGUSR1, SIGRTMIN + 2});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  for (int signal : {SIGUSR1, SIGRTMIN + 2})
    install_info(signal, [](int, siginfo_t* info, void*) {
      if (count++ == 0) seen = *info;
    });
  join(start([] {
    blocked(SIGUSR1, false, false);
    blocked(SIGRTMIN + 2, false, true);
    blocked(SIGUSR1, true, true);
    blocked(SIGRTMIN + 2, true, false);
  }));
  join(start([] {}));
  blocked(SIGRTMIN + 2, false, false);
  blocked(SIGUSR1, true, false);
}

// abi: threads=2 stats=none
// fork(2): the child inherits neither timers (timer_create, setitimer, alarm) nor pending signals, the process's or the thread's; the
// mask and the actions it does inherit. Its own timers work, before and after it has threads.
#include <sys/time.h>

#include "abi.h"

static std::atomic<int> hits{0};

static void in_child(timer_t inherited) {
  itimerval left = {};
  CHECK_EQ(getitimer(ITIMER_REAL, &left), 0);
  CHECK(left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0);
  CHECK_EQ(alarm(0), 0);
  itimerspec time;
  CHECK_ERRNO(timer_gettime(inherited, &time), EINVAL);
  sigset_t now;
  CHECK_EQ(sigpending(&now), 0);
  for (int signal : {SIGUSR1, SIGUSR2, SIGRTMIN + 1}) CHECK_EQ(sigismember(&now, signal), 0);
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
  CHECK(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGALRM) == 0);
  const auto own = [] {
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    timer_t timer;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    const itimerspec soon = {{0, 0}, {0, 1'000'000}};
    const int before = hits;
    CHECK_EQ(timer_settime(timer, 0, &soon, nullptr), 0);
    while (hits == before) nap(kMs / 2);
    CHECK_EQ(timer_delete(timer), 0);
  };
  own();
  join(start(own));
  own();
  CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
  CHECK_EQ(sigpending(&now), 0);
  CHECK(sigismember(&now, SIGUSR1) == 1);
}

int main() {
  install(SIGALRM, [](int) { ++hits; });
  const sigset_t set = signal_set({SIGUSR1, SIGUSR2, SIGRTMIN + 1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  join(start([] {}));
  const auto fork_here = [] {
    timer_t timer;
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    const itimerspec late = {{0, 0}, {100, 0}};
    CHECK_EQ(timer_settime(timer, 0, &late, nullptr), 0);
    alarm(100);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(pthread_kill(pthread_self(), SIGUSR2), 0);
    CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, sigval{}), 0);
    const pid_t child = fork();
    if (child == 0) {
      in_child(timer);
      _exit(0);
    }
    wait_exit(child, 0);
    CHECK(alarm(0) > 0);
    CHECK_EQ(timer_delete(timer), 0);
    sigset_t now;
    CHECK_EQ(sigpending(&now), 0);
    for (int signal : {SIGUSR1, SIGUSR2, SIGRTMIN + 1}) CHECK_EQ(sigismember(&now, signal), 1);
    const timespec none = {0, 0};
    const sigset_t all = signal_set({SIGUSR1, SIGUSR2, SIGRTMIN + 1});
    while (sigtimedwait(&all, nullptr, &none) > 0) {
    }
  };
  fork_here();
  join(start(fork_here));
}

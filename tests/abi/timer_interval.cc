// abi: threads=3
// setitimer(2), alarm(2): ITIMER_REAL, ITIMER_VIRTUAL and ITIMER_PROF signal the process, also where all its threads but one block the
// signal or sleep; the old value; alarm answers the seconds left and shares ITIMER_REAL; pause and sleep are interrupted.
#include <sys/time.h>

#include "abi.h"

static std::atomic<int> counts[65];
static void handler(int signal) { ++counts[signal]; }

static void computing_until(int signal, int wanted) {
  for (int i = 0; counts[signal] < wanted && i < 10000; ++i) burn(kMs);
  CHECK(counts[signal] >= wanted);
}

int main() {
  for (int signal : {SIGALRM, SIGVTALRM, SIGPROF}) install(signal, handler);
  const sigset_t set = signal_set({SIGALRM, SIGVTALRM, SIGPROF});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs / 2);
  });
  join(start([&set] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    const itimerval every = {{0, 4000}, {0, 4000}}, never = {};
    itimerval old = {};
    const struct {
      __itimer_which_t which;
      int signal;
    } kinds[] = {{ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};
    for (const auto& kind : kinds) {
      CHECK_EQ(setitimer(kind.which, &every, &old), 0);
      CHECK(old.it_value.tv_sec == 0 && old.it_value.tv_usec == 0);
      computing_until(kind.signal, 3);
      CHECK_EQ(getitimer(kind.which, &old), 0);
      CHECK_EQ(old.it_interval.tv_usec, 4000);
      CHECK_EQ(setitimer(kind.which, &never, &old), 0);
      CHECK_EQ(old.it_interval.tv_usec, 4000);
    }
    CHECK_EQ(alarm(100), 0);
    CHECK_EQ(getitimer(ITIMER_REAL, &old), 0);
    CHECK(old.it_value.tv_sec >= 50 && old.it_value.tv_sec <= 100);
    const unsigned left = alarm(0);
    CHECK(left >= 50 && left <= 100);
    // It interrupts pause and a sleep of the one that does not block it. Again, should it come before.
    const itimerval soon = {{0, 3000}, {0, 3000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
    CHECK_ERRNO(pause(), EINTR);
    const timespec minute = {60, 0};
    timespec rest = {};
    CHECK_ERRNO(nanosleep(&minute, &rest), EINTR);
    CHECK(rest.tv_sec >= 30);
    CHECK_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  }));
  join(start([] {}));
  stop = true;
  join(computing);
}

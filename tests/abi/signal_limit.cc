// abi: threads=2
// sigqueue(3), getrlimit(2) RLIMIT_SIGPENDING: real-time signals beyond the limit are refused with EAGAIN, by sigqueue and by
// pthread_kill; kill and standard signals are sent all the same; what has been taken makes room.
#include <sys/resource.h>

#include "abi.h"

static int fill(int limit, bool thread) {
  int sent = 0;
  for (;;) {
    int error;
    if (thread) {
      error = pthread_sigqueue(pthread_self(), SIGRTMIN + 1, sigval{.sival_int = sent});
    } else {
      errno = 0;
      error = sigqueue(getpid(), SIGRTMIN + 1, sigval{.sival_int = sent}) == 0 ? 0 : errno;
    }
    if (error != 0) {
      CHECK_EQ(error, EAGAIN);
      break;
    }
    CHECK(++sent <= limit);
  }
  return sent;
}

int main() {
  const sigset_t set = signal_set({SIGRTMIN + 1, SIGRTMIN + 2, SIGUSR1, SIGUSR2});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  // The user's other processes count as well: with little in use there may be no room at all, but never too much.
  rlimit old;
  CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &old), 0);
  join(start([&] {
    for (bool thread : {false, true}) {
      const rlimit limit = {50, old.rlim_max};
      CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
      const int sent = fill(50, thread);
      if (thread) CHECK_EQ(pthread_kill(pthread_self(), SIGRTMIN + 1), EAGAIN);
      CHECK_ERRNO(sigqueue(getpid(), SIGRTMIN + 2, sigval{}), EAGAIN);
      CHECK_EQ(kill(getpid(), SIGRTMIN + 2), 0);
      CHECK_EQ(kill(getpid(), SIGUSR1), 0);
      CHECK_EQ(sigqueue(getpid(), SIGUSR2, sigval{}), 0);
      sigset_t now;
      CHECK_EQ(sigpending(&now), 0);
      for (int signal : {SIGRTMIN + 2, SIGUSR1, SIGUSR2}) CHECK_EQ(sigismember(&now, signal), 1);
      const timespec none = {0, 0};
      siginfo_t info = {};
      for (int i = 0; i < sent; ++i) {
        const sigset_t one = signal_set({SIGRTMIN + 1});
        CHECK_EQ(sigtimedwait(&one, &info, &none), SIGRTMIN + 1);
        CHECK_EQ(info.si_value.sival_int, i);
      }
      for (int expected : {SIGUSR1, SIGUSR2, SIGRTMIN + 2})
        CHECK_EQ(sigtimedwait(&set, &info, &none), expected);
      CHECK_ERRNO(sigtimedwait(&set, &info, &none), EAGAIN);
      // There is room again, and with a higher limit for sure.
      CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &old), 0);
      CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, sigval{}), 0);
      CHECK_EQ(sigtimedwait(&set, &info, &none), SIGRTMIN + 1);
    }
    const rlimit zero = {0, old.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &zero), 0);
    CHECK_ERRNO(sigqueue(getpid(), SIGRTMIN + 1, sigval{}), EAGAIN);
    CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
    CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &old), 0);
    const timespec none = {0, 0};
    CHECK_EQ(sigtimedwait(&set, nullptr, &none), SIGUSR1);
  }));
  join(start([] {}));
}

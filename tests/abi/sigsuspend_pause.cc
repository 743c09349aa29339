// abi: threads=2
// pause and sigsuspend in threads: a signal to the thread ends them, and sigsuspend's mask is only borrowed.
#include "abi.h"

static thread_local int count = 0;

int main() {
  install(SIGUSR1, [](int) { ++count; });
  const sigset_t one = signal_set({SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
  std::atomic<bool> suspended{false};
  const pthread_t suspending = start([&] {
    sigset_t empty;
    sigemptyset(&empty);
    suspended = true;
    CHECK_ERRNO(sigsuspend(&empty), EINTR);
    CHECK_EQ(count, 1);
    sigset_t now;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    CHECK_EQ(sigismember(&now, SIGUSR1), 1);
  });
  const pthread_t pausing = start([&one] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &one, nullptr), 0);
    CHECK_ERRNO(pause(), EINTR);
    CHECK_EQ(count, 1);
  });
  settle();
  CHECK_EQ(pthread_kill(suspending, SIGUSR1), 0);
  CHECK_EQ(pthread_kill(pausing, SIGUSR1), 0);
  join(suspending);
  join(pausing);
}

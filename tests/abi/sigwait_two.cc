// abi: threads=2
// Two threads wait for the same signal, which comes twice: each has one, although both signals may choose the same thread
// at first.
#include "abi.h"

int main() {
  const sigset_t set = signal_set({SIGRTMIN + 1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<int> taken{0};
  const auto body = [&] {
    siginfo_t info;
    int signal;
    // Linux may wake one for a signal that the other has taken.
    do signal = sigwaitinfo(&set, &info);
    while (signal < 0 && errno == EINTR);
    CHECK_EQ(signal, SIGRTMIN + 1);
    ++taken;
    while (taken < 2) nap(kMs);
  };
  const pthread_t first = start(body), second = start(body);
  settle();
  CHECK_EQ(kill(getpid(), SIGRTMIN + 1), 0);
  CHECK_EQ(kill(getpid(), SIGRTMIN + 1), 0);
  join(first);
  join(second);
}

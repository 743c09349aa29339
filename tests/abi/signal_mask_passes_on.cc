// abi: threads=3
// signal(7): a signal of the process that is blocked by the thread chosen for it, or whose thread ends before it has taken it, goes to
// another one that does not block it. Threads block and unblock, run handlers with full masks and end all the time; none is lost.
#include "abi.h"

static std::atomic<int> hits{0};

int main() {
  struct sigaction action = {};
  action.sa_sigaction = [](int, siginfo_t*, void*) {
    burn(20'000);
    ++hits;
  };
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  CHECK_EQ(sigaction(SIGRTMIN + 1, &action, nullptr), 0);
  CHECK_EQ(sigaction(SIGRTMIN + 2, &action, nullptr), 0);
  const sigset_t set = signal_set({SIGRTMIN + 1, SIGRTMIN + 2});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<bool> stop{false};
  const auto toggling = [&] {
    while (!stop) {
      CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
      burn(30'000);
      CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
      if (!stop) sched_yield();
    }
  };
  const pthread_t first = start(toggling), second = start(toggling);
  const pthread_t short_lived = start([&] {
    while (!stop)
      join(start([&set] {
        CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
        sched_yield();
      }));
  });
  constexpr int kCount = 400;
  for (int i = 0; i < kCount; ++i) {
    CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1 + (i & 1), sigval{}), 0);
    if (i % 8 == 0) nap(kMs / 10);
  }
  for (int i = 0; hits < kCount && i < 10000; ++i) nap(kMs);
  CHECK_EQ(hits, kCount);
  stop = true;
  for (pthread_t thread : {first, second, short_lived}) join(thread);
  sigset_t now;
  CHECK_EQ(sigpending(&now), 0);
  CHECK_EQ(sigismember(&now, SIGRTMIN + 1), 0);
}

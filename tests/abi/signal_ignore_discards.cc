// abi: threads=2
// POSIX sigaction(): setting a signal to be ignored, or to a default of being ignored, discards it where it is pending, blocked
// or not, for the process and for every thread. Ignored signals end no wait.
#include "abi.h"

static bool is_pending(int signal) {
  sigset_t now;
  CHECK_EQ(sigpending(&now), 0);
  return sigismember(&now, signal) == 1;
}

static std::atomic<int> count{0};

int main() {
  const int signals[] = {SIGUSR1, SIGCHLD, SIGURG, SIGRTMIN + 6};
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<int> stage{0};
  const pthread_t other = start([&] {
    while (stage < 2) {
      if (stage == 1) {
        for (int signal : signals) CHECK(!is_pending(signal));
        stage = 0;
      }
      nap(kMs / 2);
    }
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    CHECK_EQ(count, 0);
  });
  for (int signal : signals) {
    const bool ignored_by_default = signal == SIGCHLD || signal == SIGURG;
    for (int by_default = 0; by_default <= (ignored_by_default ? 1 : 0); ++by_default) {
      install(signal, [](int) { ++count; });
      CHECK_EQ(kill(getpid(), signal), 0);
      CHECK_EQ(pthread_kill(pthread_self(), signal), 0);
      CHECK_EQ(pthread_kill(other, signal), 0);
      CHECK(is_pending(signal));
      install(signal, by_default ? SIG_DFL : SIG_IGN);
      CHECK(!is_pending(signal));
      install(signal, [](int) { ++count; });
      CHECK(!is_pending(signal));
      stage = 1;
      while (stage == 1) nap(kMs / 2);
    }
  }
  stage = 2;
  join(other);
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
  CHECK_EQ(count, 0);

  // A sleeper and a waiter that ignore them notice nothing.
  for (int signal : signals) install(signal, SIG_IGN);
  uint32_t word = 0;
  std::atomic<bool> slept{false};
  const pthread_t sleeper = start([&] {
    const timespec time = {0, 60'000'000};
    CHECK_EQ(nanosleep(&time, nullptr), 0);
    slept = true;
  });
  const pthread_t waiter = start([&word] { CHECK_EQ(futex(&word, FUTEX_WAIT_PRIVATE, 0), 0); });
  while (!slept) {
    for (int signal : signals) {
      CHECK_EQ(pthread_kill(waiter, signal), 0);
      CHECK_EQ(kill(getpid(), signal), 0);
    }
    nap(kMs);
  }
  while (futex(&word, FUTEX_WAKE_PRIVATE, 1) == 0) nap(kMs);
  join(sleeper);
  join(waiter);
}

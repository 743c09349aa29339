// abi: threads=3
// sigqueue(3), pthread_sigqueue(3), signal(7): real-time signals are queued and delivered in the order of sending with their
// values; of a standard signal only the first is pending. sigpending(2) sees the thread's and the process's.
#include "abi.h"

static bool is_pending(int signal) {
  sigset_t now;
  CHECK_EQ(sigpending(&now), 0);
  return sigismember(&now, signal) == 1;
}

static int next_value(int signal, int code) {
  const sigset_t set = signal_set({signal});
  const timespec none = {0, 0};
  siginfo_t info = {};
  if (sigtimedwait(&set, &info, &none) != signal) return -1;
  CHECK_EQ(info.si_signo, signal);
  CHECK_EQ(info.si_code, code);
  CHECK_EQ(info.si_pid, getpid());
  CHECK_EQ(info.si_uid, getuid());
  return info.si_value.sival_int;
}

static std::atomic<int> seen{0};

int main() {
  const int realtime = SIGRTMIN + 4;
  const sigset_t set = signal_set({realtime, SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  constexpr int kCount = 100;

  join(start([&] {
    for (int i = 0; i < kCount; ++i) CHECK_EQ(sigqueue(getpid(), realtime, sigval{.sival_int = 1000 + i}), 0);
    for (int i = 0; i < kCount; ++i)
      CHECK_EQ(pthread_sigqueue(pthread_self(), realtime, sigval{.sival_int = i}), 0);
    CHECK(is_pending(realtime) && !is_pending(SIGUSR1));
    for (int i = 0; i < kCount; ++i) CHECK_EQ(next_value(realtime, SI_QUEUE), i);
    CHECK(is_pending(realtime));
  }));
  // The process's are left, for any thread.
  CHECK(is_pending(realtime));
  join(start([&] {
    for (int i = 0; i < kCount / 2; ++i) CHECK_EQ(next_value(realtime, SI_QUEUE), 1000 + i);
  }));
  for (int i = kCount / 2; i < kCount; ++i) CHECK_EQ(next_value(realtime, SI_QUEUE), 1000 + i);
  CHECK_EQ(next_value(realtime, SI_QUEUE), -1);
  CHECK(!is_pending(realtime));

  for (int value : {7, 8, 9}) CHECK_EQ(sigqueue(getpid(), SIGUSR1, sigval{.sival_int = value}), 0);
  CHECK_EQ(next_value(SIGUSR1, SI_QUEUE), 7);
  CHECK_EQ(next_value(SIGUSR1, SI_QUEUE), -1);
  // Pending for the thread and for the process are two.
  CHECK_EQ(sigqueue(getpid(), SIGUSR1, sigval{.sival_int = 1}), 0);
  CHECK_EQ(pthread_sigqueue(pthread_self(), SIGUSR1, sigval{.sival_int = 2}), 0);
  CHECK_EQ(next_value(SIGUSR1, SI_QUEUE), 2);
  CHECK_EQ(next_value(SIGUSR1, SI_QUEUE), 1);
  CHECK_EQ(next_value(SIGUSR1, SI_QUEUE), -1);

  // To handlers, of which each lets the next one wait.
  install_info(realtime, [](int, siginfo_t* info, void*) { CHECK_EQ(info->si_value.sival_int, seen++); });
  join(start([&] {
    for (int i = 0; i < kCount; ++i)
      CHECK_EQ(pthread_sigqueue(pthread_self(), realtime, sigval{.sival_int = i}), 0);
    CHECK_EQ(seen, 0);
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    CHECK_EQ(seen, kCount);
  }));
}

// abi: threads=4
// SIGTERM, blocked everywhere, to the process: taken by the thread in sigwait; sigtimedwait times out; queued
// values arrive.
#include "abi.h"

int main() {
  const sigset_t set = signal_set({SIGTERM, SIGRTMIN + 3});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&] {
    while (!stop) burn(kMs);
  });
  const pthread_t waiter = start([] {
    const sigset_t term = signal_set({SIGTERM});
    int signal = 0;
    CHECK_EQ(sigwait(&term, &signal), 0);
    CHECK_EQ(signal, SIGTERM);
  });
  settle();
  CHECK_EQ(kill(getpid(), SIGTERM), 0);
  join(waiter);

  join(start([] {
    const sigset_t realtime = signal_set({SIGRTMIN + 3});
    const timespec timeout = to_timespec(30 * kMs);
    const int64_t begin = now_ns();
    CHECK_ERRNO(sigtimedwait(&realtime, nullptr, &timeout), EAGAIN);
    CHECK(now_ns() - begin >= 29 * kMs);
    sigval value;
    value.sival_int = 77;
    CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 3, value), 0);
    siginfo_t info;
    CHECK_EQ(sigwaitinfo(&realtime, &info), SIGRTMIN + 3);
    CHECK_EQ(info.si_value.sival_int, 77);
  }));

  // Directed to one waiting thread while another waits for the same signal.
  std::atomic<int> got{0};
  const pthread_t target = start([&] {
    const sigset_t term = signal_set({SIGTERM});
    int signal = 0;
    CHECK_EQ(sigwait(&term, &signal), 0);
    got = signal;
  });
  settle();
  CHECK_EQ(pthread_kill(target, SIGTERM), 0);
  join(target);
  CHECK_EQ(got, SIGTERM);
  stop = true;
  join(computing);
}

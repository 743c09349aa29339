// abi: threads=3
// sigtimedwait(2), sigwaitinfo(2), sigwait(3): a zero timeout polls, a bad one is EINVAL, the time is not over too early; a handler
// of another signal ends it with EINTR (sigwait goes on), also one with SA_RESTART.
#include "abi.h"

static std::atomic<int> count{0};

int main() {
  const sigset_t set = signal_set({SIGUSR1, SIGRTMIN + 1, SIGKILL, SIGSTOP});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  install(
      SIGUSR2, [](int) { ++count; }, SA_RESTART);
  join(start([&] {
    timespec time = {0, 0};
    siginfo_t info = {};
    CHECK_ERRNO(sigtimedwait(&set, &info, &time), EAGAIN);
    for (const timespec bad : {timespec{0, -1}, timespec{0, 1'000'000'000}, timespec{-1, 0}})
      CHECK_ERRNO(sigtimedwait(&set, &info, &bad), EINVAL);
    CHECK_EQ(raise(SIGUSR1), 0);
    const timespec bad = {0, -1};
    CHECK_ERRNO(sigtimedwait(&set, &info, &bad), EINVAL);
    CHECK_EQ(sigtimedwait(&set, nullptr, &time), SIGUSR1);
    CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &set, nullptr, &time, 4), EINVAL);
    time.tv_nsec = 20'000'000;
    const int64_t begun = now_ns();
    CHECK_ERRNO(sigtimedwait(&set, &info, &time), EAGAIN);
    CHECK(now_ns() - begun >= 20 * kMs);
  }));
  // Until it has ended: a handler that comes before the call interrupts nothing.
  const auto interrupted = [&](const timespec* time) {
    std::atomic<bool> over{false};
    const pthread_t thread = start([&] {
      CHECK_ERRNO(sigtimedwait(&set, nullptr, time), EINTR);
      over = true;
    });
    for (settle(); !over; nap(2 * kMs)) CHECK_EQ(pthread_kill(thread, SIGUSR2), 0);
    join(thread);
  };
  const timespec minute = {60, 0};
  interrupted(&minute);
  interrupted(nullptr);
  const pthread_t waiter = start([&] {
    int signal = 0;
    CHECK_EQ(sigwait(&set, &signal), 0);
    CHECK_EQ(signal, SIGRTMIN + 1);
  });
  settle();
  for (int i = 0; i < 3; ++i) {
    const int before = count;
    CHECK_EQ(pthread_kill(waiter, SIGUSR2), 0);
    while (count == before) nap(kMs);
  }
  CHECK_EQ(pthread_kill(waiter, SIGRTMIN + 1), 0);
  join(waiter);
  // The mask is as it was.
  sigset_t now;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
  CHECK(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGUSR2) == 0);
}

// abi: threads=2
// What is pending for the process or the main thread alone when the first thread is made stays so: sigpending sees it, a thread
// takes only what is the process's, the rest comes when the main thread opens it.
#include "abi.h"

static int order[8], count = 0;

static bool is_pending(int signal) {
  sigset_t now;
  CHECK_EQ(sigpending(&now), 0);
  return sigismember(&now, signal) == 1;
}

int main() {
  const sigset_t set = signal_set({SIGUSR1, SIGUSR2, SIGRTMIN + 1, SIGTERM});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  for (int signal : {SIGUSR1, SIGUSR2, SIGRTMIN + 1, SIGTERM})
    install_info(signal, [](int number, siginfo_t* info, void*) {
      CHECK_EQ(info->si_pid, getpid());
      order[count++] = number;
    });
  CHECK_EQ(raise(SIGUSR1), 0);
  CHECK_EQ(kill(getpid(), SIGUSR2), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, sigval{.sival_int = i}), 0);
  join(start([&set] {
    CHECK(!is_pending(SIGUSR1));  // the main thread's
    CHECK(is_pending(SIGUSR2) && is_pending(SIGRTMIN + 1));
    const timespec none = {0, 0};
    siginfo_t info = {};
    CHECK_EQ(sigtimedwait(&set, &info, &none), SIGUSR2);
    CHECK_EQ(info.si_code, SI_USER);
    CHECK_EQ(sigtimedwait(&set, &info, &none), SIGRTMIN + 1);
    CHECK_EQ(info.si_value.sival_int, 0);
  }));
  CHECK(is_pending(SIGUSR1) && !is_pending(SIGUSR2) && is_pending(SIGRTMIN + 1));
  CHECK_EQ(count, 0);
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
  CHECK_EQ(count, 3);
  join(start([] {}));
  CHECK_EQ(count, 3);
}

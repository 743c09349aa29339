// abi: threads=2 stats=none
// signal(7): SIGKILL and SIGSTOP act on the whole process, whichever thread they are sent to, and so do fatal default actions;
// in sets and masks they are left out silently. The target computes, sleeps, waits in the kernel or is the sender.
#include "abi.h"

static int ends[2];

static void victim(int kind) {
  std::atomic<pid_t> tid{0};
  const pthread_t target = start([&] {
    sigset_t all;
    sigfillset(&all);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, nullptr), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &all), 0);
    CHECK(sigismember(&all, SIGKILL) == 0 && sigismember(&all, SIGSTOP) == 0);
    tid = gettid();
    char byte;
    for (;;) {
      if (kind == 0) burn(kMs);
      if (kind == 1) nap(kSecond);
      if (kind == 2) CHECK_EQ(read(ends[0], &byte, 1), 1);
      if (kind == 3) {
        pthread_kill(pthread_self(), SIGKILL);
        _exit(1);
      }
    }
  });
  while (tid == 0) nap(kMs);
  settle();
  CHECK_EQ(pthread_kill(target, SIGKILL), 0);
  for (;;) nap(kSecond);
}

int main() {
  CHECK_EQ(pipe(ends), 0);
  join(start([] {}));
  join(start([] {
    sigset_t all;
    sigfillset(&all);
    const timespec shortly = {0, 1'000'000};
    siginfo_t info;
    CHECK_ERRNO(sigtimedwait(&all, &info, &shortly), EAGAIN);
  }));
  for (int kind = 0; kind < 4; ++kind) {
    const pid_t child = fork();
    if (child == 0) victim(kind);
    const int status = wait_status(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  // SIGSTOP to a thread that blocks all it can.
  const pid_t child = fork();
  if (child == 0) {
    const pthread_t target = start([] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      for (;;) nap(kSecond);
    });
    CHECK_EQ(pthread_kill(target, SIGSTOP), 0);
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    _exit(4);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
  CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  CHECK_EQ(kill(child, SIGCONT), 0);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  wait_exit(child, 4);
  // A fatal default action while the others block it.
  const pid_t second = fork();
  if (second == 0) {
    const pthread_t target = start([] {
      for (;;) nap(kSecond);
    });
    const sigset_t one = signal_set({SIGTERM});
    pthread_sigmask(SIG_BLOCK, &one, nullptr);
    settle();
    pthread_kill(target, SIGTERM);
    for (;;) nap(kSecond);
  }
  const int end = wait_status(second);
  CHECK(WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM);
}

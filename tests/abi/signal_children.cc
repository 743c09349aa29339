// abi: threads=2
// SIGCHLD: siginfo of children that exit, are killed, stop and go on; SA_NOCLDSTOP; SA_NOCLDWAIT and SIG_IGN leave no zombie and
// wait answers ECHILD; taken by a handler and by sigwaitinfo of a thread.
#include "abi.h"

static siginfo_t seen;
static std::atomic<int> count{0};

static pid_t child_that(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

static void expect(int wanted, pid_t child, int code, int status) {
  for (int i = 0; count < wanted && i < 10000; ++i) nap(kMs);
  CHECK_EQ(count, wanted);
  CHECK_EQ(seen.si_signo, SIGCHLD);
  CHECK_EQ(seen.si_pid, child);
  CHECK_EQ(seen.si_uid, getuid());
  CHECK_EQ(seen.si_code, code);
  CHECK_EQ(seen.si_status, status);
}

static int waits() {
  for (;;) pause();
}

int main() {
  const auto handler = [](int, siginfo_t* info, void*) {
    seen = *info;
    ++count;
  };
  install_info(SIGCHLD, handler, SA_RESTART);
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs / 2);
  });
  pid_t child = child_that([] { return 7; });
  expect(1, child, CLD_EXITED, 7);
  wait_exit(child, 7);

  child = child_that(waits);
  CHECK_EQ(kill(child, SIGSTOP), 0);
  expect(2, child, CLD_STOPPED, SIGSTOP);
  CHECK_EQ(kill(child, SIGCONT), 0);
  expect(3, child, CLD_CONTINUED, SIGCONT);
  install_info(SIGCHLD, handler, SA_RESTART | SA_NOCLDSTOP);
  CHECK_EQ(kill(child, SIGSTOP), 0);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
  CHECK(WIFSTOPPED(status));
  CHECK_EQ(kill(child, SIGKILL), 0);
  expect(4, child, CLD_KILLED, SIGKILL);
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

  // No zombies, but the signal.
  install_info(SIGCHLD, handler, SA_RESTART | SA_NOCLDWAIT);
  child = child_that([] { return 3; });
  CHECK_ERRNO(waitpid(child, &status, 0), ECHILD);
  expect(5, child, CLD_EXITED, 3);
  install(SIGCHLD, SIG_IGN);
  child = child_that([] { return 3; });
  CHECK_ERRNO(waitpid(child, &status, 0), ECHILD);
  CHECK_EQ(count, 5);

  // Waited for. Blocked and at its default of being ignored it is kept.
  const sigset_t set = signal_set({SIGCHLD});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  install(SIGCHLD, SIG_DFL);
  std::atomic<pid_t> expected{0};
  const pthread_t waiter = start([&] {
    siginfo_t info = {};
    CHECK_EQ(sigwaitinfo(&set, &info), SIGCHLD);
    CHECK_EQ(info.si_code, CLD_EXITED);
    CHECK_EQ(info.si_status, 9);
    while (expected == 0) nap(kMs);
    CHECK_EQ(info.si_pid, expected);
  });
  stop = true;  // it does not block SIGCHLD
  join(computing);
  settle();
  child = child_that([] { return 9; });
  expected = child;
  join(waiter);
  wait_exit(child, 9);
}

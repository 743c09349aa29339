// abi: threads=6
// vfork(2), execve(2): vfork's child has its parent's mask and dispositions: a handler runs in it when it is signalled, what it
// ignores the program that it executes ignores, what it has blocked stays blocked. Its own changes are not its parent's.
#include "process.h"

namespace {

volatile pid_t handled_by = 0;

void check_program() {
  struct sigaction action;
  CHECK_EQ(sigaction(SIGUSR1, nullptr, &action), 0);
  CHECK(action.sa_handler == SIG_DFL);
  for (int signal : {SIGHUP, SIGPIPE, SIGRTMIN + 3}) {
    CHECK_EQ(sigaction(signal, nullptr, &action), 0);
    CHECK(action.sa_handler == SIG_IGN);
  }
  sigset_t mask;
  CHECK_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask), 0);
  CHECK(sigismember(&mask, SIGUSR2) == 1 && sigismember(&mask, SIGTERM) == 0);
}

}  // namespace

int main(int count, char**) {
  if (count > 1) {
    check_program();
    return 12;
  }
  Crowd crowd;
  const std::string self = executable_directory() + "/vfork_handlers";
  install(SIGUSR1, [](int) { handled_by = getpid(); });
  install(SIGHUP, SIG_IGN);
  install(SIGRTMIN + 3, SIG_IGN);
  const sigset_t blocked = signal_set({SIGUSR2});
  join(start([&] {
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
    for (int how = 0; how < 3; ++how) {
      handled_by = 0;
      const char* words[] = {self.c_str(), "again", nullptr};
      const pid_t child = vfork();
      if (child == 0) {
        struct sigaction action;
        if (sigaction(SIGUSR1, nullptr, &action) != 0 || action.sa_handler == SIG_DFL) _exit(2);
        syscall(SYS_kill, syscall(SYS_getpid), SIGUSR1);
        if (handled_by != syscall(SYS_getpid)) _exit(3);
        syscall(SYS_kill, syscall(SYS_getpid), SIGUSR2);  // stays blocked
        if (how == 0) _exit(12);
        action.sa_handler = SIG_IGN;
        sigaction(how == 1 ? SIGPIPE : SIGTTOU, &action, nullptr);
        sigaction(SIGPIPE, &action, nullptr);
        execv(self.c_str(), const_cast<char**>(words));
        _exit(4);
      }
      wait_exit(child, 12);
      CHECK_EQ(handled_by, child);
      struct sigaction action;
      CHECK_EQ(sigaction(SIGPIPE, nullptr, &action), 0);
      CHECK(action.sa_handler == SIG_DFL);
      sigset_t pending;
      CHECK_EQ(sigpending(&pending), 0);
      CHECK_EQ(sigismember(&pending, SIGUSR2), 0);
    }
    raise(SIGUSR1);
    CHECK_EQ(handled_by, getpid());
  }));
  crowd.end();
}

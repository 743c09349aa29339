// abi: threads=7
// waitpid(2), waitid(2), wait4(2): WNOHANG, WNOWAIT, WUNTRACED and WCONTINUED, P_PID, P_PGID, P_PIDFD, P_ALL, by another thread than
// the one that forked; what siginfo and rusage say; ECHILD and EINVAL.
#include <sys/resource.h>

#include "process.h"

namespace {

int ends[2];

pid_t make(int code, bool own_group = false) {
  CHECK_EQ(pipe(ends), 0);
  const pid_t child = start_child([code] {
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    burn(3 * kMs);
    _exit(code);
  });
  if (own_group) CHECK_EQ(setpgid(child, child), 0);
  return child;
}

// The one that was made last.
void let_go() { CHECK_EQ(write(ends[1], "x", 1), 1); }

void check(const siginfo_t& info, pid_t child, int code, int status) {
  CHECK_EQ(info.si_pid, child);
  CHECK_EQ(info.si_signo, SIGCHLD);
  CHECK_EQ(info.si_code, code);
  CHECK_EQ(info.si_status, status);
  CHECK_EQ(info.si_uid, getuid());
}

siginfo_t wait_for(idtype_t kind, id_t id, int options) {
  siginfo_t info = {};
  int result;
  do {
    result = waitid(kind, id, &info, options);
  } while (result == -1 && errno == EINTR);
  CHECK_EQ(result, 0);
  return info;
}

void ended(pid_t child) {
  const auto id = static_cast<id_t>(child);
  int status = -1;
  siginfo_t info;
  info.si_pid = -1;
  CHECK_EQ(waitpid(child, &status, WNOHANG), 0);
  CHECK_EQ(waitid(P_PID, id, &info, WEXITED | WNOHANG), 0);
  CHECK_EQ(info.si_pid, 0);
  let_go();
  for (int i = 0; i < 2; ++i) check(wait_for(P_PID, id, WEXITED | WNOWAIT), child, CLD_EXITED, 31);
  rusage usage = {};
  CHECK_EQ(wait4(child, &status, WNOHANG, &usage), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 31);
  CHECK(usage.ru_utime.tv_sec + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec > 0);
  CHECK_ERRNO(waitpid(child, nullptr, WNOHANG), ECHILD);
}

void stopped(pid_t child) {
  const auto id = static_cast<id_t>(child);
  int status = -1;
  CHECK_EQ(kill(child, SIGSTOP), 0);
  check(wait_for(P_PID, id, WSTOPPED | WNOWAIT), child, CLD_STOPPED, SIGSTOP);
  CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
  CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  CHECK_EQ(waitpid(child, &status, WUNTRACED | WNOHANG), 0);
  CHECK_EQ(kill(child, SIGCONT), 0);
  check(wait_for(P_PID, id, WCONTINUED), child, CLD_CONTINUED, SIGCONT);
  CHECK_EQ(kill(child, SIGTERM), 0);
  check(wait_for(P_PID, id, WEXITED), child, CLD_KILLED, SIGTERM);
}

}  // namespace

int main() {
  Crowd crowd;
  const pid_t second = make(32), first = make(31);
  join(start([=] {
    ended(first);
    stopped(second);
  }));
  // Groups and descriptors.
  pid_t child = 0;
  join(start([&child] { child = make(33, true); }));
  CHECK_ERRNO(waitpid(-getpgrp(), nullptr, WNOHANG), ECHILD);  // none in our own group
  let_go();
  check(wait_for(P_PGID, static_cast<id_t>(child), WEXITED), child, CLD_EXITED, 33);
  child = make(34);
  const long descriptor = syscall(SYS_pidfd_open, child, 0);
  let_go();
  if (descriptor >= 0) {
    check(wait_for(static_cast<idtype_t>(3) /* P_PIDFD */, static_cast<id_t>(descriptor), WEXITED), child,
          CLD_EXITED, 34);
    close(static_cast<int>(descriptor));
  } else {
    wait_exit(child, 34);
  }
  child = make(35);
  let_go();
  check(wait_for(P_ALL, 0, WEXITED), child, CLD_EXITED, 35);
  // Mistakes.
  siginfo_t info;
  CHECK_ERRNO(wait(nullptr), ECHILD);
  CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED), ECHILD);
  CHECK_ERRNO(waitid(P_ALL, 0, &info, 0), EINVAL);
  CHECK_ERRNO(waitpid(-1, nullptr, 0x1000), EINVAL);
  crowd.end();
}

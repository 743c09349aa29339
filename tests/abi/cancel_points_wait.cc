// abi: threads=10
// Waiting for children is a cancellation point (pthreads(7)); the child stays to be waited for, whether it had ended
// when the request was pending or was running when it arrived.
#include <sys/resource.h>

#include "cancel.h"

static pid_t ended, running;

static std::vector<Point> points(pid_t child) {
  return {
      {"wait", [] { wait(nullptr); }},
      {"waitpid", [child] { waitpid(child, nullptr, 0); }},
      {"wait3", [] { wait3(nullptr, 0, nullptr); }},
      {"wait4",
       [child] {
         rusage used;
         wait4(child, nullptr, 0, &used);
       }},
      {"waitid",
       [child] {
         siginfo_t info;
         waitid(P_PID, static_cast<id_t>(child), &info, WEXITED);
       }},
  };
}

int main() {
  int hold[2];
  CHECK_EQ(pipe(hold), 0);
  ended = fork();
  if (ended == 0) _exit(3);
  siginfo_t info;
  CHECK_EQ(waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT), 0);
  cancel_pending(points(ended));
  wait_exit(ended, 3);

  running = fork();
  if (running == 0) {
    char byte;
    close(hold[1]);
    read(hold[0], &byte, 1);
    _exit(4);
  }
  cancel_blocked(points(running));
  close(hold[1]);
  wait_exit(running, 4);
  CHECK_ERRNO(wait(nullptr), ECHILD);
}

// abi: threads=4
// signal(7): wait4, waitid and their like are restarted after a handler with SA_RESTART and end with EINTR without it;
// the child is not lost.
#include <sys/resource.h>

#include "interrupt.h"

static int ends[2];
static std::atomic<pid_t> child{0};

// Ends when a byte can be read.
static void new_child() {
  const pid_t fresh = fork();
  CHECK(fresh >= 0);
  if (fresh == 0) {
    char byte;
    _exit(read(ends[0], &byte, 1) == 1 ? 5 : 6);
  }
  child = fresh;
}

static void let_go() { CHECK_EQ(write(ends[1], "x", 1), 1); }

static long waited(pid_t got, int status) {
  if (got == -1) return -errno;
  CHECK_EQ(got, child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  new_child();
  return 0;
}

int main() {
  CHECK_EQ(pipe(ends), 0);
  join(start([] {}));
  new_child();
  try_signals({
      {"waitpid",
       [] {
         int status = 0;
         const pid_t got = waitpid(child, &status, 0);
         return waited(got, status);
       },
       let_go, 0, Restart::yes},
      {"wait4",
       [] {
         int status = 0;
         rusage usage;
         const pid_t got = wait4(-1, &status, 0, &usage);
         return waited(got, status);
       },
       let_go, 0, Restart::yes},
      {"waitid",
       [] {
         siginfo_t info = {};
         const int result = waitid(P_PID, static_cast<id_t>(child.load()), &info, WEXITED);
         if (result == 0) CHECK_EQ(info.si_status, 5);
         return waited(result == -1 ? -1 : info.si_pid, 5 << 8);
       },
       let_go, 0, Restart::yes},
  });
  let_go();
  wait_exit(child, 5);
}

// abi: threads=5 bound=1 counters=bound_threads:1-1
// The usual way to trace: fork, PTRACE_TRACEME in the child, waitpid, and on. The child's tracer is who has forked it,
// although the wait may have gone on elsewhere.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "abi.h"

int main() {
  std::atomic<bool> stop{false};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i)
    threads.push_back(start([&] {
      while (!stop) {
        burn(100'000);
        nap(100'000);
      }
    }));
  bool refused = false;
  join(start([&] {
    for (int i = 0; i < 30 && !refused; ++i) {
      const pid_t child = fork();
      CHECK(child >= 0);
      if (child == 0) {
        nap(2 * kMs);
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kSkip);
        raise(SIGSTOP);
        _exit(3);
      }
      int status;
      CHECK_EQ(waitpid(child, &status, 0), child);
      refused = WIFEXITED(status) && WEXITSTATUS(status) == kSkip;
      if (refused) break;
      CHECK(WIFSTOPPED(status));
      CHECK(ptrace(PTRACE_CONT, child, nullptr, nullptr) == 0);
      CHECK_EQ(waitpid(child, &status, 0), child);
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
  }));
  stop = true;
  join_all(threads);
  if (refused) skip("this machine does not let a process trace its child");
}

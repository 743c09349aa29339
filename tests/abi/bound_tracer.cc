// abi: threads=6 bound=1 counters=bound_threads:1-1
// A tracee belongs to the kernel thread that seized it: the thread that did goes on to command it, among threads that
// compute, block and yield.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "abi.h"

int main() {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) nap(kMs);
  }
  std::atomic<bool> stop{false};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 5; ++i)
    threads.push_back(start([&, i] {
      while (!stop) {
        if (i % 2)
          burn(kMs / 2);
        else
          nap(kMs / 4);
        sched_yield();
      }
    }));
  bool refused = false;
  const pthread_t tracer = start([&] {
    if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) {
      CHECK_EQ(errno, EPERM);
      refused = true;
      return;
    }
    for (int i = 0; i < 40; ++i) {
      CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr), 0);
      int status;
      CHECK_EQ(waitpid(child, &status, __WALL), child);
      CHECK(WIFSTOPPED(status));
      sched_yield();
      nap(300'000);
      user_regs_struct registers;
      CHECK_EQ(ptrace(PTRACE_GETREGS, child, nullptr, &registers), 0);
      CHECK(registers.rip != 0);
      CHECK_EQ(ptrace(PTRACE_CONT, child, nullptr, nullptr), 0);
    }
    CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr), 0);
    CHECK_EQ(waitpid(child, nullptr, __WALL), child);
    CHECK_EQ(ptrace(PTRACE_DETACH, child, nullptr, nullptr), 0);
  });
  join(tracer);
  stop = true;
  join_all(threads);
  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(waitpid(child, nullptr, 0), child);
  if (refused) skip("this machine does not let a process trace its child");
}

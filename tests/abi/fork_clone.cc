// abi: threads=6
// clone(2) without CLONE_VM, with a stack for the child: a copy of the process that goes on in a function on that stack, with
// the parent's handlers, mask and descriptors; it may make threads, and its function's result is its status.
#include <sched.h>
#include <sys/mman.h>

#include "process.h"

namespace {

int handled = 0;
char stack[256 * 1024];
constexpr int number = 12345;

int child_function(void* argument) {
  char here;
  CHECK(&here >= stack && &here < stack + sizeof stack);
  CHECK_EQ(*static_cast<int*>(argument), number);
  *static_cast<int*>(argument) = 1;  // its own copy
  CHECK_EQ(syscall(SYS_gettid), getpid());
  CHECK_EQ(kernel_threads(), 1);
  raise(SIGUSR1);
  CHECK_EQ(handled, 1);
  sigset_t mask;
  CHECK_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask), 0);
  CHECK(sigismember(&mask, SIGUSR2) == 1 && sigismember(&mask, SIGTERM) == 0);
  use_threads();
  run_child([] { use_threads(2); });
  return 23;
}

}  // namespace

int main() {
  int value = number;
  // Before there are threads.
  install(SIGUSR1, [](int) { ++handled; });
  const sigset_t blocked = signal_set({SIGUSR2});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
  wait_exit(clone(child_function, stack + sizeof stack, SIGCHLD, &value), 23);
  Crowd crowd;
  for (int round = 0; round < 2; ++round) {
    wait_exit(clone(child_function, stack + sizeof stack, SIGCHLD, &value), 23);
    join(start([&] { wait_exit(clone(child_function, stack + sizeof stack, SIGCHLD, &value), 23); }));
  }
  CHECK_EQ(value, number);
  CHECK_EQ(handled, 0);
  // Without a stack it is fork.
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    use_threads(2);
    _exit(24);
  }
  wait_exit(static_cast<pid_t>(child), 24);
  crowd.end();
}

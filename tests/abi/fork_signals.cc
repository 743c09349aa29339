// abi: threads=7
// fork(2): "the child inherits copies of the parent's signal mask, alternate stack and dispositions; the set of pending signals
// is initially empty" - of the thread that forks, with signals pending for it and for the process.
#include "process.h"

namespace {

std::atomic<int> usr1{0}, on_stack{0};
char other_stack[65536];

void on_other_stack(int) {
  char here;
  if (&here >= other_stack && &here < other_stack + sizeof other_stack) ++on_stack;
}

void check_child(const struct sigaction& ignored) {
  sigset_t mask, pending;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  CHECK_EQ(sigpending(&pending), 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal == 32 || signal == 33) continue;
    CHECK_EQ(sigismember(&mask, signal), signal == SIGUSR2 || signal == SIGHUP || signal == SIGRTMIN + 1);
    CHECK_EQ(sigismember(&pending, signal), 0);
  }
  struct sigaction action;
  CHECK_EQ(sigaction(SIGUSR1, nullptr, &action), 0);
  CHECK_EQ(action.sa_flags & (SA_RESTART | SA_NODEFER | SA_SIGINFO), SA_RESTART | SA_NODEFER);
  CHECK_EQ(sigismember(&action.sa_mask, SIGTERM), 1);
  CHECK_EQ(sigaction(SIGPIPE, nullptr, &action), 0);
  CHECK(action.sa_handler == SIG_IGN && ignored.sa_handler == SIG_IGN);
  stack_t stack;
  CHECK_EQ(sigaltstack(nullptr, &stack), 0);
  CHECK(stack.ss_sp == other_stack && stack.ss_size == sizeof other_stack && stack.ss_flags == 0);
  // Handlers run; what is blocked stays so.
  raise(SIGUSR1);
  CHECK_EQ(usr1.load(), 1);
  raise(SIGUSR2);
  CHECK_EQ(sigpending(&pending), 0);
  CHECK_EQ(sigismember(&pending, SIGUSR2), 1);
  raise(SIGALRM);
  CHECK_EQ(on_stack.load(), 1);
}

}  // namespace

int main() {
  Crowd crowd;
  struct sigaction action = {};
  action.sa_handler = [](int) { ++usr1; };
  action.sa_flags = SA_RESTART | SA_NODEFER;
  sigaddset(&action.sa_mask, SIGTERM);
  CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  action.sa_handler = on_other_stack;
  action.sa_flags = SA_ONSTACK;
  CHECK_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  action.sa_handler = SIG_IGN;
  CHECK_EQ(sigaction(SIGPIPE, &action, nullptr), 0);
  const sigset_t process = signal_set({SIGHUP});  // in all threads: it stays pending for the process
  std::atomic<bool> done{false};
  join(start([&] {
    const sigset_t mask = signal_set({SIGUSR2, SIGHUP, SIGRTMIN + 1});
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &mask, nullptr), 0);
    stack_t stack = {};
    stack.ss_sp = other_stack;
    stack.ss_size = sizeof other_stack;
    CHECK_EQ(sigaltstack(&stack, nullptr), 0);
    raise(SIGUSR2);
    raise(SIGHUP);
    for (int i = 0; i < 3; ++i) CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN + 1, {.sival_int = i}), 0);
    run_child([&] {
      check_child(action);
      use_threads();
      // The runtime's start keeps what was made since.
      sigset_t pending;
      CHECK_EQ(sigpending(&pending), 0);
      CHECK_EQ(sigismember(&pending, SIGUSR2), 1);
    });
    // The parent's are as they were.
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(sigismember(&pending, SIGUSR2) == 1 && sigismember(&pending, SIGHUP) == 1);
    siginfo_t info;
    const sigset_t one = signal_set({SIGRTMIN + 1});
    for (int i = 0; i < 3; ++i) {
      CHECK_EQ(sigwaitinfo(&one, &info), SIGRTMIN + 1);
      CHECK_EQ(info.si_value.sival_int, i);
    }
    stack.ss_flags = SS_DISABLE;
    CHECK_EQ(sigaltstack(&stack, nullptr), 0);
    done = true;
  }));
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &process, nullptr), 0);
  CHECK_EQ(usr1.load(), 0);
  CHECK(done);
  crowd.end();
}

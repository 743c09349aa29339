// abi: threads=300 reused=100
// A thread starts with its creator's mask, nothing pending, no alternate stack, its creator's name, control words and
// scheduling; signals for a thread that has finished change nothing, for it or for later ones.
#include <fenv.h>
#include <sched.h>
#include <sys/prctl.h>

#include "abi.h"

static std::atomic<int> handled{0};
static char alternate[65536];

static bool is_blocked(int signal) {
  sigset_t set;
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &set), 0);
  return sigismember(&set, signal) == 1;
}

static void leave_traces() {
  const sigset_t set = signal_set({SIGUSR1, SIGUSR2, SIGTERM});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGUSR2), 0);
  stack_t stack = {alternate, 0, sizeof alternate};
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  CHECK_EQ(prctl(PR_SET_NAME, "traces"), 0);
  CHECK_EQ(fesetround(FE_UPWARD), 0);
}

static void expect_none() {
  CHECK(!is_blocked(SIGUSR1) && !is_blocked(SIGTERM));
  sigset_t pending;
  CHECK_EQ(sigpending(&pending), 0);
  CHECK(!sigismember(&pending, SIGUSR1) && !sigismember(&pending, SIGUSR2));
  stack_t stack;
  CHECK_EQ(sigaltstack(nullptr, &stack), 0);
  CHECK_EQ(stack.ss_flags, SS_DISABLE);
  char name[16] = {};
  CHECK_EQ(prctl(PR_GET_NAME, name), 0);
  CHECK(strcmp(name, "creator") == 0);
  CHECK_EQ(fegetround(), FE_TONEAREST);
}

int main() {
  install(SIGUSR1, [](int) { ++handled; });
  install(SIGUSR2, [](int) { ++handled; });
  CHECK_EQ(prctl(PR_SET_NAME, "creator"), 0);
  for (int i = 0; i < 50; ++i) {
    join(start(leave_traces));
    join(start(expect_none));
  }
  CHECK_EQ(handled, 0);
  // The mask at each creation.
  for (int i = 0; i < 25; ++i) {
    const sigset_t set = signal_set({SIGUSR2});
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
    CHECK_EQ(fesetround(FE_DOWNWARD), 0);
    join(start([] {
      CHECK(is_blocked(SIGUSR2) && !is_blocked(SIGUSR1));
      CHECK_EQ(fegetround(), FE_DOWNWARD);
    }));
    CHECK_EQ(fesetround(FE_TONEAREST), 0);
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    join(start(expect_none));
  }
  // Finished, not joined.
  for (int i = 0; i < 25; ++i) {
    std::atomic<bool> done{false};
    const pthread_t thread = start([&done] { done = true; });
    while (!done) sched_yield();
    nap(kMs / 10);
    kill_perhaps_ended(thread, 0);
    kill_perhaps_ended(thread, SIGUSR1);
    join(thread);
    join(start(expect_none));
  }
  // A signal that arrives while the thread still computes is handled by it, once.
  for (int i = 0; i < 50; ++i) {
    handled = 0;
    std::atomic<bool> ready{false}, sent{false};
    const pthread_t thread = start([&] {
      ready = true;
      while (!sent) sched_yield();
    });
    while (!ready) sched_yield();
    CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
    sent = true;
    join(thread);
    CHECK_EQ(handled, 1);
    join(start(expect_none));
  }
  // Scheduling that a thread gave itself.
  for (int i = 0; i < 10; ++i) {
    join(start([] {
      sched_param param = {0};
      CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_BATCH, &param), 0);
    }));
    join(start([] {
      int policy;
      sched_param param;
      CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &param), 0);
      CHECK_EQ(policy, SCHED_OTHER);
    }));
  }
  // Signals of the process find a thread that lives.
  const sigset_t set = signal_set({SIGUSR1});
  handled = 0;
  const pthread_t waiter = start([] {
    while (handled == 0) nap(kMs);
  });
  join(start([] {}));
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  join(waiter);
  CHECK_EQ(handled, 1);
}

// abi: threads=5
// Signal masks: inherited at creation, a thread's own afterwards; blocked signals wait and come on unblocking.
#include "abi.h"

static thread_local int count = 0;

static bool is_blocked(int signal) {
  sigset_t now;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
  return sigismember(&now, signal) == 1;
}

static bool is_pending(int signal) {
  sigset_t now;
  CHECK_EQ(sigpending(&now), 0);
  return sigismember(&now, signal) == 1;
}

int main() {
  for (int signal : {SIGUSR1, SIGUSR2, SIGRTMIN + 1}) install(signal, [](int) { ++count; });
  const sigset_t one = signal_set({SIGUSR1}), two = signal_set({SIGUSR2}),
                 both = signal_set({SIGUSR1, SIGUSR2});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
  join(start([&] {
    CHECK(is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &two, nullptr), 0);
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &one, nullptr), 0);
    CHECK(!is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
    sched_yield();
    CHECK(!is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
    join(start([] { CHECK(!is_blocked(SIGUSR1) && is_blocked(SIGUSR2)); }));
  }));
  CHECK(is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));

  std::atomic<int> stage{0};
  const pthread_t target = start([&] {
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &both, nullptr), 0);
    stage = 1;
    while (stage < 2) burn(kMs / 10);
    CHECK_EQ(count, 0);
    CHECK(is_pending(SIGUSR1) && !is_pending(SIGUSR2));
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &one, nullptr), 0);
    CHECK_EQ(count, 1);  // twice sent, once pending
    CHECK(!is_pending(SIGUSR1));
  });
  while (stage < 1) sched_yield();
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
  CHECK(!is_pending(SIGUSR1));  // that one waits for the target alone
  stage = 2;
  join(target);

  // Real-time signals queue up, one delivery each.
  const sigset_t realtime = signal_set({SIGRTMIN + 1});
  std::atomic<int> step{0};
  const pthread_t queued = start([&] {
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &realtime, nullptr), 0);
    step = 1;
    while (step < 2) sched_yield();
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &realtime, nullptr), 0);
    CHECK_EQ(count, 5);
  });
  while (step < 1) sched_yield();
  for (int i = 0; i < 5; ++i) CHECK_EQ(pthread_kill(queued, SIGRTMIN + 1), 0);
  step = 2;
  join(queued);

  // Process-directed while every thread blocks it: pending for all, taken by the first that unblocks.
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  CHECK(is_pending(SIGUSR1));
  join(start([&] {
    CHECK(is_pending(SIGUSR1));
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &one, nullptr), 0);
    CHECK_EQ(count, 1);
  }));
  CHECK(!is_pending(SIGUSR1));
}

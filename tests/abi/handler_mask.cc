// abi: threads=4
// While a handler runs, its signal and sa_mask are blocked on that thread, unless SA_NODEFER; afterwards the old
// mask is back; SA_RESETHAND runs once.
#include "abi.h"

static thread_local int depth = 0, deepest = 0, calls = 0;

static bool is_blocked(int signal) {
  sigset_t now;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
  return sigismember(&now, signal) == 1;
}

static void deferring(int signal) {
  CHECK(is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
  ++depth;
  if (depth > deepest) deepest = depth;
  if (++calls < 3) CHECK_EQ(raise(signal), 0);
  sched_yield();
  --depth;
}

static void nesting(int signal) {
  ++depth;
  if (depth > deepest) deepest = depth;
  if (++calls < 3) CHECK_EQ(raise(signal), 0);
  --depth;
}

int main() {
  struct sigaction action = {};
  action.sa_handler = deferring;
  sigaddset(&action.sa_mask, SIGUSR2);
  CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  install(SIGHUP, nesting, SA_NODEFER);
  install(
      SIGWINCH, [](int) { ++calls; }, SA_RESETHAND);
  const auto body = [] {
    calls = deepest = 0;
    raise(SIGUSR1);
    CHECK_EQ(calls, 3);
    CHECK_EQ(deepest, 1);
    CHECK(!is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));
    calls = deepest = 0;
    raise(SIGHUP);
    CHECK_EQ(calls, 3);
    CHECK_EQ(deepest, 3);
  };
  body();
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start(body));
  join_all(threads);
  calls = 0;
  raise(SIGWINCH);
  raise(SIGWINCH);  // ignored by default, now that the handler is gone
  CHECK_EQ(calls, 1);
}

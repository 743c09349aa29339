// abi: threads=3
// signal(7), POSIX 2.4.1: of several pending signals the thread's own come before the process's, the lowest number first.
// Unblocked at once, their handlers run in that order if each blocks the others; without that, each interrupts the one
// before it, which has not begun.
#include "abi.h"

static std::vector<int> order;
static const int kSignals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGRTMIN + 1, SIGRTMIN + 2};

static void note(int signal) { order.push_back(signal); }

static void actions(bool masked) {
  struct sigaction action = {};
  action.sa_handler = note;
  if (masked) sigfillset(&action.sa_mask);
  for (int signal : kSignals) CHECK_EQ(sigaction(signal, &action, nullptr), 0);
}

static void waited_for(const sigset_t* set) {
  // The process's first, so that the order is not that of sending.
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  CHECK_EQ(kill(getpid(), SIGRTMIN + 1), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGRTMIN + 2), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGTERM), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGUSR2), 0);
  for (int expected : {SIGUSR2, SIGTERM, SIGRTMIN + 2, SIGUSR1, SIGRTMIN + 1}) {
    const timespec minute = {60, 0};
    CHECK_EQ(sigtimedwait(set, nullptr, &minute), expected);
  }
}

static void handled(const sigset_t* set, bool masked) {
  actions(masked);
  order.clear();
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, set, nullptr), 0);
  for (int i = 4; i >= 0; --i) CHECK_EQ(pthread_kill(pthread_self(), kSignals[i]), 0);
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, set, nullptr), 0);
  CHECK_EQ(order.size(), 5);
  std::vector<int> expected = {SIGUSR1, SIGUSR2, SIGTERM, SIGRTMIN + 1, SIGRTMIN + 2};
  if (!masked) expected = {SIGRTMIN + 2, SIGRTMIN + 1, SIGTERM, SIGUSR2, SIGUSR1};
  for (size_t i = 0; i < 5; ++i) CHECK_EQ(order[i], expected[i]);
}

int main() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kSignals) sigaddset(&set, signal);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  actions(true);
  join(start([&] { waited_for(&set); }));
  join(start([&] { handled(&set, true); }));
  join(start([&] { handled(&set, false); }));
  waited_for(&set);
  handled(&set, true);
  handled(&set, false);
}

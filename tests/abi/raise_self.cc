// abi: threads=10
// raise, pthread_kill to oneself and pthread_sigqueue: handled before the call returns, by the same thread, with
// the right siginfo.
#include "abi.h"

static thread_local int seen_signal = 0, seen_code = 0, seen_value = 0;
static thread_local pid_t seen_pid = 0;

static void handler(int signal, siginfo_t* info, void*) {
  seen_signal = signal;
  seen_code = info->si_code;
  seen_pid = info->si_pid;
  seen_value = info->si_value.sival_int;
}

int main() {
  install_info(SIGUSR1, handler);
  install_info(SIGRTMIN + 2, handler);
  const auto body = [] {
    for (int i = 0; i < 50; ++i) {
      seen_signal = 0;
      CHECK_EQ(raise(SIGUSR1), 0);
      CHECK_EQ(seen_signal, SIGUSR1);
      CHECK_EQ(seen_code, SI_TKILL);
      CHECK_EQ(seen_pid, getpid());
      seen_signal = 0;
      CHECK_EQ(pthread_kill(pthread_self(), SIGRTMIN + 2), 0);
      CHECK_EQ(seen_signal, SIGRTMIN + 2);
      seen_signal = 0;
      sigval value;
      value.sival_int = 1000 + i;
      CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN + 2, value), 0);
      CHECK_EQ(seen_signal, SIGRTMIN + 2);
      CHECK_EQ(seen_value, 1000 + i);
      CHECK_EQ(seen_code, SI_QUEUE);
      if (i % 10 == 0) sched_yield();
    }
  };
  body();
  std::vector<pthread_t> threads;
  for (int i = 0; i < 10; ++i) threads.push_back(start(body));
  join_all(threads);
}

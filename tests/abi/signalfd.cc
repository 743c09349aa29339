// abi: threads=2
// signalfd: process-directed signals, blocked everywhere, are read by a thread while another computes.
#include <sys/signalfd.h>

#include "abi.h"

int main() {
  const sigset_t set = signal_set({SIGTERM, SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  const int file = signalfd(-1, &set, SFD_CLOEXEC);
  CHECK(file >= 0);
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs);
  });
  std::atomic<int> seen{0};
  const pthread_t reader = start([file, &seen] {
    for (int expected : {SIGTERM, SIGUSR1}) {
      signalfd_siginfo info;
      CHECK_EQ(read(file, &info, sizeof info), sizeof info);
      CHECK_EQ(info.ssi_signo, expected);
      CHECK_EQ(info.ssi_pid, getpid());
      ++seen;
    }
  });
  settle();
  CHECK_EQ(kill(getpid(), SIGTERM), 0);
  while (seen < 1) nap(kMs);  // of two that are pending the lower one is read first
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  join(reader);
  stop = true;
  join(computing);
}

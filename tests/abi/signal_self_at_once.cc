// abi: threads=3 stats=none
// POSIX kill(), sigqueue(): a signal that a process sends itself, not blocked by the sending thread and by no other open, is
// delivered before the call returns: kill(pid), kill(0), kill(-group), sigqueue, rt_sigqueueinfo, pidfd_send_signal.
#include "abi.h"

static int count = 0;
static pthread_t handled_by;

static void handler(int) {
  ++count;
  handled_by = pthread_self();
}

static void at_once(int pidfd) {
  int expected = count;
  const auto one_more = [&expected] {
    CHECK_EQ(count, ++expected);
    CHECK(pthread_equal(handled_by, pthread_self()) != 0);
  };
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    one_more();
    CHECK_EQ(sigqueue(getpid(), SIGUSR1, sigval{}), 0);
    one_more();
    CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 5, sigval{}), 0);
    one_more();
    CHECK_EQ(kill(0, SIGUSR1), 0);
    one_more();
    CHECK_EQ(kill(-getpgrp(), SIGRTMIN + 5), 0);
    one_more();
    if (pidfd >= 0) {
      CHECK_EQ(syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, nullptr, 0), 0);
      one_more();
    }
  }
}

int main() {
  // A group of our own.
  const pid_t child = fork();
  if (child != 0) {
    wait_exit(child, 0);
    return 0;
  }
  CHECK_EQ(setpgid(0, 0), 0);
  install(SIGUSR1, handler);
  install(SIGRTMIN + 5, handler);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  const sigset_t set = signal_set({SIGUSR1, SIGRTMIN + 5});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs / 2);
  });
  const pthread_t sleeping = start([&stop] {
    while (!stop) nap(5 * kMs);
  });
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
  at_once(pidfd);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  join(start([&] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    at_once(pidfd);
  }));
  stop = true;
  join(computing);
  join(sleeping);
  exit(0);
}

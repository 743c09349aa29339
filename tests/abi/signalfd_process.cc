// abi: threads=3
// signalfd(2): it reads what was pending before it was made, real-time values in order, SIGCHLD with the child's status, from this
// process and another; a thread that does not block the signal has its handler called instead; without readers signals stay
// pending, and sigwait takes them.
#include <sys/signalfd.h>

#include "abi.h"

static std::atomic<int> handled{0};

static signalfd_siginfo take(int file) {
  signalfd_siginfo info;
  CHECK_EQ(read(file, &info, sizeof info), sizeof info);
  return info;
}

int main() {
  const int realtime = SIGRTMIN + 7;
  const sigset_t set = signal_set({SIGUSR1, SIGUSR2, SIGCHLD, realtime});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  install(SIGUSR2, [](int) { ++handled; });
  join(start([] {}));
  for (int i = 0; i < 4; ++i) CHECK_EQ(sigqueue(getpid(), realtime, sigval{.sival_int = i}), 0);
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  const int file = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  CHECK(file >= 0);
  for (int i = 4; i < 8; ++i) CHECK_EQ(sigqueue(getpid(), realtime, sigval{.sival_int = i}), 0);
  join(start([&] {
    const signalfd_siginfo first = take(file);
    CHECK_EQ(first.ssi_signo, SIGUSR1);
    CHECK_EQ(first.ssi_code, SI_USER);
    CHECK_EQ(first.ssi_pid, getpid());
    for (int i = 0; i < 4; ++i) CHECK_EQ(take(file).ssi_int, i);
  }));
  for (int i = 4; i < 8; ++i) {
    const signalfd_siginfo info = take(file);
    CHECK_EQ(info.ssi_signo, realtime);
    CHECK_EQ(info.ssi_code, SI_QUEUE);
    CHECK_EQ(info.ssi_int, i);
  }
  signalfd_siginfo none;
  CHECK_ERRNO(read(file, &none, sizeof none), EAGAIN);

  const pid_t child = fork();
  if (child == 0) {
    const int first = sigqueue(getppid(), realtime, sigval{.sival_int = 50});
    _exit(first == 0 ? 6 : 1);
  }
  wait_exit(child, 6);
  const signalfd_siginfo ended = take(file);  // the lower number first
  CHECK_EQ(ended.ssi_signo, SIGCHLD);
  CHECK_EQ(ended.ssi_pid, child);
  CHECK_EQ(ended.ssi_status, 6);
  CHECK_EQ(ended.ssi_code, CLD_EXITED);
  const signalfd_siginfo sent = take(file);
  CHECK_EQ(sent.ssi_signo, realtime);
  CHECK_EQ(sent.ssi_pid, child);
  CHECK_EQ(sent.ssi_int, 50);

  // A handler that is set while it is pending changes nothing for the file.
  CHECK_EQ(kill(getpid(), SIGCHLD), 0);
  install(SIGCHLD, [](int) { ++handled; });
  CHECK_EQ(take(file).ssi_signo, SIGCHLD);
  CHECK_ERRNO(read(file, &none, sizeof none), EAGAIN);

  // A thread that leaves it open is the one that gets it.
  std::atomic<bool> open{false}, stop{false};
  const pthread_t other = start([&] {
    const sigset_t one = signal_set({SIGUSR2});
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &one, nullptr), 0);
    open = true;
    while (!stop) nap(kMs);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
    open = false;
    while (stop) nap(kMs);
  });
  while (!open) nap(kMs);
  CHECK_EQ(kill(getpid(), SIGUSR2), 0);
  for (int i = 0; handled < 1 && i < 10000; ++i) nap(kMs);
  CHECK_EQ(handled, 1);
  CHECK_ERRNO(read(file, &none, sizeof none), EAGAIN);
  stop = true;
  while (open) nap(kMs);
  // Nobody any more: the file's again.
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(kill(getpid(), SIGUSR2), 0);
    CHECK_EQ(take(file).ssi_signo, SIGUSR2);
  }
  CHECK_EQ(handled, 1);
  stop = false;
  join(other);

  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  const timespec minute = {60, 0};
  CHECK_EQ(sigtimedwait(&set, nullptr, &minute), SIGUSR1);
  CHECK_ERRNO(read(file, &none, sizeof none), EAGAIN);
  CHECK_EQ(kill(getpid(), SIGUSR2), 0);
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
  CHECK_EQ(handled, 2);
}

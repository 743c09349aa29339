// abi: threads=3
// signalfd(2): a signal for one thread is read by that thread only, with its sender and value, in order; others find nothing. poll
// and epoll_wait of that thread see it, also when it comes while they wait; a read that waits gets it.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "abi.h"

static int file;
static std::atomic<int> stage{0};

static void wait_stage(int wanted) {
  while (stage < wanted) nap(kMs / 2);
}

static signalfd_siginfo take() {
  signalfd_siginfo info;
  CHECK_EQ(read(file, &info, sizeof info), sizeof info);
  CHECK_EQ(info.ssi_pid, getpid());
  CHECK_EQ(info.ssi_uid, getuid());
  return info;
}

static bool readable(int timeout) {
  pollfd item = {file, POLLIN, 0};
  const int n = poll(&item, 1, timeout);
  CHECK(n >= 0);
  return n == 1;
}

int main() {
  const sigset_t set = signal_set({SIGUSR1, SIGRTMIN + 1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  join(start([] {}));
  file = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  CHECK(file >= 0);
  const pthread_t target = start([] {
    wait_stage(1);  // pending before it looks
    CHECK(readable(0));
    CHECK_EQ(take().ssi_signo, SIGUSR1);
    for (int i = 0; i < 5; ++i) {
      const signalfd_siginfo info = take();
      CHECK_EQ(info.ssi_signo, SIGRTMIN + 1);
      CHECK_EQ(info.ssi_code, SI_QUEUE);
      CHECK_EQ(info.ssi_int, i);
    }
    signalfd_siginfo none;
    CHECK_ERRNO(read(file, &none, sizeof none), EAGAIN);
    CHECK(!readable(0));
    stage = 2;
    CHECK(readable(60000));  // it comes while poll waits
    const signalfd_siginfo info = take();
    CHECK_EQ(info.ssi_signo, SIGUSR1);
    CHECK_EQ(info.ssi_code, SI_TKILL);
    const int set_of_files = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event = {};
    event.events = EPOLLIN;
    CHECK_EQ(epoll_ctl(set_of_files, EPOLL_CTL_ADD, file, &event), 0);
    stage = 3;
    CHECK_EQ(epoll_wait(set_of_files, &event, 1, 60000), 1);
    CHECK_EQ(take().ssi_signo, SIGRTMIN + 1);
    CHECK_EQ(close(set_of_files), 0);
    CHECK_EQ(fcntl(file, F_SETFL, 0), 0);
    stage = 4;
    CHECK_EQ(take().ssi_signo, SIGUSR1);  // while read waits
    CHECK_EQ(fcntl(file, F_SETFL, O_NONBLOCK), 0);
    stage = 5;
    wait_stage(6);
    // Not read: it stays pending, for sigwait too.
    CHECK(readable(0));
    sigset_t now;
    CHECK_EQ(sigpending(&now), 0);
    CHECK(sigismember(&now, SIGUSR1) == 1);
    int signal = 0;
    const sigset_t one = signal_set({SIGUSR1});
    CHECK_EQ(sigwait(&one, &signal), 0);
    CHECK(!readable(0));
  });
  const auto nothing_here = [] {
    signalfd_siginfo none;
    CHECK_ERRNO(read(file, &none, sizeof none), EAGAIN);
    CHECK(!readable(0));
  };
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
  for (int i = 0; i < 5; ++i) CHECK_EQ(pthread_sigqueue(target, SIGRTMIN + 1, sigval{.sival_int = i}), 0);
  nothing_here();
  join(start(nothing_here));
  stage = 1;
  wait_stage(2);
  settle();
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
  nothing_here();
  wait_stage(3);
  settle();
  CHECK_EQ(pthread_kill(target, SIGRTMIN + 1), 0);
  wait_stage(4);
  settle();
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
  wait_stage(5);
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
  nothing_here();
  stage = 6;
  join(target);
}

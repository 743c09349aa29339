// abi: threads=3
// fcntl(2): O_ASYNC with F_SETOWN sends SIGIO, or the signal of F_SETSIG with si_fd, to the process; F_SETOWN_EX with F_OWNER_TID to one
// thread. F_GETOWN, F_GETOWN_EX and F_GETSIG tell what was set.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "abi.h"

static std::atomic<int> hits{0}, file{-1}, code{0};
static std::atomic<pthread_t> by{};

static void handler(int, siginfo_t* info, void*) {
  file = info->si_fd;
  code = info->si_code;
  by = pthread_self();
  ++hits;
}

static int ends[2];

static void drain() {
  char bytes[64];
  while (recv(ends[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
}

static void provoke() {
  const int before = hits;
  CHECK_EQ(send(ends[1], "x", 1, 0), 1);
  for (int i = 0; hits == before && i < 10000; ++i) nap(kMs);
  CHECK(hits > before);
  drain();
}

int main() {
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  install_info(SIGIO, handler);
  install_info(SIGRTMIN + 2, handler);
  std::atomic<pid_t> tids[2] = {0, 0};
  std::atomic<bool> stop{false};
  const auto body = [&](int i) {
    tids[i] = gettid();
    while (!stop) {
      if (i)
        burn(kMs / 2);
      else
        nap(2 * kMs);
    }
  };
  const pthread_t threads[] = {start([&] { body(0); }), start([&] { body(1); })};
  while (tids[0] == 0 || tids[1] == 0) nap(kMs);
  join(start([] {}));

  CHECK_EQ(fcntl(ends[0], F_SETOWN, getpid()), 0);
  CHECK_EQ(fcntl(ends[0], F_GETOWN), getpid());
  CHECK_EQ(fcntl(ends[0], F_SETFL, O_ASYNC), 0);
  provoke();
  CHECK_EQ(fcntl(ends[0], F_SETSIG, SIGRTMIN + 2), 0);
  CHECK_EQ(fcntl(ends[0], F_GETSIG), SIGRTMIN + 2);
  provoke();
  CHECK_EQ(file, ends[0]);
  CHECK_EQ(code, POLL_IN);

  for (int i = 0; i < 2; ++i) {
    for (int signal : {SIGRTMIN + 2, 0}) {
      f_owner_ex owner = {F_OWNER_TID, tids[i]}, now = {};
      CHECK_EQ(fcntl(ends[0], F_SETSIG, signal), 0);
      CHECK_EQ(fcntl(ends[0], F_SETOWN_EX, &owner), 0);
      CHECK_EQ(fcntl(ends[0], F_GETOWN_EX, &now), 0);
      CHECK_EQ(now.type, F_OWNER_TID);
      CHECK_EQ(now.pid, tids[i]);
      CHECK_EQ(fcntl(ends[0], F_GETOWN), tids[i]);
      CHECK_EQ(fcntl(ends[0], F_GETSIG), signal);
      for (int repeat = 0; repeat < 3; ++repeat) {
        provoke();
        CHECK(pthread_equal(by, threads[i]) != 0);
      }
    }
  }
  f_owner_ex owner = {F_OWNER_PID, getpid()};
  CHECK_EQ(fcntl(ends[0], F_SETOWN_EX, &owner), 0);
  CHECK_EQ(fcntl(ends[0], F_GETOWN), getpid());
  owner = {F_OWNER_TID, 0x3ffffffe};
  CHECK_ERRNO(fcntl(ends[0], F_SETOWN_EX, &owner), ESRCH);
  provoke();
  CHECK_EQ(fcntl(ends[0], F_SETFL, 0), 0);
  stop = true;
  for (pthread_t thread : threads) join(thread);
}

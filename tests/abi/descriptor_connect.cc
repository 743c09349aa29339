// abi: threads=6 descriptors=events counters=event_waits:4 timeout=60
// connect that has to wait, since the listener's queue is full: the kernel tries again after a second. While it waits it holds no
// kernel thread; it ends by an answer, by its time-out, or by a signal and goes on.
#include "descriptor.h"

namespace {

std::atomic<int> g_handled{0};

int made() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0);
  return fd;
}
int to(int fd, const sockaddr_in& at) {
  return connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
}
void receive(int signal, int flags) {
  struct sigaction action = {};
  action.sa_handler = [](int) { ++g_handled; };
  action.sa_flags = flags;
  CHECK_EQ(sigaction(signal, &action, nullptr), 0);
}

// A listener that takes no further connection until somebody accepts one.
struct Full {
  sockaddr_in address;
  int fd, filled[2];
  Full() {
    fd = listener(&address, 0);
    filled[0] = connected(address);
    filled[1] = made();
    CHECK_EQ(fcntl(filled[1], F_SETFL, O_NONBLOCK), 0);
    CHECK_ERRNO(to(filled[1], address), EINPROGRESS);
    settle();
  }
  void make_room() const { CHECK_EQ(listen(fd, 128), 0); }
  ~Full() { close(fd), close(filled[0]), close(filled[1]); }
};

void waits_for_room() {
  const Full full;
  std::atomic<int> over{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3; ++i)
    threads.push_back(start([&] {
      const int fd = made();
      CHECK_EQ(to(fd, full.address), 0);
      ++over;
      CHECK_ERRNO(to(fd, full.address), EISCONN);
      close(fd);
    }));
  settle();
  CHECK_EQ(over, 0);
  full.make_room();
  join_all(threads);
}

void times_out() {
  const Full full;
  const int fd = made();
  const timeval limit = {0, 50'000};
  CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
  const int64_t begun = now_ns();
  CHECK_ERRNO(to(fd, full.address), EINPROGRESS);
  CHECK(now_ns() - begun >= 45 * kMs);
  close(fd);
}

// The connection goes on; without SA_RESTART the program makes the call again itself.
void interrupted() {
  const Full full;
  const auto waits = [&](bool again) {
    return start([&full, again] {
      const int fd = made();
      if (again) CHECK_ERRNO(to(fd, full.address), EINTR);
      CHECK_EQ(to(fd, full.address), 0);
      close(fd);
    });
  };
  const pthread_t stops = waits(true), goes_on = waits(false);
  settle();
  CHECK_EQ(pthread_kill(stops, SIGUSR1), 0);
  CHECK_EQ(pthread_kill(goes_on, SIGUSR2), 0);
  settle();
  CHECK_EQ(g_handled, 2);
  full.make_room();
  join(stops);
  join(goes_on);
}

void wrong() {
  sockaddr_in nobody;
  const int listens = listener(&nobody);
  close(listens);
  const int fd = made();
  CHECK_ERRNO(to(fd, nobody), ECONNREFUSED);
  CHECK_ERRNO(connect(fd, reinterpret_cast<const sockaddr*>(8), sizeof nobody), EFAULT);
  CHECK_ERRNO(connect(fd, reinterpret_cast<const sockaddr*>(&nobody), 3), EINVAL);
  sockaddr_in other = nobody;
  other.sin_family = 99;
  CHECK_ERRNO(to(fd, other), EAFNOSUPPORT);
  close(fd);
  CHECK_ERRNO(to(fd, nobody), EBADF);
  const int file = open("/dev/null", O_RDWR);
  CHECK_ERRNO(to(file, nobody), ENOTSOCK);
  close(file);
  // It can be used again after a refusal.
  sockaddr_in somebody;
  const int at = listener(&somebody), again = made();
  CHECK_ERRNO(to(again, nobody), ECONNREFUSED);
  CHECK_EQ(to(again, somebody), 0);
  close(again);
  close(at);
}

}  // namespace

int main() {
  receive(SIGUSR1, 0);
  receive(SIGUSR2, SA_RESTART);
  join(start([] { wrong(); }));
  waits_for_room();
  times_out();
  interrupted();
  wrong();
}

// abi: threads=60 descriptors=events counters=event_waits:60 timeout=30
// Many threads wait for one socket with time-outs: what comes goes to one, is no new beginning for the others, and none waits for
// long beyond its time.
#include "descriptor.h"

namespace {

constexpr int64_t kLimit = 300 * kMs;

void limit(int fd, int option, int64_t ns) {
  const timeval tv = {ns / kSecond, ns % kSecond / 1000};
  CHECK_EQ(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof tv), 0);
}

void receivers(const Pair& p) {
  limit(p.a, SO_RCVTIMEO, kLimit);
  std::atomic<int> got{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 20; ++i)
    threads.push_back(start([&] {
      char byte;
      const int64_t begun = now_ns();
      const ssize_t n = recv(p.a, &byte, 1, 0);
      if (n == 1) {
        ++got;
        return;
      }
      CHECK_EQ(n, -1);
      CHECK_EQ(errno, EAGAIN);
      const int64_t took = now_ns() - begun;
      CHECK(took >= kLimit - 12 * kMs);  // the kernel's are rounded to its ticks
      if (took > kLimit + 3 * kSecond * time_factor()) FAIL("%lld ms", static_cast<long long>(took / kMs));
    }));
  for (int i = 0; i < 5; ++i) {
    nap(20 * kMs);
    put(p.b, 'x');
  }
  join_all(threads);
  CHECK_EQ(got.load(), 5);
  close_both(p);
}

void senders(const Pair& p) {
  limit(p.a, SO_SNDTIMEO, kLimit);
  std::vector<char> much(1 << 20, 'x');
  CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
  while (send(p.a, much.data(), 4096, 0) > 0) {
  }
  CHECK_EQ(fcntl(p.a, F_SETFL, 0), 0);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 10; ++i)
    threads.push_back(start([&] {
      const int64_t begun = now_ns();
      ssize_t n;
      while ((n = send(p.a, much.data(), 4096, 0)) > 0) {  // there may be a little room
      }
      CHECK_EQ(n, -1);
      CHECK_EQ(errno, EAGAIN);
      CHECK(now_ns() - begun < 5 * kSecond * time_factor());
    }));
  join_all(threads);
  close_both(p);
}

}  // namespace

int main() {
  receivers(unix_pair());
  receivers(tcp_pair());
  senders(unix_pair());
  senders(tcp_pair());
  sockaddr_in address;
  const int at = listener(&address);
  limit(at, SO_RCVTIMEO, kLimit);
  std::atomic<int> accepted{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 20; ++i)
    threads.push_back(start([&] {
      const int fd = accept(at, nullptr, nullptr);
      if (fd >= 0) {
        ++accepted;
        close(fd);
      } else {
        CHECK_EQ(errno, EAGAIN);
      }
    }));
  nap(50 * kMs);
  for (int i = 0; i < 3; ++i) close(connected(address));
  join_all(threads);
  CHECK_EQ(accepted.load(), 3);
}

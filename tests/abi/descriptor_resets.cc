// abi: threads=24 descriptors=events timeout=20
// A connection is reset while several threads wait for it, by read, recvmsg, poll and through a copy: all of them end; one is told
// of the reset.
#include "descriptor.h"

int main() {
  for (int round = 0; round < 5; ++round) {
    const Pair p = tcp_pair();
    const int copy = dup(p.a);
    std::atomic<int> resets{0}, ends{0};
    const auto note = [&](ssize_t n) {
      CHECK(n == 0 || (n == -1 && errno == ECONNRESET));
      ++(n == 0 ? ends : resets);
    };
    std::vector<pthread_t> threads;
    for (int i = 0; i < 2; ++i)
      for (const int fd : {p.a, copy}) {
        threads.push_back(start([&, fd] {
          char byte;
          note(read(fd, &byte, 1));
        }));
        threads.push_back(start([&, fd] {
          char byte;
          iovec part = {&byte, 1};
          msghdr m = {};
          m.msg_iov = &part, m.msg_iovlen = 1;
          note(recvmsg(fd, &m, 0));
        }));
        threads.push_back(start([&, fd] {
          pollfd asked = {fd, static_cast<short>(i ? POLLIN : 0), 0};
          CHECK_EQ(poll(&asked, 1, -1), 1);
          CHECK(asked.revents & POLLHUP);
        }));
      }
    settle();
    const linger now = {1, 0};
    CHECK_EQ(setsockopt(p.b, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    CHECK_EQ(close(p.b), 0);
    join_all(threads);
    CHECK_EQ(resets.load(), 1);
    CHECK_EQ(ends.load(), 7);
    close(p.a), close(copy);
  }
  // Nobody listens where datagrams go: who waits for an answer is told.
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int gone = socket(AF_INET, SOCK_DGRAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQ(bind(gone, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  CHECK_EQ(getsockname(gone, reinterpret_cast<sockaddr*>(&address), &length), 0);
  CHECK_EQ(connect(u, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  CHECK_EQ(close(gone), 0);
  const pthread_t waits = start([&] {
    char byte;
    CHECK_ERRNO(recv(u, &byte, 1, 0), ECONNREFUSED);
  });
  settle();
  CHECK_EQ(send(u, "x", 1, 0), 1);
  join(waits);
}

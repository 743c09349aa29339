// abi: threads=3 descriptors=events timeout=15
// A writer waits for room, and the pipe or the socket is made larger; a connection is dissolved while a thread reads.
#include "descriptor.h"

int main() {
  const Pair p = pipe_pair(), u = unix_pair();
  std::vector<char> much(65536);
  CHECK_EQ(write(p.b, much.data(), much.size()), much.size());
  const pthread_t w = start([&] { put(p.b, 'x'); });
  settle();
  CHECK(fcntl(p.a, F_SETPIPE_SZ, 131072) >= 131072);
  join(w);
  int size = 4096;
  CHECK_EQ(setsockopt(u.b, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
  CHECK_EQ(fcntl(u.b, F_SETFL, O_NONBLOCK), 0);
  while (write(u.b, "x", 1) == 1) {
  }
  CHECK_EQ(fcntl(u.b, F_SETFL, 0), 0);
  const pthread_t s = start([&] { put(u.b, 'x'); });
  settle();
  size = 100'000;
  CHECK_EQ(setsockopt(u.b, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
  join(s);
  const Pair t = tcp_pair();
  const pthread_t r = start([&] {
    char byte;
    CHECK(read(t.a, &byte, 1) == -1 && (errno == EPIPE || errno == ECONNRESET));
  });
  settle();
  sockaddr none = {};
  none.sa_family = AF_UNSPEC;
  CHECK_EQ(connect(t.a, &none, sizeof none), 0);
  join(r);
}

// abi: threads=10 descriptors=events timeout=30
// poll of one descriptor: what it asks for, and how long; the answer is the same as when the event was there before.
#include <sys/un.h>

#include "descriptor.h"

namespace {

template <class F>
void tells(int fd, int events, int revents, F cause, int timeout = -1) {
  const pthread_t t = start([=] {
    pollfd asked = {fd, static_cast<short>(events), -1};
    CHECK_EQ(poll(&asked, 1, timeout), 1);
    if (asked.revents != revents) FAIL("0x%x asked, 0x%x told, not 0x%x", events, asked.revents, revents);
    asked.revents = -1;
    CHECK_EQ(poll(&asked, 1, 0), 1);
    CHECK_EQ(asked.revents, revents);
  });
  settle();
  cause();
  join(t);
}

}  // namespace

int main() {
  char byte;
  for (const bool tcp : {true, false}) {
    const auto make = [=] { return tcp ? tcp_pair() : unix_pair(); };
    const Pair p = make();
    tells(p.a, POLLIN, POLLIN, [&] { put(p.b, 'x'); });
    CHECK_EQ(get(p.a), 'x');
    tells(
        p.a, POLLIN | POLLRDNORM, POLLIN | POLLRDNORM, [&] { put(p.b, 'x'); }, 1 << 30);
    CHECK_EQ(get(p.a), 'x');
    tells(
        p.a, POLLRDHUP, POLLRDHUP, [&] { CHECK_EQ(shutdown(p.b, SHUT_WR), 0); }, 60'000);
    tells(p.a, POLLIN, POLLIN, [] {});
    const Pair h = make();
    tells(h.a, 0, POLLHUP, [&] { CHECK_EQ(shutdown(h.a, SHUT_WR) + shutdown(h.b, SHUT_WR), 0); });
    close_both(p), close_both(h);
    // Room to write
    const Pair w = make();
    std::vector<char> much(1 << 16);
    CHECK_EQ(fcntl(w.a, F_SETFL, O_NONBLOCK), 0);
    size_t sent = 0;
    for (ssize_t n; (n = write(w.a, much.data(), much.size())) > 0;) sent += static_cast<size_t>(n);
    tells(w.a, POLLOUT, POLLOUT, [&] {
      for (ssize_t n; sent > 0; sent -= static_cast<size_t>(n))
        CHECK((n = read(w.b, much.data(), much.size())) > 0);
    });
    close_both(w);
  }
  const Pair o = tcp_pair();
  tells(o.a, POLLPRI, POLLPRI, [&] { CHECK_EQ(send(o.b, "!", 1, MSG_OOB), 1); });
  CHECK_EQ(recv(o.a, &byte, 1, MSG_OOB), 1);
  const Pair q = pipe_pair();
  tells(q.a, POLLIN, POLLHUP, [&] { close(q.b); });
  const Pair r = pipe_pair();
  std::vector<char> much(1 << 16);
  CHECK_EQ(write(r.b, much.data(), much.size()), much.size());
  tells(r.b, POLLOUT, POLLERR, [&] { close(r.a); });
  // A full receiver of Unix datagrams, of which only its sender's poll tells.
  Pair d = {socket(AF_UNIX, SOCK_DGRAM, 0), socket(AF_UNIX, SOCK_DGRAM, 0)};
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof address;
  CHECK_EQ(bind(d.b, reinterpret_cast<sockaddr*>(&address), sizeof address.sun_family), 0);
  CHECK_EQ(getsockname(d.b, reinterpret_cast<sockaddr*>(&address), &length), 0);
  CHECK_EQ(connect(d.a, reinterpret_cast<sockaddr*>(&address), length), 0);
  CHECK_EQ(fcntl(d.a, F_SETFL, O_NONBLOCK), 0);
  int sent = 0;
  while (write(d.a, &byte, 1) == 1) ++sent;
  for (int round = 0; round < 3; ++round) {
    tells(d.a, POLLOUT, POLLOUT, [&] {
      for (int i = 0; i < sent; ++i) CHECK_EQ(read(d.b, &byte, 1), 1);
    });
    for (sent = 0; write(d.a, &byte, 1) == 1;) ++sent;
  }
  // No time, and numbers that are none
  join(start([&] {
    const Pair p = unix_pair();
    pollfd asked = {p.a, POLLIN, -1};
    CHECK_EQ(poll(&asked, 1, 0), 0);
    CHECK_EQ(asked.revents, 0);
    CHECK_EQ(poll(nullptr, 0, 0), 0);
    asked.fd = -1;
    CHECK_EQ(poll(&asked, 1, 20), 0);
    asked.fd = 555;
    CHECK_EQ(poll(&asked, 1, -1), 1);
    CHECK_EQ(asked.revents, POLLNVAL);
    CHECK_ERRNO(syscall(SYS_poll, 8, 1, -1), EFAULT);
  }));
}

// abi: threads=20 descriptors=events timeout=20
// Cancellation ends each call that waits for a descriptor; others that wait for the same one go on, and nothing that comes
// afterwards is lost with those that are gone. The same with signals that are handled.
#include <sys/epoll.h>

#include "cancel.h"
#include "descriptor.h"

int main() {
  sockaddr_in address;
  const int at = listener(&address);
  const Pair u = unix_pair(), t = tcp_pair(), p = pipe_pair(), full = pipe_pair(), full_socket = unix_pair();
  std::vector<char> much(1 << 20);
  CHECK_EQ(fcntl(full.b, F_SETFL, O_NONBLOCK), 0);
  CHECK_EQ(fcntl(full_socket.b, F_SETFL, O_NONBLOCK), 0);
  while (write(full.b, much.data(), 4096) > 0) {
  }
  while (write(full_socket.b, much.data(), 1) > 0) {
  }
  CHECK_EQ(fcntl(full.b, F_SETFL, 0), 0);
  CHECK_EQ(fcntl(full_socket.b, F_SETFL, 0), 0);
  const int set = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, u.a, &event), 0);
  std::vector<pthread_t> others;
  for (const int fd : {u.a, t.a, p.a}) others.push_back(start([fd] { CHECK_EQ(get(fd), 'x'); }));
  const pthread_t acceptor = start([&] { CHECK(accept(at, nullptr, nullptr) >= 0); });
  char byte;
  iovec part = {&byte, 1};
  msghdr m = {};
  m.msg_iov = &part, m.msg_iovlen = 1;
  pollfd asked = {t.a, POLLIN, 0};
  epoll_event got;
  const std::vector<Point> points = {
      {"read of a socket", [&] { read(u.a, &byte, 1); }},
      {"read of a connection", [&] { read(t.a, &byte, 1); }},
      {"read of a pipe", [&] { read(p.a, &byte, 1); }},
      {"readv", [&] { readv(p.a, &part, 1); }},
      {"recv", [&] { recv(u.a, &byte, 1, 0); }},
      {"recvfrom", [&] { recvfrom(t.a, &byte, 1, 0, nullptr, nullptr); }},
      {"recvmsg", [&] { recvmsg(t.a, &m, 0); }},
      {"write to a pipe", [&] { write(full.b, &byte, 1); }},
      {"write to a socket", [&] { write(full_socket.b, &byte, 1); }},
      {"writev", [&] { writev(full.b, &part, 1); }},
      {"send", [&] { send(full_socket.b, &byte, 1, 0); }},
      {"sendmsg", [&] { sendmsg(full_socket.b, &m, 0); }},
      {"accept", [&] { accept(at, nullptr, nullptr); }},
      {"accept4", [&] { accept4(at, nullptr, nullptr, 0); }},
      {"poll", [&] { poll(&asked, 1, -1); }},
      {"poll for long", [&] { poll(&asked, 1, 1 << 30); }},
      {"epoll_wait", [&] { epoll_wait(set, &got, 1, -1); }},
  };
  cancel_blocked(points);
  settle();
  for (const int fd : {u.b, t.b, p.b}) put(fd, 'x');
  close(connected(address));
  join_all(others);
  join(acceptor);
}

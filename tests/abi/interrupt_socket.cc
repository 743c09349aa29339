// abi: threads=10
// signal(7): accept, connect, recv, recvfrom, recvmsg, recvmmsg, send, sendto, sendmsg on sockets without time-outs are
// restarted after a handler with SA_RESTART and end with EINTR without it.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "interrupt.h"

static int listener, pair[2], full[2];
static sockaddr_un address = {};
static socklen_t address_length;
static char block[4096];

static int new_socket() {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(fd >= 0);
  return fd;
}

// An abstract name of its own: sun_path begins with 0.
static int listen_at(const char* name) {
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "abi_%s_%d", name, getpid());
  address_length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1));
  const int fd = new_socket();
  CHECK_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), address_length), 0);
  CHECK_EQ(listen(fd, 0), 0);
  return fd;
}

static long accepted(int fd) {
  if (fd == -1) return -errno;
  close(fd);
  return 0;
}

static void call_in() {
  const int fd = new_socket();
  CHECK_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), address_length), 0);
  close(fd);
}

static long connect_once() {
  const int fd = new_socket();
  const long result = with_errno(connect(fd, reinterpret_cast<sockaddr*>(&address), address_length));
  close(fd);
  return result;
}

static void feed() { CHECK_EQ(send(pair[1], "x", 1, 0), 1); }

static void fill() {
  while (send(full[0], block, sizeof block, MSG_DONTWAIT) > 0) {
  }
  while (send(full[0], block, 1, MSG_DONTWAIT) > 0) {
  }
  CHECK_EQ(errno, EAGAIN);
}
static void empty() {
  std::vector<char> some(1 << 20);
  CHECK(recv(full[1], some.data(), some.size(), MSG_DONTWAIT) > 0);
}
static long send_small(int how) {
  iovec part = {block, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const long result = with_errno(how == 0   ? send(full[0], block, 1, 0)
                                 : how == 1 ? sendmsg(full[0], &message, 0)
                                            : write(full[0], block, 1));
  if (result == 1) fill();
  return result;
}

int main() {
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, full), 0);
  listener = listen_at("accept");
  fill();
  char byte;
  iovec part = {&byte, 1};
  mmsghdr message = {};
  message.msg_hdr.msg_iov = &part;
  message.msg_hdr.msg_iovlen = 1;
  try_signals({
      {"accept", [] { return accepted(accept(listener, nullptr, nullptr)); }, call_in, 0, Restart::yes},
      {"accept4", [] { return accepted(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)); }, call_in, 0,
       Restart::yes},
      {"recv", [&] { return with_errno(recv(pair[0], &byte, 1, 0)); }, feed, 1, Restart::yes},
      {"recvfrom", [&] { return with_errno(recvfrom(pair[0], &byte, 1, 0, nullptr, nullptr)); }, feed, 1,
       Restart::yes},
      {"recvmsg", [&] { return with_errno(recvmsg(pair[0], &message.msg_hdr, 0)); }, feed, 1, Restart::yes},
      {"recvmmsg", [&] { return with_errno(recvmmsg(pair[0], &message, 1, 0, nullptr)); }, feed, 1,
       Restart::yes},
      {"read", [&] { return with_errno(read(pair[0], &byte, 1)); }, feed, 1, Restart::yes},
      {"send", [] { return send_small(0); }, empty, 1, Restart::yes},
      {"sendmsg", [] { return send_small(1); }, empty, 1, Restart::yes},
      {"write", [] { return send_small(2); }, empty, 1, Restart::yes},
  });
  // The queue of a listener that nobody accepts from takes one connection.
  close(listener);
  listener = listen_at("connect");
  call_in();
  try_signals(
      {{"connect", connect_once, [] { accepted(accept(listener, nullptr, nullptr)); }, 0, Restart::yes}});
}

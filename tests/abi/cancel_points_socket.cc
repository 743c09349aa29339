// abi: threads=26
// Functions on sockets are cancellation points (pthreads(7)), with the request pending and when it arrives while the
// thread is blocked. A pending one has taken and sent nothing.
#include <sys/socket.h>
#include <sys/un.h>

#include "cancel.h"

static int quiet[2], full[2], filled[2], listener, deaf, callers[2];
static sockaddr_un deaf_name;
static socklen_t deaf_length;
static char byte = 'x';
static iovec piece = {&byte, 1};
static mmsghdr several[1];
static msghdr message;

static int listening(int backlog, sockaddr_un* name, socklen_t* length) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un none = {};
  none.sun_family = AF_UNIX;
  CHECK_EQ(bind(fd, reinterpret_cast<sockaddr*>(&none), sizeof none.sun_family), 0);  // a name of its own
  CHECK_EQ(listen(fd, backlog), 0);
  *length = sizeof *name;
  CHECK_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(name), length), 0);
  return fd;
}

static int call(int fd) { return connect(fd, reinterpret_cast<sockaddr*>(&deaf_name), deaf_length); }

static std::vector<Point> points(int from, int to) {
  return {
      {"accept", [] { accept(listener, nullptr, nullptr); }},
      {"accept4", [] { accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); }},
      {"connect", [] { call(callers[0]); }},
      {"recv", [from] { recv(from, &byte, 1, 0); }},
      {"recvfrom", [from] { recvfrom(from, &byte, 1, 0, nullptr, nullptr); }},
      {"recvmsg",
       [from] {
         msghdr one = message;
         recvmsg(from, &one, 0);
       }},
      {"recvmmsg",
       [from] {
         mmsghdr one = several[0];
         recvmmsg(from, &one, 1, 0, nullptr);
       }},
      {"send", [to] { send(to, &byte, 1, 0); }},
      {"sendto", [to] { sendto(to, &byte, 1, 0, nullptr, 0); }},
      {"sendmsg", [to] { sendmsg(to, &message, 0); }},
      {"sendmmsg",
       [to] {
         mmsghdr one = several[0];
         sendmmsg(to, &one, 1, 0);
       }},
      {"read of a socket", [from] { read(from, &byte, 1); }},
      {"write to a socket", [to] { write(to, &byte, 1); }},
  };
}

int main() {
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  several[0].msg_hdr = message;
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, quiet), 0);
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, full), 0);
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, filled), 0);
  sockaddr_un name;
  socklen_t length;
  listener = listening(8, &name, &length);
  deaf = listening(0, &deaf_name, &deaf_length);
  // Callers that are not accepted fill the backlog: the next one waits.
  for (;;) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (call(fd) == 0) continue;
    CHECK_EQ(errno, EAGAIN);
    break;
  }
  for (int& fd : callers) fd = socket(AF_UNIX, SOCK_STREAM, 0);
  char block[4096] = {};
  while (send(full[0], block, sizeof block, MSG_DONTWAIT) > 0) {
  }
  CHECK_EQ(write(filled[1], "ab", 2), 2);

  cancel_pending(points(filled[0], filled[0]));
  char text[8];
  CHECK_EQ(recv(filled[0], text, sizeof text, 0), 2);
  CHECK_ERRNO(recv(filled[1], text, sizeof text, MSG_DONTWAIT), EAGAIN);

  cancel_blocked(points(quiet[0], full[0]));
  CHECK_EQ(write(quiet[1], "y", 1), 1);
  CHECK_EQ(read(quiet[0], &byte, 1), 1);
  CHECK_EQ(byte, 'y');
  CHECK_ERRNO(send(full[0], block, 1, MSG_DONTWAIT), EAGAIN);
}

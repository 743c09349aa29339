// abi: threads=8
// signal(7): socket calls with a time-out set by SO_RCVTIMEO or SO_SNDTIMEO end with EINTR after any handler, whatever
// SA_RESTART says. Without a signal the time-out answers EAGAIN, not before its time.
#include <sys/socket.h>
#include <sys/un.h>

#include "interrupt.h"

static int pair[2], full[2], listener;
static char block[4096];

static void set_timeout(int fd, int which, int64_t ms) {
  const timeval time = {ms / 1000, (ms % 1000) * 1000};
  CHECK_EQ(setsockopt(fd, SOL_SOCKET, which, &time, sizeof time), 0);
}

static void fill() {
  while (send(full[0], block, sizeof block, MSG_DONTWAIT) > 0) {
  }
  while (send(full[0], block, 1, MSG_DONTWAIT) > 0) {
  }
}
static void empty() {
  std::vector<char> some(1 << 20);
  CHECK(recv(full[1], some.data(), some.size(), MSG_DONTWAIT) > 0);
}
static long send_small() {
  const long result = with_errno(send(full[0], block, 1, 0));
  if (result == 1) fill();
  return result;
}

static void feed() { CHECK_EQ(send(pair[1], "x", 1, 0), 1); }

int main() {
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, full), 0);
  set_timeout(pair[0], SO_RCVTIMEO, 100'000);
  set_timeout(full[0], SO_SNDTIMEO, 100'000);
  fill();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const auto length = static_cast<socklen_t>(sizeof(sa_family_t));  // the kernel chooses an abstract name
  listener = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  socklen_t bound = sizeof address;
  CHECK_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bound), 0);
  CHECK_EQ(listen(listener, 5), 0);
  set_timeout(listener, SO_RCVTIMEO, 100'000);
  char byte;
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  try_signals({
      {"recv", [&] { return with_errno(recv(pair[0], &byte, 1, 0)); }, feed, 1, Restart::never},
      {"recvmsg", [&] { return with_errno(recvmsg(pair[0], &message, 0)); }, feed, 1, Restart::never},
      {"read", [&] { return with_errno(read(pair[0], &byte, 1)); }, feed, 1, Restart::never},
      {"send", send_small, empty, 1, Restart::never},
      {"accept",
       [] {
         const int fd = accept(listener, nullptr, nullptr);
         if (fd == -1) return static_cast<long>(-errno);
         close(fd);
         return 0l;
       },
       [&] {
         const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
         CHECK_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), bound), 0);
         close(fd);
       },
       0, Restart::never},
  });
  set_timeout(pair[0], SO_RCVTIMEO, 20);
  join(start([&] {
    const int64_t begin = now_ns();
    CHECK_ERRNO(recv(pair[0], &byte, 1, 0), EAGAIN);
    CHECK(now_ns() - begin >= 19 * kMs);
  }));
}

// Sockets and pipes on which threads wait.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "abi.h"

namespace upcall::test {

struct Pair {
  int a = -1, b = -1;
};

inline Pair unix_pair(int type = SOCK_STREAM) {
  int ends[2];
  CHECK_EQ(socketpair(AF_UNIX, type, 0, ends), 0);
  return {ends[0], ends[1]};
}

inline Pair pipe_pair() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  return {ends[0], ends[1]};
}

// A listening socket on loopback, and where.
inline int listener(sockaddr_in* address, int backlog = 128) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0);
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK_EQ(bind(fd, reinterpret_cast<sockaddr*>(address), sizeof *address), 0);
  socklen_t length = sizeof *address;
  CHECK_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(address), &length), 0);
  CHECK_EQ(listen(fd, backlog), 0);
  return fd;
}

inline int connected(const sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0);
  CHECK_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const int on = 1;
  CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
  return fd;
}

inline Pair tcp_pair() {
  sockaddr_in address;
  const int at = listener(&address);
  Pair p;
  p.b = connected(address);
  p.a = accept(at, nullptr, nullptr);
  CHECK(p.a >= 0);
  close(at);
  return p;
}

inline void close_both(const Pair& p) {
  CHECK_EQ(close(p.a), 0);
  CHECK_EQ(close(p.b), 0);
}

inline void put(int fd, char byte) { CHECK_EQ(write(fd, &byte, 1), 1); }
inline char get(int fd) {
  char byte = 0;
  CHECK_EQ(read(fd, &byte, 1), 1);
  return byte;
}

// A read of it waits for four bytes.
inline void low_water(int fd) {
  const int least = 4;
  CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least), 0);
}

// Such a read, while they come one by one.
inline void reads_four(const Pair& p) {
  const pthread_t reader = start([&] {
    char text[16];
    CHECK_EQ(read(p.a, text, sizeof text), 4);
  });
  for (int i = 0; i < 4; ++i) {
    settle();
    put(p.b, 'x');
  }
  join(reader);
}

// A descriptor as a message.
inline void pass(int through, int fd) {
  char byte = 'f';
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr m = {};
  m.msg_iov = &part, m.msg_iovlen = 1, m.msg_control = control, m.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  CHECK_EQ(sendmsg(through, &m, 0), 1);
}

inline int passed(int through) {
  char byte;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr m = {};
  m.msg_iov = &part, m.msg_iovlen = 1, m.msg_control = control, m.msg_controllen = sizeof control;
  CHECK_EQ(recvmsg(through, &m, 0), 1);
  CHECK_EQ(byte, 'f');
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}

}  // namespace upcall::test

// An echo server as one writes it by hand for one CPU: the peer that nobody is expected to beat.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"
#include "worker.h"

enum { EVENTS = 256 };

static int epoll;

static void watch(int fd, uint32_t events) {
  struct epoll_event event = {.events = events, .data = {.fd = fd}};
  EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl: %s", strerror(errno));
}

static void accept_all(int listener) {
  int fd;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(fd, EPOLLIN);
  }
  if (errno == EMFILE || errno == ENFILE) FAIL(LIMIT, "accept: %s", strerror(errno));
  EXPECT(errno == EAGAIN || errno == ECONNABORTED, "accept: %s", strerror(errno));
}

// One read and one write for an event. Requests are smaller than any socket buffer: what cannot be written at once is a client
// that does not read.
static void answer(int fd) {
  char buffer[4096];
  ssize_t got = read(fd, buffer, sizeof buffer);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0 || send(fd, buffer, (size_t)got, MSG_NOSIGNAL) != got) close(fd);
}

int serve_epoll(void) {
  char address[64];
  int listener = listen_on_loopback(SOCK_NONBLOCK, address, sizeof address);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  EXPECT(epoll >= 0, "epoll_create1: %s", strerror(errno));
  watch(listener, EPOLLIN);
  watch(STDIN_FILENO, EPOLLIN);
  printf("%s kernel\n", address);
  EXPECT(fflush(stdout) == 0, "cannot write the address: %s", strerror(errno));
  struct epoll_event events[EVENTS];
  for (;;) {
    int count = epoll_wait(epoll, events, EVENTS, -1);
    EXPECT(count >= 0 || errno == EINTR, "epoll_wait: %s", strerror(errno));
    for (int i = 0; i < count; ++i) {
      int fd = events[i].data.fd;
      if (fd == STDIN_FILENO) return 0;
      if (fd == listener) {
        accept_all(listener);
      } else {
        answer(fd);
      }
    }
  }
}

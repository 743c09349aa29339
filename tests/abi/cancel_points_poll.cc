// abi: threads=14
// poll, select and epoll are cancellation points (pthreads(7)), with and without a signal mask, blocked and with
// something to report.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "cancel.h"

static std::vector<Point> points(int fd, int epoll) {
  static sigset_t mask;
  sigemptyset(&mask);
  static timespec hour = {3600, 0};
  const auto selected = [fd](bool masked) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    if (masked)
      pselect(fd + 1, &set, nullptr, nullptr, nullptr, &mask);
    else
      select(fd + 1, &set, nullptr, nullptr, nullptr);
  };
  return {
      {"poll",
       [fd] {
         pollfd one = {fd, POLLIN, 0};
         poll(&one, 1, -1);
       }},
      {"poll with a time limit",
       [fd] {
         pollfd one = {fd, POLLIN, 0};
         poll(&one, 1, 3'600'000);
       }},
      {"ppoll",
       [fd] {
         pollfd one = {fd, POLLIN, 0};
         ppoll(&one, 1, &hour, &mask);
       }},
      {"select", [selected] { selected(false); }},
      {"pselect", [selected] { selected(true); }},
      {"epoll_wait",
       [epoll] {
         epoll_event event;
         epoll_wait(epoll, &event, 1, -1);
       }},
      {"epoll_pwait",
       [epoll] {
         epoll_event event;
         epoll_pwait(epoll, &event, 1, -1, &mask);
       }},
  };
}

static int watch(int fd) {
  const int epoll = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
  return epoll;
}

int main() {
  int quiet[2], filled[2];
  CHECK_EQ(pipe(quiet), 0);
  CHECK_EQ(pipe(filled), 0);
  CHECK_EQ(write(filled[1], "x", 1), 1);
  cancel_pending(points(filled[0], watch(filled[0])));
  cancel_blocked(points(quiet[0], watch(quiet[0])));
}

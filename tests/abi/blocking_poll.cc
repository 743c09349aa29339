// abi: threads=18 upcalls=1
// poll, ppoll, select, epoll_wait and reads from an event file and a timer file leave the processor to others.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/timerfd.h>

#include "blocking.h"

int main() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const auto put = [&] { CHECK_EQ(write(ends[1], "x", 1), 1); };
  const auto take = [&] {
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
  };
  pollfd item = {ends[0], POLLIN, 0};
  others_go_on(
      "poll", [&] { CHECK_EQ(poll(&item, 1, -1), 1); }, put);
  CHECK_EQ(item.revents, POLLIN);
  take();
  const timespec minute = {60, 0};
  others_go_on(
      "ppoll", [&] { CHECK_EQ(ppoll(&item, 1, &minute, nullptr), 1); }, put);
  take();
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(ends[0], &readable);
  others_go_on(
      "select", [&] { CHECK_EQ(select(ends[0] + 1, &readable, nullptr, nullptr, nullptr), 1); }, put);
  CHECK(FD_ISSET(ends[0], &readable));
  take();
  const int queue = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = 4711;
  CHECK_EQ(epoll_ctl(queue, EPOLL_CTL_ADD, ends[0], &event), 0);
  others_go_on(
      "epoll_wait", [&] { CHECK_EQ(epoll_wait(queue, &event, 1, -1), 1); }, put);
  CHECK_EQ(event.data.u64, 4711);
  take();
  const int counter = eventfd(0, 0);
  others_go_on(
      "eventfd",
      [&] {
        eventfd_t value = 0;
        CHECK_EQ(eventfd_read(counter, &value), 0);
        CHECK_EQ(value, 5);
      },
      [&] { CHECK_EQ(eventfd_write(counter, 5), 0); });
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const itimerspec soon = {{0, 0}, {0, 1'000'000}};
  others_go_on(
      "timerfd",
      [&] {
        uint64_t times = 0;
        CHECK_EQ(read(timer, &times, sizeof times), sizeof times);
        CHECK_EQ(times, 1);
      },
      [&] { CHECK_EQ(timerfd_settime(timer, 0, &soon, nullptr), 0); });
}

// abi: threads=6
// signal(7): poll, ppoll, select, pselect, epoll_wait, epoll_pwait and epoll_pwait2 end with EINTR after any handler,
// whatever SA_RESTART says; with and without a time-out and a mask.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "interrupt.h"

static int ends[2], queue;
static const timespec minutes = {1000, 0};

static void feed() { CHECK_EQ(write(ends[1], "x", 1), 1); }

// The byte that has made it ready goes.
static long taken(int result) {
  if (result == -1) return -errno;
  char byte;
  if (result == 1) CHECK_EQ(read(ends[0], &byte, 1), 1);
  return result;
}

static long select_once(bool with_mask, const timespec* time) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  const sigset_t none = signal_set({});
  if (with_mask) return taken(pselect(ends[0] + 1, &set, nullptr, nullptr, time, &none));
  timeval left = {1000, 0};
  return taken(select(ends[0] + 1, &set, nullptr, nullptr, time ? &left : nullptr));
}

static long poll_once(int how) {
  pollfd item = {ends[0], POLLIN, 0};
  const sigset_t none = signal_set({});
  if (how == 0) return taken(poll(&item, 1, -1));
  if (how == 1) return taken(poll(&item, 1, 1'000'000));
  return taken(ppoll(&item, 1, how == 2 ? &minutes : nullptr, &none));
}

static long epoll_once(int how) {
  epoll_event event;
  const sigset_t none = signal_set({});
  if (how == 0) return taken(epoll_wait(queue, &event, 1, -1));
  if (how == 1) return taken(epoll_wait(queue, &event, 1, 1'000'000));
  if (how == 2) return taken(epoll_pwait(queue, &event, 1, -1, &none));
  return taken(static_cast<int>(syscall(441 /* epoll_pwait2 */, queue, &event, 1, &minutes, &none, 8)));
}

int main() {
  CHECK_EQ(pipe(ends), 0);
  queue = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(queue, EPOLL_CTL_ADD, ends[0], &event), 0);
  try_signals({
      {"poll", [] { return poll_once(0); }, feed, 1, Restart::never},
      {"poll, timed", [] { return poll_once(1); }, feed, 1, Restart::never},
      {"ppoll", [] { return poll_once(3); }, feed, 1, Restart::never},
      {"ppoll, timed", [] { return poll_once(2); }, feed, 1, Restart::never},
      {"select", [] { return select_once(false, nullptr); }, feed, 1, Restart::never},
      {"select, timed", [] { return select_once(false, &minutes); }, feed, 1, Restart::never},
      {"pselect", [] { return select_once(true, nullptr); }, feed, 1, Restart::never},
      {"pselect, timed", [] { return select_once(true, &minutes); }, feed, 1, Restart::never},
      {"epoll_wait", [] { return epoll_once(0); }, feed, 1, Restart::never},
      {"epoll_wait, timed", [] { return epoll_once(1); }, feed, 1, Restart::never},
      {"epoll_pwait", [] { return epoll_once(2); }, feed, 1, Restart::never},
      {"epoll_pwait2", [] { return epoll_once(3); }, feed, 1, Restart::never},
  });
}

// The drivers that come with the library: points in time, descriptors, the end of children.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/driver.h"

namespace upcall::client {

namespace {

// --- descriptors: one epoll instance (epoll(7)), in which each request has a copy of its descriptor, for one event: what the
// program does with its own number concerns nobody here.
// A request's `device`: the descriptor, or the child, and the events; the copy, and which of the two it is.
constexpr uint32_t is_child = 1;
struct Registered {
  int fd;
  uint32_t events;
  int copy;
  uint32_t flags;
};
Registered registered(const upcall_request* r) noexcept {
  return {static_cast<int>(r->device[0]), static_cast<uint32_t>(r->device[0] >> 32),
          static_cast<int>(r->device[1]), static_cast<uint32_t>(r->device[1] >> 32)};
}
void set(upcall_request* r, Registered to) noexcept {
  r->device[0] = static_cast<uint32_t>(to.fd) | static_cast<uint64_t>(to.events) << 32;
  r->device[1] = static_cast<uint32_t>(to.copy) | static_cast<uint64_t>(to.flags) << 32;
}

int g_epoll = -1, g_alarm = -1;  // epoll instance; eventfd that ends a wait

int add(upcall_request* r, int fd, uint32_t events) noexcept {
  epoll_event e = {};
  e.events = events | EPOLLONESHOT;
  e.data.ptr = r;
  return epoll_ctl(g_epoll, EPOLL_CTL_ADD, fd, &e) ? errno : 0;
}

void finish(upcall_request* r) noexcept {
  Registered it = registered(r);
  // Not by the close alone: others may have the same file open.
  epoll_event unused = {};
  epoll_ctl(g_epoll, EPOLL_CTL_DEL, it.copy, &unused);
  close(it.copy);
}

int open_child(pid_t child) noexcept {
  constexpr long pidfd_open = 434;
  return static_cast<int>(syscall(pidfd_open, child, 0));
}

int submit(void*, upcall_request* r) {
  Registered it = registered(r);
  it.copy = it.flags & is_child ? open_child(it.fd) : fcntl(it.fd, F_DUPFD_CLOEXEC, 0);
  if (it.copy < 0) return errno;
  set(r, it);
  int error = add(r, it.copy, it.events);
  if (!error) return 0;
  close(it.copy);
  if (error != EPERM) return error;
  // Files are always ready, says poll(2).
  upcall_complete(r, it.events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM));
  return 0;
}

int poll_group(void*) {
  epoll_event events[64];
  int n = epoll_wait(g_epoll, events, 64, 0);
  if (n < 0) return errno == EINTR ? 0 : -errno;
  for (int i = 0; i < n; ++i) {
    auto* r = static_cast<upcall_request*>(events[i].data.ptr);
    if (!r) {
      uint64_t times;
      [[maybe_unused]] ssize_t got = read(g_alarm, &times, sizeof times);
      continue;
    }
    bool child = registered(r).flags & is_child;
    finish(r);
    upcall_complete(r, child ? 0 : static_cast<int64_t>(events[i].events));
  }
  return 0;
}

int wait_group(void*, uint64_t timeout) {
  constexpr uint64_t ms = 1'000'000, longest = 1u << 30;
  pollfd p = {g_epoll, POLLIN, 0};
  uint64_t wanted = timeout / ms + (timeout % ms != 0);
  int r = poll(&p, 1, timeout == UPCALL_FOREVER ? -1 : static_cast<int>(wanted < longest ? wanted : longest));
  return r < 0 ? -errno : 0;
}

void wake(void*) {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t put = write(g_alarm, &one, sizeof one);
}

int cancel(void*, upcall_request* r) {
  finish(r);
  return 0;
}

upcall_driver* g_timers = nullptr;
upcall_driver* g_descriptors = nullptr;
int g_error = 0;

void make_timers() {
  upcall_driver_ops ops = {};
  ops.size = sizeof ops;
  ops.name = "timers";
  ops.flags = UPCALL_DEADLINE_IS_END;
  upcall_driver_register(&g_timers, &ops, nullptr);
}

bool watch_alarm() noexcept {
  epoll_event e = {};
  e.events = EPOLLIN;
  return epoll_ctl(g_epoll, EPOLL_CTL_ADD, g_alarm, &e) == 0;
}

void forget_descriptors_in_child() {
  // The parent's: what it waits for must not be changed from here.
  close(g_epoll);
  close(g_alarm);
  g_epoll = epoll_create1(EPOLL_CLOEXEC);
  g_alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  watch_alarm();
}

void make_descriptors() {
  g_epoll = epoll_create1(EPOLL_CLOEXEC);
  g_alarm = g_epoll < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (g_alarm < 0 || !watch_alarm()) {
    g_error = errno;
    if (g_alarm >= 0) close(g_alarm);
    if (g_epoll >= 0) close(g_epoll);
    return;
  }
  upcall_driver_ops ops = {};
  ops.size = sizeof ops;
  ops.name = "descriptors";
  ops.submit = submit;
  ops.poll_group = poll_group;
  ops.wait_group = wait_group;
  ops.wake = wake;
  ops.cancel = cancel;
  ops.flags = UPCALL_WAIT_SEES_NEW;
  g_error = upcall_driver_register(&g_descriptors, &ops, nullptr);
  pthread_atfork(nullptr, nullptr, forget_descriptors_in_child);
}

pthread_once_t g_timers_once = PTHREAD_ONCE_INIT, g_descriptors_once = PTHREAD_ONCE_INIT;

int begin(upcall_request* r, Registered what) noexcept {
  pthread_once(&g_descriptors_once, make_descriptors);
  if (!g_descriptors) return g_error;
  uintptr_t s = state_of(r).load(relaxed);
  if (s != state_idle && s != state_complete) return EINVAL;  // before what it has asked for is overwritten
  set(r, what);
  return upcall_submit(g_descriptors, r);
}

}  // namespace

}  // namespace upcall::client

using namespace upcall::client;  // NOLINT: what follows are the public names

extern "C" {

__attribute__((visibility("default"))) upcall_driver* upcall_timers() {
  pthread_once(&g_timers_once, make_timers);
  return g_timers;
}

__attribute__((visibility("default"))) int upcall_submit_descriptor(upcall_request* r, int descriptor,
                                                                    short events) {
  return begin(r, {descriptor, static_cast<uint16_t>(events), -1, 0});
}

__attribute__((visibility("default"))) int upcall_submit_child(upcall_request* r, pid_t child) {
  int fd = open_child(child);
  if (fd < 0) return errno == ESRCH ? ECHILD : errno;
  close(fd);
  return begin(r, {child, POLLIN, -1, is_child});
}

}  // extern "C"

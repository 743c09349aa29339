#include "event/epoll.h"

#include <linux/eventpoll.h>
#include <linux/time_types.h>

#include "activation/event_source.h"
#include "kernel/clock.h"
#include "kernel/futex.h"

namespace upcall::event {

using activation::Activation;
using activation::Found;

void (*g_descriptor_event)(Activation*, int, uint32_t) = nullptr;

namespace {

constexpr int none = -1;
constexpr uint32_t edge_triggered = 1u << 31;
constexpr long e_exist = 17, e_noent = 2, e_intr = 4, e_nosys = 38, e_restart = 512;
atomic<int32_t> g_instance{none};
atomic<uint32_t> g_no_pwait2{0};

// Programs take the lowest numbers, and close all above some; ours is in nobody's way there, and the table of descriptors
// that a fork copies does not become larger for it.
int move_away(int fd) noexcept {
  uint64_t limit[2] = {};
  constexpr int nofile = 7;
  kernel::sys(__NR_prlimit64, 0, nofile, nullptr, static_cast<void*>(limit));
  constexpr uint64_t usual = 1024, below = 24;
  uint64_t lowest = limit[0] < usual ? (limit[0] > 2 * below ? limit[0] - below : 0) : usual - below;
  long moved = kernel::sys(__NR_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
  if (kernel::is_error(moved)) return fd;
  kernel::sys(__NR_close, fd);
  return static_cast<int>(moved);
}

void take(Found* found, const epoll_event* events, long n) noexcept {
  for (long i = 0; i < n; ++i) {
    auto& e = found->event[found->count++];
    e.data = events[i].data;
    e.mask = events[i].events;
  }
}

void look(Found* found) noexcept {
  epoll_event events[Found::room];
  take(found, events,
       kernel::sys(__NR_epoll_wait, g_instance.load(relaxed), static_cast<void*>(events), Found::room, 0));
}

long milliseconds_until(uint64_t deadline) noexcept {
  if (deadline == sched::never) return -1;
  uint64_t now = kernel::now();
  constexpr uint64_t longest = 1u << 30;
  uint64_t ms = deadline > now ? (deadline - now + 999'999) / 1'000'000 : 0;
  return static_cast<long>(ms < longest ? ms : longest);
}

// EINTR, and -ERESTART of upcall_blocking_syscall, say that somebody wants the activation.
void wait(Activation* a, Found* found, uint64_t deadline) noexcept {
  epoll_event events[Found::room];
  long at = g_instance.load(relaxed), room = Found::room;
  auto to = reinterpret_cast<long>(events);
  if (!g_no_pwait2.load(relaxed)) {
    uint64_t now = deadline == sched::never ? 0 : kernel::now();
    uint64_t left = deadline > now ? deadline - now : 0;
    __kernel_timespec ts = {static_cast<long long>(left / 1'000'000'000u),
                            static_cast<long long>(left % 1'000'000'000u)};
    const long args[6] = {at, to, room, deadline == sched::never ? 0 : reinterpret_cast<long>(&ts), 0, 0};
    constexpr long epoll_pwait2 = 441;
    long n = upcall_blocking_syscall(epoll_pwait2, args);
    if (n >= 0 || n == -e_intr || n == -e_restart) {
      take(found, events, n);
      return;
    }
    g_no_pwait2.store(1, relaxed);  // before Linux 5.11, or refused by a sandbox
  }
  const long args[6] = {at, to, room, milliseconds_until(deadline), 0, 0};
  long n = upcall_blocking_syscall(__NR_epoll_pwait, args);
  if (n < 0 && n != -e_intr && n != -e_restart) {
    constexpr uint64_t pause = 1'000'000;
    kernel::futex_wait(&a->wake, 0, kernel::now() + pause);  // refused, too: by looks alone
  }
  take(found, events, n);
}

void deliver(Activation* a, const Found& found) noexcept {
  for (uint32_t i = 0; i < found.count; ++i)
    g_descriptor_event(a, static_cast<int>(found.event[i].data), found.event[i].mask);
}

const activation::EventSource g_source = {look, wait, deliver};

int instance() noexcept {
  int32_t known = g_instance.load(acquire);  // pairs with the exchange below
  if (known != none) return known;
  long made = kernel::sys(__NR_epoll_create1, EPOLL_CLOEXEC);
  if (kernel::is_error(made)) return none;
  int fd = move_away(static_cast<int>(made));
  if (!g_instance.compare_exchange_strong(known, fd, acq_rel, acquire)) {  // another thread was faster
    kernel::sys(__NR_close, fd);
    return known;
  }
  activation::g_event_source.store(&g_source, release);  // pairs with look_for_events
  return fd;
}

}  // namespace

long watch(int descriptor, uint32_t mask, bool known) noexcept {
  int at = instance();
  if (at == none) return -e_nosys;
  epoll_event event;
  event.events = mask | edge_triggered;
  event.data = static_cast<uint64_t>(descriptor);
  // What the caller knows may be old: the descriptor may have been closed and used again where nobody saw it.
  long r = kernel::sys(__NR_epoll_ctl, at, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
  if (r == -e_exist) r = kernel::sys(__NR_epoll_ctl, at, EPOLL_CTL_MOD, descriptor, &event);
  if (r == -e_noent) r = kernel::sys(__NR_epoll_ctl, at, EPOLL_CTL_ADD, descriptor, &event);
  return r;
}

void unwatch(int descriptor) noexcept {
  epoll_event unused = {};
  kernel::sys(__NR_epoll_ctl, g_instance.load(relaxed), EPOLL_CTL_DEL, descriptor, &unused);
}

bool is_own(int descriptor) noexcept { return descriptor != none && descriptor == g_instance.load(relaxed); }

int own_number() noexcept { return g_instance.load(relaxed); }

void give_up_number(int descriptor) noexcept {
  long moved = kernel::sys(__NR_fcntl, descriptor, F_DUPFD_CLOEXEC, 0);
  if (kernel::is_error(moved)) return;
  int32_t mine = descriptor;
  if (!g_instance.compare_exchange_strong(mine, static_cast<int32_t>(moved), acq_rel, relaxed))
    kernel::sys(__NR_close, moved);
}

void forget_instance() noexcept {
  int32_t fd = g_instance.exchange(none, relaxed);
  activation::g_event_source.store(nullptr, relaxed);
  if (fd != none) kernel::sys(__NR_close, fd);
}

}  // namespace upcall::event

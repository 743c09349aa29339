#include "event/epoll.h"

#include <linux/eventpoll.h>
#include <linux/time_types.h>

#include "activation/event_source.h"
#include "event/numbers.h"
#include "kernel/clock.h"
#include "kernel/futex.h"

namespace upcall::event {

using activation::Activation;
using activation::Found;

void (*g_descriptor_event)(Activation*, int, uint32_t) = nullptr;

namespace {

constexpr uint32_t edge_triggered = 1u << 31;
constexpr long e_exist = 17, e_noent = 2, e_intr = 4, e_nosys = 38, e_restart = 512;
atomic<uint32_t> g_no_pwait2{0};

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
       kernel::sys(__NR_epoll_wait, number_of(Own::epoll), static_cast<void*>(events), Found::room, 0));
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
  long at = number_of(Own::epoll), room = Found::room;
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
  if (int known = number_of(Own::epoll); known != none) return known;
  long made = kernel::sys(__NR_epoll_create1, EPOLL_CLOEXEC);
  if (kernel::is_error(made)) return none;
  int fd = keep(Own::epoll, static_cast<int>(made));
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
  kernel::sys(__NR_epoll_ctl, number_of(Own::epoll), EPOLL_CTL_DEL, descriptor, &unused);
}

void forget_instance() noexcept {
  activation::g_event_source.store(nullptr, relaxed);
  close_own(Own::epoll);
}

}  // namespace upcall::event

// Calls that wait for a descriptor's readiness and move nothing, and those that change what a number stands for.
#include <poll.h>
#include <sys/socket.h>

#include "event/epoll.h"
#include "kernel/clock.h"
#include "linux/descriptors.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

namespace {

// What is waited for, and how it is asked.
struct Readiness {
  int fd;
  Direction direction;
  int32_t milliseconds;  // negative: for ever
};

// `look` asks without waiting; 0: not yet. Null: it cannot be watched, the kernel is to wait.
template <typename F>
Thread* wait_until_ready(Thread* t, const Readiness& what, F look) noexcept {
  // Where there are signalfds the kernel waits: signals of the runtime's own queues are lent to it for that.
  if (t->bound || event::is_own(what.fd) || signals::left_to_kernel()) return nullptr;
  Descriptor* d = descriptor(what.fd);
  if (!d) return nullptr;
  uint64_t known = t->restart_deadline;
  bool limited = what.milliseconds >= 0;
  uint64_t deadline = sched::never;
  if (limited)
    deadline = known ? known : kernel::now() + static_cast<uint64_t>(what.milliseconds) * 1'000'000;
  for (;;) {
    uint32_t seen = edges(d, what.direction);
    long r = look();
    if (r == -e_intr) continue;  // the reserved signal: a look does not wait, but says so
    if (r || !what.milliseconds || (limited && kernel::now() >= deadline)) {
      t->restart_deadline = t->call_deadline = 0;
      ++activation::self()->processor->counters.event_calls;
      return answer(t, r);
    }
    t->restart_deadline = 0;
    t->call_deadline = limited ? deadline : 0;
    DescriptorWait wait = {d, what.fd, what.direction, seen, deadline, 0, sched::Interrupted::ends};
    bool refused = false;
    Thread* next = wait_for_edge(t, wait, &refused);
    if (next) return next;
    if (refused) {
      t->restart_deadline = limited ? deadline : 0;
      return nullptr;
    }
  }
}

constexpr int out_events = POLLOUT | POLLWRNORM | POLLWRBAND;

// What poll's entries ask for, one wait for each direction. False: too many, or not for us.
class Polled {
 public:
  bool read(const Thread* t) noexcept {
    count_ = t->rsi;
    if (count_ > most_polled ||
        upcall_copy_user(asked_, reinterpret_cast<void*>(t->rdi), count_ * sizeof(pollfd)))
      return false;
    for (uint64_t i = 0; i < count_; ++i) {
      const pollfd& p = asked_[i];
      if (p.fd < 0) continue;
      if (event::is_own(p.fd)) return false;
      if ((p.events & ~out_events) || !p.events) add(p.fd, Direction::in);
      if (p.events & out_events) add(p.fd, Direction::out);
    }
    return valid_ && n;
  }
  // Before the kernel is asked.
  void note_edges() noexcept {
    for (uint32_t i = 0; i < n; ++i) waits[i].seen = edges(waits[i].d, waits[i].direction);
  }

  DescriptorWait waits[2 * most_polled] = {};
  uint32_t n = 0;

 private:
  void add(int fd, Direction direction) noexcept {
    Descriptor* d = descriptor(fd);
    if (!d || n == most_polled)
      valid_ = false;
    else
      waits[n++] = {d, fd, direction, 0, sched::never, 0, sched::Interrupted::ends};
  }
  pollfd asked_[most_polled];
  uint64_t count_ = 0;
  bool valid_ = true;
};

// Null: the kernel is to wait.
Thread* poll_several(Thread* t) noexcept {
  Polled polled;
  if (t->bound || signals::left_to_kernel() || !polled.read(t)) return nullptr;
  auto milliseconds = static_cast<int32_t>(t->rdx);
  bool limited = milliseconds >= 0;
  uint64_t deadline = sched::never;
  if (limited)
    deadline = t->restart_deadline ? t->restart_deadline
                                   : kernel::now() + static_cast<uint64_t>(milliseconds) * 1'000'000;
  for (;;) {
    polled.note_edges();
    long r = kernel::sys(__NR_poll, t->rdi, t->rsi, 0);
    if (r == -e_intr) continue;  // as above
    if (r || !milliseconds || (limited && kernel::now() >= deadline)) {
      t->restart_deadline = t->call_deadline = 0;
      ++activation::self()->processor->counters.event_calls;
      return answer(t, r);
    }
    t->restart_deadline = 0;
    t->call_deadline = limited ? deadline : 0;
    polled.waits[0].deadline = deadline;
    bool refused = false;
    Thread* next = wait_for_edges(t, polled.waits, polled.n, &refused);
    if (next) return next;
    if (refused) {
      t->restart_deadline = limited ? deadline : 0;
      return nullptr;
    }
  }
}

}  // namespace

namespace {

// What it waits for has been closed meanwhile, and is `fd` now. Of several, those that are open are looked at by their numbers.
Thread* poll_handed(Thread* t, int fd) noexcept {
  if (t->rsi != 1 || fd < 0) {
    if (fd >= 0) kernel::sys(__NR_close, fd);
    return nullptr;
  }
  auto* user = reinterpret_cast<pollfd*>(t->rdi);
  pollfd own = {};
  upcall_copy_user(&own, user, sizeof own);
  own.fd = fd;
  uint64_t deadline = sched::take_restart_deadline(t), now = kernel::now();
  long left = static_cast<int32_t>(t->rdx);
  if (deadline) left = deadline > now ? static_cast<long>((deadline - now + 999'999) / 1'000'000) : 0;
  const long args[6] = {reinterpret_cast<long>(&own), 1, left};
  t->call_deadline = 0;
  Thread* next = activation::blocking_call(t, t->nr, args);
  upcall_copy_user(&user->revents, &own.revents, sizeof own.revents);
  kernel::sys(__NR_close, fd);
  return next;
}

}  // namespace

Thread* poll_as_event(Thread* t) noexcept {
  Beginning now = begin_call(t);
  end_try(&now);
  if (now.is_handed)
    if (Thread* next = poll_handed(t, now.handed)) return next;
  auto timeout = static_cast<int32_t>(t->rdx);
  if (!t->rsi && timeout > 0) return sleep_milliseconds(t, static_cast<uint64_t>(timeout));
  pollfd asked;
  if (t->rsi > 1) {
    Thread* next = poll_several(t);
    return next ? next : sys_poll(t);
  }
  if (t->rsi != 1 || upcall_copy_user(&asked, reinterpret_cast<void*>(t->rdi), sizeof asked) || asked.fd < 0)
    return sys_poll(t);
  bool writes = asked.events & out_events;
  if (writes && (asked.events & ~out_events)) {
    Thread* next = poll_several(t);
    return next ? next : sys_poll(t);
  }
  Readiness what = {asked.fd, writes ? Direction::out : Direction::in, timeout};
  Thread* next = wait_until_ready(t, what, [t] { return kernel::sys(__NR_poll, t->rdi, 1, 0); });
  return next ? next : sys_poll(t);
}

Thread* epoll_as_event(Thread* t) noexcept {
  Beginning now = begin_call(t);
  end_try(&now);
  if (now.is_handed) return call_on_handed(t, &now);
  Readiness what = {static_cast<int>(t->rdi), Direction::in, static_cast<int32_t>(t->r10)};
  Thread* next =
      wait_until_ready(t, what, [t] { return kernel::sys(__NR_epoll_wait, t->rdi, t->rsi, t->rdx, 0); });
  return next ? next : sys_epoll_wait(t);
}

namespace {

// The kernel refuses others at once.
bool listens(Descriptor* d, int fd) noexcept {
  if (d->listens.load(relaxed)) return true;
  int value = 0;
  uint32_t size = sizeof value;
  constexpr int socket_level = 1, accepts = 30;  // SO_ACCEPTCONN
  bool yes = !kernel::sys(__NR_getsockopt, fd, socket_level, accepts, &value, &size) && value;
  d->listens.store(yes, relaxed);
  return yes;
}

bool valid_accept(const Thread* t) noexcept {
  return t->nr != __NR_accept4 || !(t->r10 & ~static_cast<uint64_t>(SOCK_NONBLOCK | SOCK_CLOEXEC));
}

// A number that it has for itself alone, if the answer is there.
Thread* note_new(Thread* t, Thread* next) noexcept {
  if (next == t) note_made(static_cast<long>(t->rax));
  return next;
}

// It has a table of descriptors of its own.
bool has_own_files(const Thread* t) noexcept { return t->bound && t->bound->own_files; }

}  // namespace

// The call itself may wait, should another thread or process be faster: it is made as one that may block.
Thread* sys_accept(Thread* t) noexcept {
  Beginning now = begin_call(t);
  end_try(&now);
  if (now.is_handed) return call_on_handed(t, &now);
  int fd = static_cast<int>(t->rdi);
  Descriptor* d = descriptor_for(t, fd);
  if (!d || !valid_accept(t) || !listens(d, fd)) return may_block(t);
  uint64_t known = sched::take_restart_deadline(t);
  for (;;) {
    know_modes(d, fd);
    if (d->nonblocking.load(relaxed) && !now.again) return note_new(t, pass(t));
    uint32_t seen = edges(d, Direction::in);
    pollfd asked = {fd, POLLIN, 0};
    if (kernel::sys(__NR_poll, static_cast<void*>(&asked), 1, 0)) return note_new(t, may_block(t));
    DescriptorWait wait = {d, fd, Direction::in, seen};
    t->call_deadline = 0;
    if (uint64_t limit = d->receive_timeout.load(relaxed)) {
      t->call_deadline = wait.deadline = known ? known : kernel::now() + limit;
      known = wait.deadline;
      wait.interrupted = sched::Interrupted::ends;
    }
    bool refused = false;
    Thread* next = wait_for_edge(t, wait, &refused);
    if (next) return next;
    if (refused) return may_block(t);
  }
}

Thread* sys_socket(Thread* t) noexcept { return note_new(t, pass(t)); }

// A Unix socket's writers are not told by an event.
Thread* sys_shutdown(Thread* t) noexcept {
  pass(t);
  release_descriptor(static_cast<int>(t->rdi));
  return t;
}

Thread* sys_close(Thread* t) noexcept {
  auto fd = static_cast<int>(t->rdi);
  if (has_own_files(t)) return activation::uninterrupted_call(t);
  if (event::is_own(fd)) return answer(t, -e_badf);
  leave_descriptor(fd);
  Thread* next = activation::uninterrupted_call(t);
  doubt_descriptor(fd);
  return next;
}

Thread* sys_close_range(Thread* t) noexcept {
  constexpr uint64_t unshare = 2, close_on_exec = 4;
  auto first = static_cast<uint32_t>(t->rdi), last = static_cast<uint32_t>(t->rsi);
  if (t->rdx & unshare) return sys_bound(t);
  if (has_own_files(t) || first > last || t->rdx & close_on_exec) return pass(t);
  leave_descriptors(first, last);
  int own = event::own_number();
  auto number = static_cast<uint32_t>(own);
  if (own < 0 || number < first || number > last) {
    pass(t);
  } else {
    long r = 0;
    if (number > first) r = kernel::sys(__NR_close_range, first, number - 1, t->rdx);
    if (!r && number < last) r = kernel::sys(__NR_close_range, number + 1, last, t->rdx);
    answer(t, r);
  }
  doubt_descriptors(first, last);
  return t;
}

Thread* sys_dup_onto(Thread* t) noexcept {
  auto fd = static_cast<int>(t->rsi);
  if (has_own_files(t) || t->rdi == t->rsi) return pass(t);
  if (event::is_own(static_cast<int>(t->rdi))) return answer(t, -e_badf);
  if (event::is_own(fd)) event::give_up_number(fd);
  leave_descriptor(fd);
  pass(t);
  doubt_descriptor(fd);
  return t;
}

Thread* sys_setsockopt(Thread* t) noexcept {
  constexpr uint64_t socket_level = 1, tcp_level = 6, upper_protocol = 31;
  auto level = t->rsi, option = t->rdx;
  bool mode = level == socket_level && (option == 20 || option == 21 || option == 66 || option == 67);
  // What makes a read wait for more than a byte: not to be tried.
  constexpr uint64_t low_water = 18;
  if (level == socket_level && option == low_water)
    if (Descriptor* d = descriptor_for(t, static_cast<int>(t->rdi))) d->kind.store(FileKind::other, relaxed);
  // Records (TLS in the kernel): a short read does not say that nothing is left.
  if (level == tcp_level && option == upper_protocol)
    if (Descriptor* d = descriptor_for(t, static_cast<int>(t->rdi))) d->ends.store(1, relaxed);
  pass(t);
  if (mode) modes_changed();
  return t;
}

}  // namespace upcall::linux_abi

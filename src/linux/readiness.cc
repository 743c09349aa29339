// Calls that wait until descriptors are ready and move nothing, as events: poll, ppoll, pselect6, epoll_wait and its relatives. A
// look that does not wait, and a wait for an edge on any of them; the look is the kernel's own call, so that it answers what the
// kernel would. Where that is not possible a function answers null, and the kernel waits (poll.cc).
#include <linux/time_types.h>
#include <poll.h>

#include "event/epoll.h"
#include "event/numbers.h"
#include "kernel/clock.h"
#include "linux/descriptors.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

namespace {

constexpr __kernel_timespec no_time = {0, 0};

// One wait for each descriptor and direction.
class Awaited {
 public:
  bool add(int fd, Direction direction) noexcept {
    Descriptor* d = event::is_own(fd) ? nullptr : descriptor(fd);
    if (!d || n == most_polled || !tells_again(fd)) return false;
    waits[n++] = {d, fd, direction, 0, sched::never, call_again, sched::Interrupted::ends};
    return true;
  }
  // Before the kernel is asked.
  void note_edges() noexcept {
    for (uint32_t i = 0; i < n; ++i) waits[i].seen = edges(waits[i].d, waits[i].direction);
  }
  // One of them is not what it was taken for (sys_epoll_ctl), and may have been watched since.
  bool told_once() noexcept {
    bool any = false;
    for (uint32_t i = 0; i < n; ++i) {
      if (waits[i].d->tells.load(relaxed) != Tells::once) continue;
      if (waits[i].d->watched.exchange(0, relaxed)) event::unwatch(waits[i].fd);
      any = true;
    }
    return any;
  }
  DescriptorWait waits[most_polled];
  uint32_t n = 0;
};

// How long a call waits. Made again after an edge, for what is left.
struct Limit {
  uint64_t deadline = sched::never;
  bool is_set = false, at_once = false;
  __kernel_timespec* left_to = nullptr;  // the program's: what is left when the call is over

  void set(const Thread* t, uint64_t ns) noexcept {
    is_set = true;
    at_once = ns == 0;
    deadline = t->restart_deadline ? t->restart_deadline : kernel::now() + ns;
  }
  void set_milliseconds(const Thread* t, uint64_t argument) noexcept {
    auto ms = static_cast<int32_t>(argument);
    if (ms >= 0) set(t, static_cast<uint64_t>(ms) * 1'000'000);
  }
  // False: the kernel is to say what is wrong with it.
  bool set_timespec(const Thread* t, uint64_t user) noexcept {
    uint64_t ns;
    if (!user) return true;
    if (t->restart_deadline) {  // what the program has there may have been changed by us
      set(t, 1);
      return true;
    }
    if (read_timespec(reinterpret_cast<void*>(user), &ns)) return false;
    set(t, ns);
    return true;
  }
  bool is_over() const noexcept { return at_once || (is_set && kernel::now() >= deadline); }
  // As the kernel: nothing of a time-out of 0, and no error where it cannot be written.
  void tell_rest() const noexcept {
    if (!left_to || at_once) return;
    uint64_t now = kernel::now(), left = deadline > now ? deadline - now : 0;
    __kernel_timespec rest = {static_cast<int64_t>(left / 1'000'000'000u),
                              static_cast<long long>(left % 1'000'000'000u)};
    upcall_copy_user(left_to, &rest, sizeof rest);
  }
};

// A signal that the borrowed mask lets through is pending: only where the call would wait it ends it.
Thread* end_by_signal(Thread* t) noexcept {
  t->interrupted_call = sched::Interrupted::ends;
  t->attention.store(1, relaxed);
  return answer(t, -e_intr);
}

// `look` asks without waiting; 0: nothing yet. `finish` is given what the call is to answer, and may change it. Null: one of them
// cannot be watched, the kernel is to wait.
template <typename F, typename G>
Thread* wait_for_any(Thread* t, Awaited* on, const Limit& limit, F look, G finish) noexcept {
  const DescriptorWait& first = on->waits[0];
  if (on->n == 1 && !t->restart_deadline && !limit.at_once && first.direction == Direction::in &&
      may_wait_alone(first.d, first.fd))
    return nullptr;
  t->call_deadline = limit.is_set ? limit.deadline : 0;
  t->sleep_rem = reinterpret_cast<uint64_t>(limit.left_to);
  for (;;) {
    on->note_edges();
    long r = look();
    if (r == -e_intr) continue;  // the reserved signal: a look does not wait, but says so
    if (r || limit.is_over()) {
      t->restart_deadline = t->call_deadline = t->sleep_rem = 0;
      if (limit.left_to) limit.tell_rest();
      ++activation::self()->processor->counters.event_calls;
      signals::return_mask(t);
      return answer(t, finish(r));
    }
    if (signals::lets_something_through(t)) return end_by_signal(t);
    t->restart_deadline = 0;
    on->waits[0].deadline = limit.deadline;
    bool refused = false;
    Thread* next =
        on->n == 1 ? wait_for_edge(t, on->waits[0], &refused) : wait_for_edges(t, on->waits, on->n, &refused);
    if (next == t && t->restore_mask) t->attention.store(1, relaxed);  // before_resume gives it back
    if (next) return next;
    if (refused || on->told_once()) {
      t->restart_deadline = t->call_deadline;
      return nullptr;
    }
  }
}

// Where there are signalfds the kernel waits: signals of the runtime's own queues are lent to it for that.
bool can_be_event(const Thread* t) noexcept { return !t->bound && !signals::left_to_kernel(); }

// False: it cannot be read.
bool borrow(Thread* t, uint64_t user_mask, uint64_t size) noexcept {
  return !user_mask || !signals::borrow_mask(t, user_mask, size);
}

// --- poll, ppoll

constexpr int out_events = POLLOUT | POLLWRNORM | POLLWRBAND;

// The entries that poll's argument has. False: too many, not to be read, none that can be watched.
bool read_polled(const Thread* t, Awaited* on) noexcept {
  pollfd asked[most_polled];
  uint64_t count = t->rsi;
  if (count > most_polled || upcall_copy_user(asked, reinterpret_cast<void*>(t->rdi), count * sizeof(pollfd)))
    return false;
  for (uint64_t i = 0; i < count; ++i) {
    const pollfd& p = asked[i];
    if (p.fd < 0) continue;
    if (((p.events & ~out_events) || !p.events) && !on->add(p.fd, Direction::in)) return false;
    if ((p.events & out_events) && !on->add(p.fd, Direction::out)) return false;
  }
  return on->n;
}

long as_it_is(long result) noexcept { return result; }

long look_at_polled(const Thread* t) noexcept { return kernel::sys(__NR_poll, t->rdi, t->rsi, 0); }

// What it waits for has been closed meanwhile, and is `fd` now. Of several, those that are open are looked at by their numbers.
Thread* poll_handed(Thread* t, int fd) noexcept {
  if (t->nr != __NR_poll || t->rsi != 1 || fd < 0) {
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
  HandedCall call = {fd, &own.revents, &user->revents, sizeof own.revents};
  return make_handed_call(t, args, &call);
}

// Null: go on. Else the call has been made on what its number stood for.
Thread* begin_readiness_call(Thread* t) noexcept {
  Beginning now = begin_call(t);
  end_try(&now);
  return now.is_handed ? poll_handed(t, now.handed) : nullptr;
}

// --- select

class Sets {
 public:
  bool read(const Thread* t) noexcept {
    auto n = static_cast<int32_t>(t->rdi);
    if (n < 0 || n > most) return false;
    count_ = n;
    bytes_ = static_cast<size_t>((n + 63) / 64 * 8);
    const uint64_t users[] = {t->rsi, t->rdx, t->r10};
    for (int i = 0; i < 3; ++i) {
      user_[i] = reinterpret_cast<void*>(users[i]);
      if (user_[i] && upcall_copy_user(asked_[i], user_[i], bytes_)) return false;
    }
    return true;
  }
  bool list(Awaited* on) const noexcept {
    for (int i = 0; i < count_ / 64 + (count_ % 64 != 0); ++i) {
      uint64_t valid = count_ - i * 64 >= 64 ? ~0ul : (1ul << (count_ - i * 64)) - 1;
      for (uint64_t in = ((user_[0] ? asked_[0][i] : 0) | (user_[2] ? asked_[2][i] : 0)) & valid; in;
           in &= in - 1)
        if (!on->add(i * 64 + __builtin_ctzll(in), Direction::in)) return false;
      for (uint64_t out = (user_[1] ? asked_[1][i] : 0) & valid; out; out &= out - 1)
        if (!on->add(i * 64 + __builtin_ctzll(out), Direction::out)) return false;
    }
    return true;
  }
  // The program's sets change only when the call is over.
  long look() noexcept {
    long at[3];
    for (int i = 0; i < 3; ++i) {
      __builtin_memcpy(found_[i], asked_[i], bytes_);
      at[i] = user_[i] ? reinterpret_cast<long>(found_[i]) : 0;
    }
    return kernel::sys(__NR_pselect6, count_, at[0], at[1], at[2], static_cast<const void*>(&no_time), 0);
  }
  long write(long result) const noexcept {
    if (result < 0) return result;
    for (int i = 0; i < 3; ++i)
      if (user_[i] && upcall_copy_user(user_[i], found_[i], bytes_)) return -e_fault;
    return result;
  }

 private:
  static constexpr int most = 1024;
  uint64_t asked_[3][most / 64] = {}, found_[3][most / 64];
  void* user_[3] = {};
  int32_t count_ = 0;
  size_t bytes_ = 0;
};

// A select of nothing, for some time.
Thread* sleep_in_select(Thread* t, const Limit& limit) noexcept {
  __kernel_timespec none = no_time;
  upcall_copy_user(limit.left_to, &none,
                   sizeof none);  // what it is when the time is over; a signal says what is left
  t->restart_deadline = 0;
  return sleep_for_call(t, limit.deadline, reinterpret_cast<uint64_t>(limit.left_to));
}

}  // namespace

Thread* poll_as_event(Thread* t) noexcept {
  if (Thread* next = begin_readiness_call(t)) return next;
  auto timeout = static_cast<int32_t>(t->rdx);
  if (!t->rsi && timeout > 0) return sleep_milliseconds(t, static_cast<uint64_t>(timeout));
  Awaited on;
  Limit limit;
  if (!can_be_event(t) || !read_polled(t, &on)) return sys_poll(t);
  limit.set_milliseconds(t, t->rdx);
  Thread* next = wait_for_any(
      t, &on, limit, [t] { return look_at_polled(t); }, as_it_is);
  return next ? next : sys_poll(t);
}

Thread* ppoll_as_event(Thread* t) noexcept {
  if (Thread* next = begin_readiness_call(t)) return next;
  Awaited on;
  Limit limit;
  Thread* next = nullptr;
  if (can_be_event(t) && read_polled(t, &on) && limit.set_timespec(t, t->rdx) && borrow(t, t->r10, t->r8)) {
    limit.left_to = reinterpret_cast<__kernel_timespec*>(t->rdx);
    next = wait_for_any(
        t, &on, limit, [t] { return look_at_polled(t); }, as_it_is);
  }
  if (next) return next;
  t->restart_deadline = 0;
  return sys_ppoll(t);
}

Thread* pselect6_as_event(Thread* t) noexcept {
  if (Thread* next = begin_readiness_call(t)) return next;
  Awaited on;
  Limit limit;
  Sets sets;
  uint64_t mask[2] = {};
  bool known = can_be_event(t) && sets.read(t) && sets.list(&on) && limit.set_timespec(t, t->r8) &&
               (!t->r9 || !upcall_copy_user(mask, reinterpret_cast<void*>(t->r9), sizeof mask));
  limit.left_to = reinterpret_cast<__kernel_timespec*>(t->r8);
  if (known && !on.n && !mask[0] && limit.is_set && !limit.at_once) return sleep_in_select(t, limit);
  Thread* next = nullptr;
  if (known && on.n && borrow(t, mask[0], mask[1]))
    next = wait_for_any(
        t, &on, limit, [&sets] { return sets.look(); }, [&sets](long r) { return sets.write(r); });
  if (next) return next;
  t->restart_deadline = 0;
  return sys_pselect6(t);
}

// epoll_wait, epoll_pwait, epoll_pwait2.
Thread* epoll_as_event(Thread* t) noexcept {
  Beginning now = begin_call(t);
  end_try(&now);
  if (now.is_handed) return call_on_handed(t, &now);
  bool has_mask = t->nr != __NR_epoll_wait;
  Awaited on;
  Limit limit;
  bool known = can_be_event(t) && on.add(static_cast<int>(t->rdi), Direction::in);
  if (known && t->nr == epoll_pwait2)
    known = limit.set_timespec(t, t->r10);
  else if (known)
    limit.set_milliseconds(t, t->r10);
  Thread* next = nullptr;
  if (known && (!has_mask || borrow(t, t->r8, t->r9)))
    next = wait_for_any(
        t, &on, limit, [t] { return kernel::sys(__NR_epoll_wait, t->rdi, t->rsi, t->rdx, 0); }, as_it_is);
  if (next) return next;
  return has_mask ? sys_epoll_pwait(t) : sys_epoll_wait(t);
}

}  // namespace upcall::linux_abi

// Calls that make descriptors, and those that change what a number stands for.
#include <poll.h>
#include <sys/socket.h>

#include "event/numbers.h"
#include "event/ring.h"
#include "kernel/clock.h"
#include "linux/descriptors.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

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
  if (!known && !now.again && !d->nonblocking.load(relaxed) && !d->receive_timeout.load(relaxed) &&
      may_wait_alone(d, fd))
    return note_new(t, may_block(t));
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

// Begun without waiting. When the socket is writable the connection is there, or has failed: then the kernel's own call, made
// again, answers without waiting.
Thread* sys_connect(Thread* t) noexcept {
  constexpr long e_already = 114, e_inprogress = 115;
  Beginning now = begin_call(t);
  end_try(&now);
  if (now.is_handed) return call_on_handed(t, &now);
  int fd = static_cast<int>(t->rdi);
  Descriptor* d = descriptor_for(t, fd);
  if (!d || d->kind.load(relaxed) != FileKind::tcp) return may_block(t);
  uint64_t deadline = sched::take_restart_deadline(t);
  know_modes(d, fd);
  if (d->nonblocking.load(relaxed) && !now.again) return pass(t);
  uint32_t seen = edges(d, Direction::out);
  if (!now.again) {
    long r = event::try_connect(fd, t->rsi, static_cast<uint32_t>(t->rdx));
    if (r == -e_nosys) return may_block(t);
    if (r != -e_inprogress && r != -e_already) {
      ++activation::self()->processor->counters.event_calls;
      return answer(t, r);
    }
  }
  for (;; seen = edges(d, Direction::out)) {
    pollfd asked = {fd, POLLOUT, 0};
    long ready = kernel::sys(__NR_poll, static_cast<void*>(&asked), 1, 0);
    if (ready == -e_intr) continue;  // the reserved signal: a look does not wait, but says so
    if (ready) return may_block(t);
    DescriptorWait wait = {d, fd, Direction::out, seen};
    t->call_deadline = 0;
    if (uint64_t limit = d->send_timeout.load(relaxed)) {
      if (!deadline) deadline = kernel::now() + limit;
      t->call_deadline = wait.deadline = deadline;
      wait.timeout_result = -e_inprogress;
      wait.interrupted = sched::Interrupted::ends;
    }
    bool refused = false;
    Thread* next = wait_for_edge(t, wait, &refused);
    if (next) return next;
    if (refused) return may_block(t);
  }
}

Thread* sys_pipe(Thread* t) noexcept {
  int32_t ends[2];
  pass(t);
  if (!t->rax && !upcall_copy_user(ends, reinterpret_cast<void*>(t->rdi), sizeof ends))
    for (int32_t end : ends) note_made(end);
  return t;
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

namespace {

long close_between_own(uint32_t first, uint32_t last, uint64_t flags) noexcept {
  for (uint64_t from = first; from <= last;) {
    constexpr uint32_t largest = 0x7fffffff;
    int own = from <= largest ? event::next_own(static_cast<int>(from)) : event::none;
    uint64_t to =
        own == event::none || static_cast<uint32_t>(own) > last ? last + 1ull : static_cast<uint64_t>(own);
    if (to > from)
      if (long r = kernel::sys(__NR_close_range, from, to - 1, flags)) return r;
    from = to + 1;
  }
  return 0;
}

}  // namespace

Thread* sys_close_range(Thread* t) noexcept {
  constexpr uint64_t unshare = 2, close_on_exec = 4;
  auto first = static_cast<uint32_t>(t->rdi), last = static_cast<uint32_t>(t->rsi);
  if (t->rdx & unshare) return sys_bound(t);
  if (has_own_files(t) || first > last || t->rdx & close_on_exec) return pass(t);
  leave_descriptors(first, last);
  answer(t, close_between_own(first, last, t->rdx));
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

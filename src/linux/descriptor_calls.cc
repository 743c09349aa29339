// Calls on descriptors, tried without blocking; who would block waits for an event (descriptors.h).
#include <linux/time_types.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "kernel/clock.h"
#include "linux/descriptors.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

namespace {

constexpr long e_opnotsupp = 95, e_notsock = 88, e_inprogress = 115;
constexpr long no_wait = 8;  // RWF_NOWAIT

struct Attempt {
  Descriptor* d;
  int fd;
  Direction direction;
  Beginning* now;     // `again`: O_NONBLOCK that was set since does not matter
  size_t wanted = 0;  // of a call that reads a stream and nothing else: bytes; 0: a short answer says nothing
};

// Only of these: a pipe's reader cannot tell whether its writers send packets (O_DIRECT), and Unix sockets stop a read where
// the sender or passed descriptors change.
bool is_tcp(const Descriptor* d) noexcept { return d->kind.load(relaxed) == FileKind::tcp; }
bool is_pipe(const Descriptor* d) noexcept { return d->kind.load(relaxed) == FileKind::pipe; }

bool known_empty(const Attempt& call, uint32_t seen) noexcept {
  const Descriptor* d = call.d;
  return call.wanted && d->emptied_at.load(relaxed) == seen + 1 && !d->ends.load(relaxed) &&
         !d->nonblocking.load(relaxed);
}

// Not what it was taken for, a sandbox refuses the call that does not wait, or it connects: the kernel makes the call.
bool is_for_kernel(Descriptor* d, long r) noexcept {
  if (r == -e_notsock) d->kind.store(FileKind::unknown, relaxed);
  if (r == -e_opnotsupp || r == -e_nosys) d->kind.store(FileKind::other, relaxed);
  return r == -e_opnotsupp || r == -e_notsock || r == -e_nosys || r == -e_perm || r == -e_inprogress;
}

// shutdown(2) ends reads that wait on datagrams; the kernel says so to them only.
bool is_shut(const Attempt& call) noexcept {
  FileKind kind = call.d->kind.load(relaxed);
  if (call.direction == Direction::out || !call.d->ends.load(relaxed) || kind == FileKind::tcp ||
      kind == FileKind::pipe)
    return false;
  constexpr short read_end = 0x2000;  // POLLRDHUP
  pollfd asked = {call.fd, read_end, 0};
  return kernel::sys(__NR_poll, static_cast<void*>(&asked), 1, 0) > 0 && (asked.revents & read_end);
}

// A short answer says that nothing is left, not that the program's buffer has ended where its memory does.
bool has_room(const Thread* t, const Attempt& call) noexcept {
  uint32_t value;
  return !upcall_load_user32(reinterpret_cast<uint32_t*>((t->rsi + call.wanted - 1) & ~3ul), &value);
}

Thread* in_kernel(Thread* t, Beginning* now) noexcept {
  end_try(now);
  return may_block(t);
}

// The pipe was empty before those bytes were written.
Thread* read_told(Thread* t, const Attempt& call, uint32_t bytes) noexcept {
  Descriptor* d = call.d;
  Thread* next = may_block(t);
  // Not all of it, or not known any more.
  if (next != t || t->rax != bytes) d->unread.store(true, relaxed);
  end_try(call.now);
  return next;
}

// A first try that nothing has been found out about since it would have had to wait.
bool waits_alone(const Attempt& call, uint64_t deadline) noexcept {
  Descriptor* d = call.d;
  return call.direction == Direction::in && !deadline && !call.now->again && !call.now->after_untried &&
         !d->nonblocking.load(relaxed) && !d->receive_timeout.load(relaxed) && may_wait_alone(d, call.fd);
}

// `attempt` makes the call at once or answers -EAGAIN.
template <typename F>
Thread* try_call(Thread* t, const Attempt& call, F attempt) noexcept {
  uint64_t known_deadline = sched::take_restart_deadline(t);
  Descriptor* d = call.d;
  bool reads_pipe = call.direction == Direction::in && is_pipe(d);
  if (waits_alone(call, known_deadline)) return in_kernel(t, call.now);
  if (uint32_t bytes; reads_pipe && told_by_writer(d, *call.now, &bytes)) return read_told(t, call, bytes);
  for (bool untried = reads_pipe && waits_untried(d, *call.now);; untried = false) {
    if (untried) note_untried(d, call.fd);  // may count an edge
    uint32_t seen = edges(d, call.direction);
    bool empty = known_empty(call, seen);
    if (!empty && !untried) {
      long r = attempt();
      if (reads_pipe) learn_from_try(d, *call.now, seen, r);
      end_try(call.now);
      if (is_for_kernel(d, r) || (r == -e_again && is_shut(call))) {
        t->restart_deadline = known_deadline;
        return may_block(t);
      }
      if (r != -e_again) {
        if (call.wanted && r > 0 && static_cast<size_t>(r) < call.wanted && has_room(t, call))
          d->emptied_at.store(seen + 1, relaxed);
        if (r > 0 && call.direction == Direction::out && is_pipe(d))
          wake_pipe_readers(d, static_cast<uint64_t>(r));
        if (r == -e_pipe) signals::after_blocking(t, r);  // there is a signal for it
        ++activation::self()->processor->counters.event_calls;
        return answer(t, r);
      }
    }
    end_try(call.now);
    // What waits untried asks for the modes when it has tried.
    if (!untried) know_modes(d, call.fd);
    if (empty && !known_empty(call, seen)) continue;  // it is not to wait
    if (!untried && d->nonblocking.load(relaxed) && !call.now->again) {
      ++activation::self()->processor->counters.event_calls;
      return answer(t, -e_again);
    }
    DescriptorWait wait = {d, call.fd, call.direction, seen};
    uint64_t limit = (call.direction == Direction::in ? d->receive_timeout : d->send_timeout).load(relaxed);
    t->call_deadline = 0;
    if (limit) {
      if (!known_deadline) known_deadline = kernel::now() + limit;
      t->call_deadline = wait.deadline = known_deadline;
      wait.interrupted = sched::Interrupted::ends;
    }
    t->untried = untried;
    if (untried) {
      wait.deadline = untried_deadline(d, seen);
      wait.timeout_result = call_again;
    }
    bool refused = false;
    Thread* next = wait_for_edge(t, wait, &refused);
    if (next) return next;
    if (refused) {
      d->kind.store(FileKind::other, relaxed);
      return may_block(t);
    }
  }
}

bool nonblocking(const Attempt& call) noexcept {
  know_modes(call.d, call.fd);
  return call.d->nonblocking.load(relaxed);
}

// The rest of what a stream has taken only a part of: by a call that may block, which answers for both. There is no signal for
// a connection that ends meanwhile: the part is the answer.
Thread* send_rest(Thread* t, long done, long nr, const long (&args)[6]) noexcept {
  t->call_done = done;
  t->call_deadline = 0;
  return activation::blocking_call(t, nr, args);
}

// A write of so many bytes. Null: a part of it has been written, *part, and the rest is to follow.
template <typename F>
Thread* try_write(Thread* t, const Attempt& call, uint64_t bytes, long* part, F once) noexcept {
  *part = 0;
  Thread* next = try_call(t, call, [&] {
    long r = once();
    if (r > 0 && static_cast<uint64_t>(r) < bytes) *part = r;
    return r;
  });
  return *part && !nonblocking(call) ? nullptr : next;
}

// For calls that write.
Descriptor* of_writer(const Thread* t) noexcept {
  Descriptor* d = descriptor_for(t, static_cast<int>(t->rdi));
  if (!d) return nullptr;
  FileKind kind = d->kind.load(relaxed);
  return kind == FileKind::datagrams || kind == FileKind::local ? nullptr : d;
}
Descriptor* of_call(const Thread* t) noexcept { return descriptor_for(t, static_cast<int>(t->rdi)); }
int fd_of(const Thread* t) noexcept { return static_cast<int>(t->rdi); }

long read_once(const Thread* t, const Descriptor* d) noexcept {
  if (!is_pipe(d)) return kernel::sys(__NR_recvfrom, t->rdi, t->rsi, t->rdx, MSG_DONTWAIT, 0, 0);
  iovec to = {reinterpret_cast<void*>(t->rsi), t->rdx};
  return kernel::sys(__NR_preadv2, t->rdi, static_cast<void*>(&to), 1, -1l, -1l, no_wait);
}

long write_once(const Thread* t, const Descriptor* d) noexcept {
  if (!is_pipe(d)) return kernel::sys(__NR_sendto, t->rdi, t->rsi, t->rdx, MSG_DONTWAIT, 0, 0);
  iovec from = {reinterpret_cast<void*>(t->rsi), t->rdx};
  return kernel::sys(__NR_pwritev2, t->rdi, static_cast<void*>(&from), 1, -1l, -1l, no_wait);
}

Thread* pass_signalled(Thread* t) noexcept {
  long r = raw_call(t);
  if (r == -e_pipe) signals::after_blocking(t, r);
  return answer(t, r);
}

// Who reads waits: nothing is in the pipe, and a small write has room. A call that may block costs less than a try.
Descriptor* reader_with_room(const Thread* t, const Descriptor* written) noexcept {
  constexpr uint64_t small = 512;
  if (t->rdx > small) return nullptr;
  Descriptor* d = reader_of(written);
  return d && reader_waits_unwatched(d) ? d : nullptr;
}

Thread* write_to_waiting(Thread* t, Beginning* now, Descriptor* reader) noexcept {
  uint64_t bytes = t->rdx;
  Thread* next = in_kernel(t, now);
  tell_readers(reader, bytes);  // whoever runs now
  return next;
}

constexpr int most_pieces = 32;

// The pieces of a call with several buffers. False: too many, or not to be read; the kernel makes the call.
struct Pieces {
  iovec at[most_pieces];
  uint64_t count = 0, bytes = 0;
  bool read(uint64_t user, uint64_t n) noexcept {
    if (n > most_pieces || upcall_copy_user(at, reinterpret_cast<void*>(user), n * sizeof(iovec)))
      return false;
    count = n;
    for (uint64_t i = 0; i < n; ++i) bytes += at[i].iov_len;
    return true;
  }
  // What is left after so many bytes.
  msghdr after(uint64_t done) noexcept {
    uint64_t i = 0;
    for (; i < count && done >= at[i].iov_len; ++i) done -= at[i].iov_len;
    if (i < count) {
      at[i].iov_base = static_cast<char*>(at[i].iov_base) + done;
      at[i].iov_len -= done;
    }
    msghdr rest = {};
    rest.msg_iov = &at[i];
    rest.msg_iovlen = count - i;
    return rest;
  }
};

}  // namespace

Thread* make_handed_call(Thread* t, const long args[6], HandedCall* call) noexcept {
  t->call_deadline = 0;
  t->handed_call = call;
  return activation::blocking_call(t, t->nr, args);
}

void end_handed_call(Thread* t) noexcept {
  const auto* call = static_cast<const HandedCall*>(t->handed_call);
  t->handed_call = nullptr;
  if (call->bytes) upcall_copy_user(call->user, call->own, call->bytes);
  kernel::sys(__NR_close, call->fd);
}

Thread* call_on_handed(Thread* t, Beginning* now) noexcept {
  end_try(now);
  int fd = now->handed;
  if (fd < 0) return answer(t, -e_badf);  // no number was free
  long args[6] = {fd,
                  static_cast<long>(t->rsi),
                  static_cast<long>(t->rdx),
                  static_cast<long>(t->r10),
                  static_cast<long>(t->r8),
                  static_cast<long>(t->r9)};
  uint64_t deadline = sched::take_restart_deadline(t);
  __kernel_timespec rest;
  if (t->nr == __NR_epoll_wait || t->nr == __NR_epoll_pwait || t->nr == epoll_pwait2) {
    uint64_t time = kernel::now(), left = deadline > time ? deadline - time : 0;
    rest = {static_cast<int64_t>(left / 1'000'000'000u), static_cast<long long>(left % 1'000'000'000u)};
    if (deadline)
      args[3] = t->nr == epoll_pwait2 ? reinterpret_cast<long>(&rest)
                                      : static_cast<long>((left + 999'999) / 1'000'000);
    // Given back if a signal was looked at meanwhile.
    if (t->nr != __NR_epoll_wait && t->r8) signals::borrow_mask(t, t->r8, t->r9);
    args[4] = args[5] = 0;
  }
  HandedCall call = {fd};
  return make_handed_call(t, args, &call);
}

Thread* sys_read(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  Descriptor* d = of_call(t);
  if (!d || !t->rdx) return in_kernel(t, &now);
  Attempt call = {d, fd_of(t), Direction::in, &now, is_tcp(d) ? t->rdx : 0};
  return try_call(t, call, [t, d] { return read_once(t, d); });
}

Thread* sys_write(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  Descriptor* d = of_writer(t);
  if (!d || !t->rdx) return in_kernel(t, &now);
  Attempt call = {d, fd_of(t), Direction::out, &now};
  if (Descriptor* reader = is_pipe(d) ? reader_with_room(t, d) : nullptr)
    return write_to_waiting(t, &now, reader);
  long part;
  if (Thread* next = try_write(t, call, t->rdx, &part, [&] { return write_once(t, d); })) return next;
  const long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi) + part,
                        static_cast<long>(t->rdx) - part, MSG_NOSIGNAL};
  return send_rest(t, part, is_pipe(d) ? __NR_write : __NR_sendto, args);
}

Thread* sys_readv(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  Descriptor* d = of_call(t);
  if (!d) return in_kernel(t, &now);
  Attempt call = {d, fd_of(t), Direction::in, &now};
  return try_call(t, call,
                  [t] { return kernel::sys(__NR_preadv2, t->rdi, t->rsi, t->rdx, -1l, -1l, no_wait); });
}

Thread* sys_writev(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  Descriptor* d = of_writer(t);
  Pieces pieces;
  if (!d || !pieces.read(t->rsi, t->rdx) || !pieces.bytes) return in_kernel(t, &now);
  Attempt call = {d, fd_of(t), Direction::out, &now};
  long part;
  if (Thread* next = try_write(t, call, pieces.bytes, &part, [&] {
        return kernel::sys(__NR_pwritev2, t->rdi, t->rsi, t->rdx, -1l, -1l, no_wait);
      }))
    return next;
  msghdr rest = pieces.after(static_cast<uint64_t>(part));
  if (!is_pipe(d)) {
    const long message[6] = {static_cast<long>(t->rdi), reinterpret_cast<long>(&rest), MSG_NOSIGNAL};
    return send_rest(t, part, __NR_sendmsg, message);
  }
  const long args[6] = {static_cast<long>(t->rdi), reinterpret_cast<long>(rest.msg_iov),
                        static_cast<long>(rest.msg_iovlen)};
  return send_rest(t, part, __NR_writev, args);
}

Thread* sys_recvfrom(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  if (t->r10 & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB)) return pass(t);
  Descriptor* d = of_call(t);
  if (!d || is_pipe(d) || (t->r10 & MSG_WAITALL)) return in_kernel(t, &now);
  bool plain = is_tcp(d) && !(t->r10 & ~static_cast<uint64_t>(MSG_NOSIGNAL));
  Attempt call = {d, fd_of(t), Direction::in, &now, plain ? t->rdx : 0};
  return try_call(t, call, [t] {
    return kernel::sys(__NR_recvfrom, t->rdi, t->rsi, t->rdx, t->r10 | MSG_DONTWAIT, t->r8, t->r9);
  });
}

Thread* sys_sendto(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  if (t->r10 & MSG_DONTWAIT) return pass_signalled(t);
  Descriptor* d = of_writer(t);
  if (!d || is_pipe(d) || (t->r10 & MSG_FASTOPEN)) return in_kernel(t, &now);
  Attempt call = {d, fd_of(t), Direction::out, &now};
  long part;
  if (Thread* next = try_write(t, call, t->rdx, &part, [&] {
        return kernel::sys(__NR_sendto, t->rdi, t->rsi, t->rdx, t->r10 | MSG_DONTWAIT, t->r8, t->r9);
      }))
    return next;
  const long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi) + part,
                        static_cast<long>(t->rdx) - part, static_cast<long>(t->r10 | MSG_NOSIGNAL)};
  return send_rest(t, part, __NR_sendto, args);
}

Thread* sys_recvmsg(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  if (t->rdx & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB)) return pass(t);
  Descriptor* d = of_call(t);
  if (!d || is_pipe(d) || (t->rdx & MSG_WAITALL)) return in_kernel(t, &now);
  Attempt call = {d, fd_of(t), Direction::in, &now};
  return try_call(t, call, [t] { return kernel::sys(__NR_recvmsg, t->rdi, t->rsi, t->rdx | MSG_DONTWAIT); });
}

Thread* sys_sendmsg(Thread* t) noexcept {
  Beginning now = begin_call(t);
  if (now.is_handed) return call_on_handed(t, &now);
  msghdr message;
  Pieces pieces;
  bool read = !upcall_copy_user(&message, reinterpret_cast<void*>(t->rsi), sizeof message);
  if (read && message.msg_controllen) descriptors_shared();  // perhaps some are in it
  if (t->rdx & MSG_DONTWAIT) return pass_signalled(t);
  Descriptor* d = of_writer(t);
  if (!d || is_pipe(d) || !read || (t->rdx & MSG_FASTOPEN) ||
      !pieces.read(reinterpret_cast<uint64_t>(message.msg_iov), message.msg_iovlen))
    return in_kernel(t, &now);
  Attempt call = {d, fd_of(t), Direction::out, &now};
  long part;
  if (Thread* next = try_write(t, call, pieces.bytes, &part, [&] {
        return kernel::sys(__NR_sendmsg, t->rdi, t->rsi, t->rdx | MSG_DONTWAIT);
      }))
    return next;
  msghdr rest = pieces.after(static_cast<uint64_t>(part));
  const long args[6] = {static_cast<long>(t->rdi), reinterpret_cast<long>(&rest),
                        static_cast<long>(t->rdx | MSG_NOSIGNAL)};
  return send_rest(t, part, __NR_sendmsg, args);
}

}  // namespace upcall::linux_abi

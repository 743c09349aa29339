#include "linux/descriptors.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <new>

#include "activation/event_source.h"
#include "event/epoll.h"
#include "event/numbers.h"
#include "event/ring.h"
#include "kernel/clock.h"
#include "kernel/memory.h"

namespace upcall::linux_abi {

namespace {

constexpr Direction directions[] = {Direction::in, Direction::out};
constexpr uint32_t chunk_bits = 8, chunk_size = 1u << chunk_bits, chunks = 1u << 12;
// Made when first needed, never given back.
atomic<Descriptor*> g_chunk[chunks];
atomic<uint32_t> g_mode_changes{1}, g_sharings{1};

bool in_range(int fd) noexcept { return fd >= 0 && static_cast<uint32_t>(fd) < chunks * chunk_size; }

Descriptor* make_chunk(uint32_t index) noexcept {
  auto* made = static_cast<Descriptor*>(kernel::map_pages(chunk_size * sizeof(Descriptor)));
  if (!made) return nullptr;
  for (uint32_t i = 0; i < chunk_size; ++i) new (&made[i]) Descriptor;
  Descriptor* there = nullptr;
  // release: pairs with the loads of descriptor()
  if (g_chunk[index].compare_exchange_strong(there, made, acq_rel, acquire)) return made;
  kernel::unmap_pages(made, chunk_size * sizeof(Descriptor));
  return there;
}

Descriptor* known_descriptor(int fd) noexcept {
  if (!in_range(fd)) return nullptr;
  Descriptor* c = g_chunk[static_cast<uint32_t>(fd) >> chunk_bits].load(acquire);
  return c ? &c[static_cast<uint32_t>(fd) & (chunk_size - 1)] : nullptr;
}

// Where a thread has waited for a pipe last: a hint, checked by who uses it.
struct PipeReader {
  atomic<uint64_t> pipe{0};
  atomic<int32_t> fd{0};
};
PipeReader g_pipe_readers[256];
PipeReader& pipe_reader(uint64_t pipe) noexcept { return g_pipe_readers[pipe % 256]; }

uint64_t socket_timeout(int fd, int option) noexcept {
  int64_t tv[2] = {};
  uint32_t size = sizeof tv;
  if (kernel::sys(__NR_getsockopt, fd, SOL_SOCKET, option, static_cast<void*>(tv), &size)) return 0;
  return static_cast<uint64_t>(tv[0]) * 1'000'000'000u + static_cast<uint64_t>(tv[1]) * 1000;
}

// Under the bucket's lock, at once with the claim: whoever closes the number from then on finds the thread.
void begin_repeat(Descriptor* d, Thread* t) noexcept {
  t->repeats = d;
  d->released.fetch_add(1, relaxed);
}

// Under b's lock: all who wait there are to make their calls again.
void take_waiters(Descriptor* d, Bucket& b, WakeList* list) noexcept {
  for (Thread *t = b.head, *next; t; t = next) {
    next = t->wait_next;
    if (!sched::claim_wait(t, t->wait_word.load(relaxed))) continue;  // whoever has claimed it unlinks it
    unlink(b, t);
    activation::g_event_waits.fetch_sub(1, relaxed);
    begin_repeat(d, t);
    list->add(t);
  }
}

void make_calls_again(Activation* a, const WakeList& list) noexcept {
  if (list.n) activation::g_event_releases.fetch_add(list.n, relaxed);
  for (Thread *t = list.head, *next; t; t = next) {
    next = t->wait_next;
    if (sched::is_armed(t)) t->timers->cancel(t);
    make_call_again(t);
    if (t->call_deadline) t->restart_deadline = t->call_deadline;
    activation::ready_woken(a, t);
  }
}

void release_waiters(Activation* a, Descriptor* d, Direction direction) noexcept {
  Side& s = d->of(direction);
  constexpr uint32_t room = 16;
  Thread* claimed[room];
  uint32_t n;
  do {
    WakeList list;
    {
      LockGuard guard(s.waiting.lock);
      s.edges.fetch_add(1, release);  // pairs with edges()
      take_waiters(d, s.waiting, &list);
      n = claim_polls(s.polls, claimed, room);
      for (uint32_t i = 0; i < n; ++i) begin_repeat(d, claimed[i]);
    }
    for (uint32_t i = 0; i < n; ++i) {
      unlink_waiter(claimed[i]);
      list.add(claimed[i]);
    }
    make_calls_again(a, list);
  } while (n == room);
}

void on_event(Activation* a, int fd, uint32_t mask) noexcept {
  Descriptor* d = known_descriptor(fd);
  if (!d) return;
  constexpr uint32_t ends = event::peer_closed | event::hung_up | event::failed | event::urgent;
  if (mask & ends) d->ends.store(1, relaxed);  // before the edge is counted
  if (mask & (event::readable | ends)) release_waiters(a, d, Direction::in);
  if (mask & (event::writable | event::hung_up | event::failed)) release_waiters(a, d, Direction::out);
}

bool is_known(const Descriptor* d) noexcept {
  return d->kind.load(relaxed) != FileKind::unknown || d->tells.load(relaxed) != Tells::unknown ||
         d->watched.load(relaxed);
}

// As of a number that nobody has used. What is forgotten too much is found out again.
void start_over(Descriptor* d) noexcept {
  d->vain_tries.store(0, relaxed);
  d->unread.store(false, relaxed);
  d->told.store(0, relaxed);
  d->uses.fetch_add(1, acq_rel);  // pairs with be_watched
  d->watched.store(0, relaxed);
  d->kind.store(FileKind::unknown, relaxed);
  d->pipe.store(0, relaxed);
  d->emptied_at.store(0, relaxed);
  d->ends.store(0, relaxed);
  d->mode_known.store(0, relaxed);
  d->alone_since.store(0, relaxed);
  d->listens.store(false, relaxed);
  d->tells.store(Tells::unknown, relaxed);
}

// What the number stands for, under another one, for a thread that has waited for it and does not run: closing the number must
// not end the call, nor lead it to another file.
void hand_over(Thread* t, int fd) noexcept {
  long own = kernel::sys(__NR_fcntl, fd, F_DUPFD_CLOEXEC, 0);
  uint64_t word = kernel::is_error(own) ? 0xffffffffu : static_cast<uint64_t>(own) + 1;
  uint64_t none = 0, sequence = static_cast<uint32_t>(t->wait_word.load(relaxed) >> 1);
  // release: pairs with begin_call.
  if (!t->handed.compare_exchange_strong(none, sequence << 32 | word, release, relaxed) &&
      !kernel::is_error(own))
    kernel::sys(__NR_close, own);
}

// Those whose wait has ended, and who have not made the call again since.
void hand_over_released(Descriptor* d, int fd) noexcept {
  sched::g_threads.find_if([&](Thread* t) {
    if (t->repeats == d) hand_over(t, fd);
    return false;
  });
}

void leave(Descriptor* d, int fd) noexcept {
  // Without the locks: who begins to wait meanwhile uses a number that is being closed.
  bool waited_for = d->of(Direction::in).waiting.head || d->of(Direction::out).waiting.head;
  if (d->watched.load(relaxed) || waited_for) event::unwatch(fd);
  // Tries are over at once, but for a read of a pipe that was told of data which somebody else has taken: some ms.
  constexpr uint32_t longest_wait = 440;
  uint32_t waited_steps = 0;
  bool more;
  do {
    WakeList waited;
    for (Side& s : d->side)
      // Whoever has claimed one of them takes it out at once, and may have it make its call again.
      for (uint32_t i = 0; s.waiting.head; ++i) {
        {
          LockGuard guard(s.waiting.lock);
          take_waiters(d, s.waiting, &waited);
        }
        if (s.waiting.head) wait_step(i);
      }
    // After that: whoever an event has been faster with is among them.
    if (d->released.load(fenced)) hand_over_released(d, fd);
    more = false;
    for (; waited_steps < longest_wait && d->tries.load(acquire); ++waited_steps, more = true)
      wait_step(waited_steps);
    make_calls_again(activation::self(), waited);
  } while (more && waited_steps < longest_wait);
  d->alone_since.store(0, relaxed);
  if (is_known(d)) start_over(d);
}

}  // namespace

Descriptor* descriptor(int fd) noexcept {
  if (!in_range(fd)) return nullptr;
  uint32_t index = static_cast<uint32_t>(fd) >> chunk_bits;
  Descriptor* c = g_chunk[index].load(acquire);  // pairs with make_chunk
  if (__builtin_expect(!c, 0) && !(c = make_chunk(index))) return nullptr;
  return &c[static_cast<uint32_t>(fd) & (chunk_size - 1)];
}

Descriptor* descriptor_for(const Thread* t, int fd) noexcept {
  // A bound thread has a processor of its own, and may have descriptors of its own.
  if (t->bound) return nullptr;
  Descriptor* d = descriptor(fd);
  if (!d) return nullptr;
  FileKind kind = d->kind.load(relaxed);
  if (kind == FileKind::unknown) {
    kind = event::is_own(fd) ? FileKind::unknown : kind_of(d, fd);
    d->kind.store(kind, relaxed);
  }
  return kind == FileKind::unknown || kind == FileKind::other ? nullptr : d;
}

void modes_changed() noexcept { g_mode_changes.fetch_add(1, release); }  // pairs with know_modes

void descriptors_shared() noexcept { g_sharings.fetch_add(1, relaxed); }

void note_made(long fd) noexcept {
  Descriptor* d = kernel::is_error(fd) ? nullptr : descriptor(static_cast<int>(fd));
  if (!d) return;
  d->alone_since.store(g_sharings.load(relaxed), relaxed);
  d->tells.store(Tells::again, relaxed);
}

Beginning begin_call(Thread* t) noexcept {
  Beginning b;
  bool waited = t->repeats;
  b.after_untried = waited && t->untried;
  b.again = waited && !t->untried;
  t->untried = false;
  if (waited) {
    b.tried = static_cast<Descriptor*>(t->repeats);
    b.tried->tries.fetch_add(1, fenced);  // pairs with leave, which looks for the thread before
    end_repeat(t);
  }
  if (__builtin_expect(!t->handed.load(relaxed), 1)) return b;
  uint64_t word = t->handed.exchange(0, acquire);                      // pairs with hand_over
  int32_t fd = static_cast<int32_t>(static_cast<uint32_t>(word)) - 1;  // negative: none was free
  b.is_handed = waited && word >> 32 == static_cast<uint32_t>(t->wait_word.load(relaxed) >> 1);
  b.handed = fd;
  // Of an earlier call, which a handler has left for good.
  if (!b.is_handed && fd >= 0) kernel::sys(__NR_close, fd);
  return b;
}

bool end_repeat(Thread* t) noexcept {
  auto* d = static_cast<Descriptor*>(t->repeats);
  if (!d) return false;
  t->repeats = nullptr;
  d->released.fetch_sub(1, relaxed);
  return true;
}

void repeat_after_time(Thread* t) noexcept {
  Descriptor* d = first_polled(t);
  begin_repeat(d ? d : known_descriptor(static_cast<int>(t->wait_key >> 2)), t);
  make_call_again(t);
  t->restart_deadline = t->call_deadline;
}

void know_modes(Descriptor* d, int fd) noexcept {
  uint32_t now = g_mode_changes.load(acquire);  // pairs with modes_changed
  FileKind kind = d->kind.load(relaxed);
  // Other processes that have it may change them (make's job server).
  bool alone = d->alone_since.load(relaxed) == g_sharings.load(relaxed);
  if (alone && d->mode_known.load(relaxed) == now) return;
  long flags = kernel::sys(__NR_fcntl, fd, F_GETFL);
  bool nonblocking = flags >= 0 && (flags & O_NONBLOCK);
  d->nonblocking.store(nonblocking, relaxed);
  bool has_timeouts = kind != FileKind::pipe && !nonblocking;
  constexpr int receive = 20, send = 21;  // SO_RCVTIMEO_OLD, SO_SNDTIMEO_OLD
  d->receive_timeout.store(has_timeouts ? socket_timeout(fd, receive) : 0, relaxed);
  d->send_timeout.store(has_timeouts ? socket_timeout(fd, send) : 0, relaxed);
  d->mode_known.store(now, relaxed);
}

bool be_watched(const DescriptorWait& wait, bool* refused) noexcept {
  constexpr uint32_t in = event::readable | event::peer_closed | event::urgent;
  uint32_t mask = wait.direction == Direction::in ? in : event::writable;
  uint32_t known = wait.d->watched.load(relaxed);
  if ((known & mask) == mask) return true;
  uint32_t use = wait.d->uses.load(acquire);
  if (event::watch(wait.fd, known | mask, known != 0)) {
    *refused = true;
    return false;
  }
  wait.d->watched.fetch_or(mask, acq_rel);
  // acquire: pairs with start_over. Closed meanwhile: what is watched may be the file before.
  if (wait.d->uses.load(acquire) == use) return true;
  wait.d->watched.store(0, relaxed);
  return false;
}

void stop_watching(Descriptor* d, int fd) noexcept {
  event::unwatch(fd);
  d->uses.fetch_add(1, acq_rel);  // pairs with be_watched
  d->watched.store(0, relaxed);
  Activation* a = activation::self();
  for (Direction direction : directions) release_waiters(a, d, direction);
}

bool may_wait_alone(Descriptor* d, int fd) noexcept {
  activation::Processor* p = activation::self()->processor;
  const Side& in = d->of(Direction::in);
  if (!activation::may_wait_alone(p, &in) || in.has_waiters() || d->of(Direction::out).has_waiters())
    return false;
  // Its edges would wake who watches.
  if (d->watched.load(relaxed)) stop_watching(d, fd);
  ++p->counters.lone_waits;
  return true;
}

Thread* wait_for_edge(Thread* t, const DescriptorWait& wait, bool* refused) noexcept {
  Activation* a = activation::self();
  if (!(t->untried && waits_unwatched(wait.d)) && !be_watched(wait, refused)) return nullptr;
  activation::note_wait(a->processor, &wait.d->of(wait.direction));
  activation::save_for_switch(t);
  if (uint64_t pipe = wait.d->pipe.load(relaxed)) {
    pipe_reader(pipe).fd.store(wait.fd, relaxed);
    pipe_reader(pipe).pipe.store(pipe, relaxed);
  }
  Bucket& b = wait.d->of(wait.direction).waiting;
  uint64_t word;
  {
    LockGuard guard(b.lock);
    if (edges(wait.d, wait.direction) != wait.seen) return nullptr;
    t->wait_key = key_of(static_cast<uint64_t>(wait.fd) << 2, KeyKind::descriptor);
    t->wait_bits = 0;
    t->rax = 0;  // until somebody ends the wait: unlink_waiter looks at it
    t->timeout_result = wait.timeout_result;
    t->interrupted_call = wait.interrupted;
    activation::g_event_waits.fetch_add(1, relaxed);
    word = begin_bucket_wait<sched::begin_wait>(b, t, wait.deadline);
    if (!word) {
      activation::g_event_waits.fetch_sub(1, relaxed);
      return answer(t, -e_nomem);
    }
  }
  ++a->processor->counters.event_waits;
  return wait_in_bucket(a, t, word);
}

void leave_descriptor(int fd) noexcept {
  if (Descriptor* d = known_descriptor(fd)) leave(d, fd);
}

Descriptor* reader_of(const Descriptor* written) noexcept {
  uint64_t pipe = written->pipe.load(relaxed);
  const PipeReader& hint = pipe_reader(pipe);
  return hint.pipe.load(relaxed) == pipe ? known_descriptor(hint.fd.load(relaxed)) : nullptr;
}

// A wrong hint: threads look at their descriptors for nothing.
void wake_pipe_readers(const Descriptor* written, uint64_t bytes) noexcept {
  if (Descriptor* d = reader_of(written)) tell_readers(d, bytes);
}

void tell_readers(Descriptor* d, uint64_t bytes) noexcept {
  Side& in = d->of(Direction::in);
  if (!in.waiting.head) d->unread.store(true, relaxed);
  if (!in.has_waiters()) return;
  uint64_t next = in.edges.load(relaxed) + 1;
  d->told.store((next & 0xffffffff) << 32 | (bytes & 0xffffffff), relaxed);
  release_waiters(activation::self(), d, Direction::in);
}

namespace {

void release(Descriptor* d) noexcept {
  Activation* a = activation::self();
  for (Direction direction : directions)
    release_waiters(a, d, direction);  // an edge in any case: for who is about to wait
}

// An edge is counted in any case: whoever has tried the file that is gone, and is about to wait, looks again.
void doubt(Descriptor* d, int) noexcept {
  d->alone_since.store(0, relaxed);
  if (is_known(d)) start_over(d);
  if (!d->uses.load(relaxed)) return;  // never known
  Activation* a = activation::self();
  for (Direction direction : directions) release_waiters(a, d, direction);
}

void each_known(uint32_t first, uint32_t last, void (*f)(Descriptor*, int)) noexcept {
  for (uint32_t c = first >> chunk_bits; c < chunks && c <= last >> chunk_bits; ++c) {
    Descriptor* d = g_chunk[c].load(acquire);
    if (!d) continue;
    for (uint32_t i = 0; i < chunk_size; ++i) {
      uint32_t fd = c << chunk_bits | i;
      if (fd >= first && fd <= last) f(&d[i], static_cast<int>(fd));
    }
  }
}

}  // namespace

void release_descriptor(int fd) noexcept {
  if (Descriptor* d = known_descriptor(fd)) release(d);
}

void doubt_descriptor(int fd) noexcept {
  if (Descriptor* d = known_descriptor(fd)) doubt(d, fd);
}

void leave_descriptors(uint32_t first, uint32_t last) noexcept { each_known(first, last, leave); }
void doubt_descriptors(uint32_t first, uint32_t last) noexcept { each_known(first, last, doubt); }

void forget_descriptors() noexcept {
  event::forget_instance();
  event::forget_ring();
}

void init_descriptors() noexcept {
  event::g_descriptor_event = on_event;
  // A fork's child: its parent's threads wait there, and what it has closed and opened itself before it had threads nobody saw.
  for (auto& chunk : g_chunk)
    if (Descriptor* inherited = chunk.exchange(nullptr, relaxed))
      kernel::unmap_pages(inherited, chunk_size * sizeof(Descriptor));
}

}  // namespace upcall::linux_abi

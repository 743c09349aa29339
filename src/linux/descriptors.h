// Descriptors on which threads wait without a kernel thread: what the runtime remembers of each number, and the wait.
//
// A call is tried without blocking (never by changing the shared description to O_NONBLOCK). If it would block, the thread
// waits in the number's bucket for an edge (epoll(7)), and then makes the call again. An edge is counted before waiters are
// woken, and a thread waits only if the count is still what it was before it tried: no edge is missed. Events say "look
// again", nothing more, so one that comes too late, or for an earlier owner of the number, harms nobody.
#pragma once

#include "linux/bucket.h"

namespace upcall::linux_abi {

enum class FileKind : uint8_t {
  unknown,
  tcp,        // a short read has emptied it
  socket,     // of another kind
  local,      // a Unix stream: not told when its peer stops to read
  datagrams,  // a Unix one: not told when one of its peers can take more
  pipe,
  other  // not read or written without blocking
};

// A thread that waits for several descriptors, in the list of one of them (descriptor_polls.cc). Guarded by the bucket's lock.
struct PollLink;

// poll(2) answers the same each time until something has been done about it (`again`), or tells its caller once what it has not
// told it yet, which may be our epoll instance: files of /proc/self, perf events. `unknown`: not found out.
enum class Tells : uint8_t { unknown, again, once };

enum class Direction : uint8_t { in, out };

// Who waits to read, or to write.
struct Side {
  Bucket waiting;  // for this descriptor alone
  PollLink* polls = nullptr;
  atomic<uint32_t> edges{0};
  bool has_waiters() const noexcept { return waiting.head || polls; }
};

struct alignas(64) Descriptor {
  Side side[2];  // by Direction
  Side& of(Direction direction) noexcept { return side[static_cast<uint8_t>(direction)]; }
  // The count of read edges, plus one, at which a short read had emptied it. 0: not known.
  atomic<uint32_t> emptied_at{0};
  // Its end has been seen, or urgent data: a short read says nothing any more.
  atomic<uint32_t> ends{0};
  atomic<FileKind> kind{FileKind::unknown};
  atomic<Tells> tells{Tells::unknown};
  atomic<uint32_t> watched{0};   // the mask that the event source has
  atomic<uint32_t> uses{0};      // counts files that the number has stood for
  atomic<uint32_t> released{0};  // threads that are to make their calls again
  atomic<uint32_t> tries{0};     // of these, threads that do so now: whoever closes the number waits for them
  // The count of sharings (g_sharings) when it was made by this process: while that stands no other process has it. 0: it may.
  atomic<uint32_t> alone_since{0};
  atomic<bool> listens{false};  // SO_ACCEPTCONN has been seen
  // Of a pipe (descriptor_untried.cc): first tries in a row that found it empty, and waits without a try; there may be something
  // in it that no wait will tell of; the count of read edges, plus one, at which a thread began to wait without a try; the count
  // at which a writer has told of what it wrote, and how much (0: nobody has).
  atomic<uint8_t> vain_tries{0};
  atomic<bool> unread{false};
  atomic<uint32_t> waited_untried_at{0};
  atomic<uint64_t> told{0};
  atomic<uint64_t> pipe{0};        // of a pipe: which one (inode)
  // As of that count of changes (g_mode_changes): O_NONBLOCK, time-outs in nanoseconds, 0: none.
  atomic<uint32_t> mode_known{0};
  atomic<bool> nonblocking{false};
  atomic<uint64_t> receive_timeout{0}, send_timeout{0};
};

// Null: out of range, or no memory.
Descriptor* descriptor(int fd) noexcept;
// The same if calls of `t` on it may be tried and waited for; else the kernel does that.
Descriptor* descriptor_for(const Thread* t, int fd) noexcept;

// A wait's answer when its time is over: the call is made again, and finds that out itself.
inline constexpr long call_again = -e_restart;

// One call that waits. Until when, and what it answers then.
struct DescriptorWait {
  Descriptor* d;
  int fd;
  Direction direction;
  uint32_t seen;  // the count of edges before the call was tried
  uint64_t deadline = sched::never;
  long timeout_result = -e_again;
  sched::Interrupted interrupted = sched::Interrupted::restarts;
};
inline uint32_t edges(Descriptor* d, Direction direction) noexcept {
  // acquire: pairs with release_waiters; what the kernel said before has been noted.
  return d->of(direction).edges.load(acquire);
}
// The call of `t` would block: lets it wait and be made again. `t` itself, with an answer: a signal, no memory. Null: there
// has been an edge since, or the descriptor has just come to be watched; to be tried again. *refused: it cannot be watched.
Thread* wait_for_edge(Thread* t, const DescriptorWait& wait, bool* refused) noexcept;

// A read that would wait may as well wait in the kernel (activation/event_source.h). Edges are not counted any more then.
bool may_wait_alone(Descriptor* d, int fd) noexcept;
// So that edges are counted from now on. False: see wait_for_edge.
bool be_watched(const DescriptorWait& wait, bool* refused) noexcept;
// The same for one of several; `deadline` and what follows are those of the first. At most `most_polled`.
inline constexpr uint32_t most_polled = 32;
Thread* wait_for_edges(Thread* t, const DescriptorWait* waits, uint32_t n, bool* refused) noexcept;
// Under the bucket's lock: claims threads of that list, so many at most. Each is unlinked (unlink_waiter) without the lock, and
// makes its call again.
uint32_t claim_polls(PollLink* list, Thread** claimed, uint32_t most) noexcept;
// Of a thread that waits so: the first of them. Null: it waits for one alone.
Descriptor* first_polled(const Thread* t) noexcept;
// The thread ends; fork's child has no lists that it could be in.
void end_waits(Thread* t) noexcept;
void forget_polls(Thread* t) noexcept;

// The caller has written to this pipe: who waits here for it is told at once, not by an event.
void wake_pipe_readers(const Descriptor* written, uint64_t bytes) noexcept;
void tell_readers(Descriptor* d, uint64_t bytes) noexcept;
// Where a thread has waited for that pipe last. Null: not known.
Descriptor* reader_of(const Descriptor* written) noexcept;
// Its edges are not counted any more. Who has just found it watched, and is about to wait, looks again.
void stop_watching(Descriptor* d, int fd) noexcept;

// --- descriptor_kinds.cc
FileKind kind_of(Descriptor* d, int fd) noexcept;
// It may be waited for by edges, and then be asked.
bool tells_again(int fd) noexcept;
Thread* sys_epoll_ctl(Thread*) noexcept;

// Reads anew what is not known: O_NONBLOCK and time-outs.
void know_modes(Descriptor* d, int fd) noexcept;
// Some descriptor's modes have changed. After the change: what was read before is read again.
void modes_changed() noexcept;
// Other processes may have got any of them: a fork, a message with descriptors.
void descriptors_shared() noexcept;
// This number has just been made here.
void note_made(long fd) noexcept;

// A call on a descriptor begins, or is made again. `again`: it has been tried, and has waited. `handed`: its descriptor has been closed meanwhile,
// and is this number now, which the call is to close; -1: no number was free.
struct Beginning {
  bool again = false;
  bool after_untried = false;  // it has waited, but not tried before
  bool is_handed = false;
  int handed = 0;
  Descriptor* tried = nullptr;
};
Beginning begin_call(Thread* t) noexcept;
// It has been made, or is not to be made without blocking.
inline void end_try(Beginning* b) noexcept {
  if (b->tried) b->tried->tries.fetch_sub(1, release);  // pairs with leave
  b->tried = nullptr;
}
// A wait's time is over whose answer is call_again.
void repeat_after_time(Thread* t) noexcept;
// A handler runs before it could be made again. True: it was to be.
bool end_repeat(Thread* t) noexcept;
// For the rest of its time, on a descriptor of its own.
Thread* call_on_handed(Thread* t, Beginning* now) noexcept;
// A call that may block, on a descriptor that is closed when it is over. `own`: what it fills in for the program's `user`.
struct HandedCall {
  int fd;
  const void* own = nullptr;
  void* user = nullptr;
  size_t bytes = 0;
};
Thread* make_handed_call(Thread* t, const long args[6], HandedCall* call) noexcept;
// When the kernel has answered, before anybody else may run the thread.
void end_handed_call(Thread* t) noexcept;

// --- descriptor_untried.cc, of pipes
// The thread is to wait without a try: in vain, likely.
bool waits_untried(const Descriptor* d, const Beginning& now) noexcept;
// And the pipe need not be watched for it.
bool waits_unwatched(const Descriptor* d) noexcept;
// The same, and somebody does wait.
bool reader_waits_unwatched(Descriptor* d) noexcept;
// Such a wait begins. May count an edge.
void note_untried(Descriptor* d, int fd) noexcept;
// And how long it may last, ns of CLOCK_MONOTONIC.
uint64_t untried_deadline(Descriptor* d, uint32_t seen) noexcept;
// A try that saw this count of edges has been answered.
void learn_from_try(Descriptor* d, const Beginning& now, uint32_t seen, long r) noexcept;
// A thread of this process has just written so many bytes, which that one waited for without a try.
bool told_by_writer(Descriptor* d, const Beginning& now, uint32_t* bytes) noexcept;

// The number is about to be closed. Threads that wait for what it stands for are given descriptors of their own before.
void leave_descriptor(int fd) noexcept;
// It has been closed, or replaced: what others have found out about it meanwhile may have been about the file that is gone, and
// who has begun to wait for that looks again.
void doubt_descriptor(int fd) noexcept;
void leave_descriptors(uint32_t first, uint32_t last) noexcept;
void doubt_descriptors(uint32_t first, uint32_t last) noexcept;
// Who waits for it looks again.
void release_descriptor(int fd) noexcept;
// fork's child; its start.
void forget_descriptors() noexcept;
void init_descriptors() noexcept;

// --- descriptor_calls.cc, descriptor_waits.cc
Thread* sys_read(Thread*) noexcept;
Thread* sys_write(Thread*) noexcept;
Thread* sys_readv(Thread*) noexcept;
Thread* sys_writev(Thread*) noexcept;
Thread* sys_recvfrom(Thread*) noexcept;
Thread* sys_sendto(Thread*) noexcept;
Thread* sys_recvmsg(Thread*) noexcept;
Thread* sys_sendmsg(Thread*) noexcept;
Thread* sys_accept(Thread*) noexcept;
Thread* sys_close(Thread*) noexcept;
Thread* sys_close_range(Thread*) noexcept;
Thread* sys_dup_onto(Thread*) noexcept;
Thread* sys_setsockopt(Thread*) noexcept;
Thread* sys_shutdown(Thread*) noexcept;
Thread* sys_connect(Thread*) noexcept;
Thread* sys_socket(Thread*) noexcept;
Thread* sys_pipe(Thread*) noexcept;
// --- readiness.cc: what cannot be an event is left to poll.cc
Thread* poll_as_event(Thread*) noexcept;
Thread* ppoll_as_event(Thread*) noexcept;
Thread* pselect6_as_event(Thread*) noexcept;
Thread* epoll_as_event(Thread*) noexcept;

}  // namespace upcall::linux_abi

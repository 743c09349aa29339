// A user-level thread: its saved context, what it waits for, and what the kernel would know of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/x86_64/layout.h"
#include "base/atomic.h"
#include "base/fence.h"

namespace upcall::activation {
struct Activation;
struct Processor;
}  // namespace upcall::activation

namespace upcall::sched {

// State, and who may touch the thread's context and stack in it.
//   running    its activation. -> ready (yield, preemption), waiting, in_kernel, exited
//   ready      the queue that holds it. -> running
//   waiting    nobody; the one who wins the wait word (claim_wait) makes it ready. -> ready
//   in_kernel  its activation, inside a call that may block. -> running, ready
//   exited     nobody; the descriptor returns to the table. -> (reused) ready
enum class State : uint8_t { running, ready, waiting, in_kernel, exited };

// What an answer -EINTR means. `no`: just that. Else a signal has ended the call: it is repeated if no handler runs;
// after a handler it is repeated if that one says SA_RESTART (`restarts`), or not (`ends`).
enum class Interrupted : uint8_t { no, restarts, ends };

// A queued signal; the siginfo is the kernel's 128 bytes.
struct QueuedSignal {
  QueuedSignal* next;
  int signal;
  alignas(8) unsigned char info[128];
};

// Guarded by linux/signal's lock, but for the mask, which only the thread itself changes.
struct SignalState {
  atomic<uint64_t> mask;  // bit n-1: signal n is blocked
  uint64_t pending;       // thread-directed
  QueuedSignal* queue;
};

struct Thread {
  // Saved context; arch/x86_64/layout.h has the same offsets.
  uint64_t rip, rsp, rax, rbx, rdx, rsi, rdi, rbp, r8, r9, r10, r12, r13, r14, r15, flags;
  int64_t nr;
  uint64_t fs;
  uint32_t kind;
  uint32_t fpu;
  // Not zero: before_resume has something to do (a signal to deliver). Set by anyone, cleared by the activation
  // that is about to run the thread.
  atomic<uint32_t> attention;
  uint32_t mxcsr;
  uint32_t fcw;
  uint32_t native;     // came by a function call: only what the ABI keeps over one is in the context
  void* signal_frame;  // kind CONTEXT_SIGNAL_FRAME: the ucontext to return through

  // Scheduling.
  Thread* next;                                // ready queue, inbox, free list
  atomic<activation::Activation*> activation;  // running and in_kernel: where; valid while the state lasts
  atomic<State> state;
  activation::Processor* home;  // where it was made ready last
  uint8_t blocked_lately;       // of the last calls that may block, how many did (0 to 8)
  uint8_t calls;                // counts them, to look again now and then
  bool woken;                   // set by who puts it into an inbox: it comes back from the kernel or a sleep
  Thread* (*pending_handler)(
      Thread*);         // to be called before the thread resumes: it entered without a processor
  void* preempt_frame;  // memory for a context saved by a preemption signal, kept until exit

  // Waiting. wait_word is sequence << 1 | waiting; whoever clears the low bit by compare-and-swap may wake.
  atomic<uint64_t> wait_word;
  Thread* wait_next;
  Thread* wait_prev;
  atomic<void*> wait_bucket;  // linux/futex: bucket whose list holds the thread, or null
  uint64_t wait_key;
  uint32_t wait_bits;
  // Position in the timer heap, or no_timer. Written under the heap's lock; read without, see Timers.
  atomic<uint32_t> timer_index;
  class Timers* timers;    // whose heap timer_index refers to
  uint64_t deadline;       // nanoseconds of CLOCK_MONOTONIC
  int64_t timeout_result;  // what the wait answers when its time is over
  uint64_t sigwait_set;    // waiting for one of these signals (sigtimedwait), else 0
  // The condition (key) that the thread is about to wait for: counted as a waiter, not in the queue yet. Anything
  // else when it gets there: a waker was faster. See linux/native_wait.cc.
  atomic<uint64_t> prepared;
  uint64_t cancelable_word;        // the wait word of the last wait that a cancellation may end
  bool asynchronous_cancel;        // pthread_setcanceltype's, as the thread itself has set it
  atomic<uint32_t> cancel_posted;  // pthread_cancel has been called; the next such wait ends at once

  // What the kernel would know.
  int32_t tid;
  uint32_t slot;
  uint32_t generation;  // of the slot: ids do not come back at once
  uint32_t* clear_child_tid;
  atomic<int32_t> exiting_tid;  // from leaving the table until *clear_child_tid has been cleared
  void* robust_list;
  SignalState signals;
  QueuedSignal* lent;  // its signals that the kernel thread has for the time of a call: linux/signal_lend.cc
  uint32_t exec_copies;  // pending signals that exec would pass on
  uint64_t saved_mask;   // mask to restore after a handler ran for sigsuspend, ppoll ...
  bool restore_mask;
  Interrupted interrupted_call;
  bool is_main;
  int32_t sched_policy, sched_priority;
  activation::Processor* bound;       // its own, if it keeps its kernel thread: activation/bound.cc
  int32_t bound_tid;                  // that kernel thread's id, else 0
  uint8_t bind_visits;                // to processors where the kernel thread runs that it is to be bound to
  activation::Activation* forked_on;  // the kernel thread that has made its last child process
  // linux/descriptors: an edge has ended its wait, and it is to make the call again: for which one. Set by who has claimed
  // the wait, cleared by the thread.
  void* repeats;
  bool untried;  // and had not made it at all before that wait (descriptor_calls.cc)
  // Closed before it could do so: what that was now, plus one (0: nothing), and above the sequence of the wait.
  atomic<uint64_t> handed;
  void*
      handed_call;  // while it makes a call on what it was given: linux/descriptor_calls.cc, on its activation's stack
  void* poll_links;           // linux/descriptor_polls.cc: a page, or null
  long call_done;             // bytes that the call has moved before the kernel was left to move the rest
  uint64_t call_deadline;     // of a call that asks for a time from now on, else 0
  uint64_t restart_deadline;  // such a call is about to be repeated: until then
  void* altstack_sp;
  uint64_t altstack_size;
  int32_t altstack_flags;
  uint64_t born;  // TSC
  int32_t nice;
  char name[16];
  Thread* all_next;  // list of live threads
  Thread* all_prev;
  bool all_known;      // in that list
  uint64_t sleep_rem;  // where a interrupted sleep reports the rest (user pointer), or 0
  uint64_t affinity[16];
  bool affinity_set;

  // src/pthread: threads that are kept for reuse when they have ended.
  void* hull;                   // its record in the thread's TLS, or null
  const void* launch;           // set while pthread_create makes a thread: what that is to run
  atomic<const void*> joining;  // the hull that a native join waits for
  atomic<uint64_t>
      join_word;      // the wait word of that wait: a handler that interrupts it may wait for other things
  void* join_result;  // of the join that has just succeeded
  atomic<uint32_t> cancelled;  // pthread_cancel has been called for it; never cleared
  atomic<bool> parked;         // ended, not a thread of the program any more
  bool touched;                // its library's record of it may differ from a new thread's

  alignas(64) unsigned char vectors_pad[0];
};

inline constexpr uint32_t no_timer = 0xffffffffu;

static_assert(offsetof(Thread, rip) == T_RIP && offsetof(Thread, rsp) == T_RSP &&
              offsetof(Thread, rax) == T_RAX);
static_assert(offsetof(Thread, rbx) == T_RBX && offsetof(Thread, rdx) == T_RDX &&
              offsetof(Thread, rsi) == T_RSI);
static_assert(offsetof(Thread, rdi) == T_RDI && offsetof(Thread, rbp) == T_RBP &&
              offsetof(Thread, r8) == T_R8);
static_assert(offsetof(Thread, r9) == T_R9 && offsetof(Thread, r10) == T_R10 &&
              offsetof(Thread, r12) == T_R12);
static_assert(offsetof(Thread, r13) == T_R13 && offsetof(Thread, r14) == T_R14 &&
              offsetof(Thread, r15) == T_R15);
static_assert(offsetof(Thread, flags) == T_FLAGS && offsetof(Thread, nr) == T_NR &&
              offsetof(Thread, fs) == T_FS);
static_assert(offsetof(Thread, kind) == T_KIND && offsetof(Thread, fpu) == T_FPU);
static_assert(offsetof(Thread, attention) == T_ATTENTION && offsetof(Thread, mxcsr) == T_MXCSR);
static_assert(offsetof(Thread, native) == T_NATIVE);
static_assert(offsetof(Thread, fcw) == T_FCW && offsetof(Thread, signal_frame) == T_SIGFRAME);
static_assert(sizeof(Thread) <= T_VECTORS);
static_assert(T_VECTORS + T_VECTORS_SIZE <= T_X87 && T_X87 + 108 <= T_SIZE && T_SIZE % 64 == 0);

// Of a call that may be a repeated one and is to last until then: the time that was asked for goes on. 0: it is a new one.
inline uint64_t take_restart_deadline(Thread* t) noexcept {
  uint64_t deadline = t->restart_deadline;
  t->restart_deadline = 0;
  return deadline;
}

// The waker that wins may make the thread ready; `sequence` is what the waiter published.
inline bool claim_wait(Thread* t, uint64_t word) noexcept {
  // acq_rel: pairs with begin_wait's release; the winner reads what the waiter wrote before it.
  return (word & 1) && t->wait_word.compare_exchange_strong(word, word & ~1ul, acq_rel, relaxed);
}
// The word that the next begin_wait will publish.
inline uint64_t next_wait_word(const Thread* t) noexcept {
  return ((t->wait_word.load(relaxed) >> 1) + 1) << 1 | 1;
}
// Announces a new wait; returns the word that a waker must claim.
inline uint64_t begin_wait(Thread* t) noexcept {
  uint64_t word = next_wait_word(t);
  t->state.store(State::waiting, relaxed);
  // fenced: pairs with signals::post, which sets `pending` and then looks at wait_word, while the waiter
  // publishes wait_word and then looks at `pending`: one of them must see the other.
  t->wait_word.store(word, fenced);
  return word;
}

// begin_wait without its full fence, for wakers of waits that are not fenced either: signals::notify and post_cancel
// make up for it by heavy_fence before they give up.
inline uint64_t begin_wait_light(Thread* t) noexcept {
  uint64_t word = next_wait_word(t);
  t->state.store(State::waiting, relaxed);
  t->wait_word.store(word, release);  // pairs with claim_wait
  light_fence();
  return word;
}

}  // namespace upcall::sched

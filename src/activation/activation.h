// Processors and the kernel threads that run threads on them.
//
// Who owns a processor is one word: state, activation, epoch. Every change is one atomic step on it.
//   running(A)    A runs threads of the processor and alone touches its private data
//   in_kernel(A)  A's thread is in a call that may block; A takes the processor back with one compare-and-swap,
//                 unless another activation of the same processor was faster
//   idle(A)       A found nothing to run and sleeps; anyone may wake it, a returning activation may claim
//   vacant        no activation yet: the first one to be needed is made then
// Activations belong to one processor for life and are pinned to its CPU, until a thread is bound to one (bound.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "activation/events.h"
#include "arch/x86_64/cpu.h"
#include "base/counters.h"
#include "base/spinlock.h"
#include "sched/ready_queue.h"
#include "sched/thread.h"
#include "sched/timers.h"

namespace upcall::activation {

using sched::Thread;

struct Processor;

// Any kernel thread of the runtime, for credentials.cc.
struct KernelThread {
  KernelThread* next;           // helpers
  atomic<int32_t> helper_tid;   // the kernel's; negative: it is being made, 0: it has ended
  atomic<uint32_t> seen, told;  // numbers of changes
};

// The kernel's sigaltstack layout.
struct AltStack {
  void* sp;
  int32_t flags;
  uint64_t size;
};

struct alignas(64) Activation {
  Activation* self;             // GS points here; GS 0: not an activation
  atomic<uint32_t> in_runtime;  // set and cleared by entry.S; read by our own signal handlers
  atomic<uint32_t> resched;     // preemption asked for while in the runtime
  void* stack_top;
  Thread* current;             // the thread that runs, or whose call is in the kernel
  atomic<uint32_t> interrupt;  // the call in the kernel is to return: see upcall_blocking_syscall
  atomic<uint32_t> lost;       // the processor may have been taken away: settle it on the way in (detach.cc)
  uint32_t index;
  Processor* processor;
  int32_t tid;             // the kernel's
  atomic<uint32_t> alive;  // cleared by the kernel when the kernel thread is gone
  Activation* retired_next;
  Processor*
      bind_to;  // guarded by the pool's lock; set while it is parked: a thread's own, which it is to run
  atomic<uint32_t> wake;     // futex: 1 = look again
  atomic<uint32_t> watches;  // it sleeps in the event source's wait, not on `wake`
  atomic<uint32_t> outpost;  // while it is parked it is to watch for events (event_source.h)
  Activation* pool_next;
  AltStack altstack;
  atomic<uint32_t>
      signal_sent;  // the reserved signal is on its way: queued ones would fill the alternate stack
  bool is_monitor;
  bool outside;  // runs no shared processor: the monitor, a bound thread's; set before others see it
  bool in_pool;  // guarded by the processor's pool_lock
  atomic<uint32_t> adopted;      // whoever claimed the processor from its sleep has put it into the pool
  atomic<uint32_t> lost_listed;  // in a list of detach.cc
  Activation* lost_next;         // owned by that list
  atomic<int32_t> weight;        // steps of nice that it is above the program, sched_class.cc
  atomic<uint32_t> weight_held;  // it shows the program's own class: not now
  uint64_t lost_cpu_time;        // monitor's: what the kernel thread had used at the last look, ns
  atomic<atomic<uint64_t>*> switches;  // switch_events.cc: where the kernel notes whether it sleeps
  uint64_t switches_seen;              // the monitor's own, of that
  // For the latency of take-overs, TSC. When it blocked (was found blocked) with threads ready there, 0: none were; when
  // it was woken, or began to be made, to take its processor over, 0: threads had been ready before.
  atomic<uint64_t> blocked_at, woken_at;
  KernelThread kernel;
};
static_assert(offsetof(Activation, self) == A_SELF && offsetof(Activation, in_runtime) == A_IN_RUNTIME);
static_assert(offsetof(Activation, resched) == A_RESCHED && offsetof(Activation, stack_top) == A_STACK);
static_assert(offsetof(Activation, current) == A_CURRENT && offsetof(Activation, interrupt) == A_INTERRUPT);
static_assert(offsetof(Activation, lost) == A_LOST);

enum class Owner : uint8_t { vacant = 0, running = 1, idle = 2, in_kernel = 3 };

// state in bits 0-1, activation index in bits 2-31, epoch above.
struct OwnerWord {
  uint64_t bits = 0;
  Owner state() const noexcept { return static_cast<Owner>(bits & 3); }
  uint32_t activation() const noexcept { return static_cast<uint32_t>(bits >> 2) & 0x3fffffff; }
  OwnerWord next(Owner s, uint32_t a) const noexcept {
    return {((bits >> 32) + 1) << 32 | static_cast<uint64_t>(a) << 2 | static_cast<uint64_t>(s)};
  }
  OwnerWord same_epoch(Owner s) const noexcept { return {(bits & ~3ull) | static_cast<uint64_t>(s)}; }
};

struct alignas(64) Processor {
  // Private to the owner.
  uint32_t index = 0;
  uint32_t cpu = 0;
  atomic<int32_t> current_priority{0};  // of the thread that runs
  atomic<uint64_t> dispatches{0};       // read by the monitor: unchanged = the same thread still runs
  uint32_t timer_check = 0;
  void* spares = nullptr;  // ended threads for reuse, src/pthread
  uint32_t spare_count = 0;
  ProcessorCounters counters;
  sched::ReadyQueue ready;
  uint64_t last_event_look = 0;  // TSC
  uint64_t looked_at = 0;        // the same as CLOCK_MONOTONIC, ns
  // What a thread has waited for last with nothing else to run here, and how often in a row (event_source.h).
  const void* lone_wait = nullptr;
  uint32_t lone_waits = 0;
  uint64_t taken_over = 0;  // TSC from which a take-over counts whose next thread is not chosen yet; 0: none
  Histogram take_over_latency;

  // Shared.
  alignas(64) atomic<uint64_t> owner{0};
  atomic<Thread*> inbox{nullptr};  // threads made ready from outside, newest first
  sched::Timers timers;
  SpinLock pool_lock{Rank::pool};
  Activation* pool = nullptr;  // parked activations
  atomic<Activation*> standby{
      nullptr};  // one of them, to be had without the lock: by the sentinel, which takes none
  atomic<uint32_t> preempt_in_flight{0};  // how many are about to signal the owner
  atomic<uint32_t> spawning{0};           // an activation is being made
  atomic<uint32_t> wants_activation{0};   // the pool is empty; the monitor makes one
  uint32_t arm_skipped = 0;               // owner's: wishes for the sentinel that were not worth a wake-up
  atomic<uint32_t> sentinel_backoff{0};   // how many to skip: it was woken in vain before
  uint64_t seen_cpu_time = 0;             // monitor's
  uint32_t same_ticks = 0,
           still_ticks = 0;  // monitor's: looks at one thread in a row; of these, without CPU time used
  struct {
    uint64_t due = sched::never, owner = 0, dispatches = 0, cpu_time = 0;
  } probe;                                    // monitor's: does the owner use its CPU?
  atomic<uint64_t> last_woken_preemption{0};  // TSC
  atomic<uint32_t> sentinel_armed{0};         // futex: 1 = the sentinel is to watch
  atomic<uint32_t> sentinel_started{0};
  int32_t sentinel_tid = 0;
  atomic<uint64_t> seen_dispatches{0};  // monitor's last look
  uint64_t seen_owner = 0;              // monitor's
  uint32_t load = 0;                    // monitor's: threads that run or are ready, in 1/1024, averaged

  // Of one bound thread (bound.cc).
  bool bound = false;
  atomic<uint32_t> bound_in_use{0};
  bool filtered = false;   // its thread may be killed by a filter of its own
  bool own_files = false;  // it has descriptors of its own (unshare)
  bool counted = false;    // among the reasons (linux/bound.cc)
  Activation* sole = nullptr;
  atomic<Thread*> thread{nullptr};
  Processor* next_bound = nullptr;

  OwnerWord owner_word() const noexcept { return {owner.load(acquire)}; }
  bool has_work() const noexcept { return !ready.empty() || inbox.load(relaxed) != nullptr; }
};

// Who notices that an activation has blocked where nothing announces it.
enum class Events : uint8_t {
  sentinel,  // a SCHED_IDLE kernel thread, judging by CPU clocks and /proc
  bpf,     // the same, told by the kernel's scheduler; where that is refused, as sentinel, and a line says so
  monitor  // the monitor alone
};

struct Runtime {
  uint32_t processors = 1;
  Processor* processor = nullptr;  // [processors]
  uint64_t quantum = 10'000'000;   // nanoseconds; 0: no time slices
  Events events = Events::sentinel;
  struct {
    const char* what = nullptr;
    int32_t error = 0;
  } bpf_refusal;
  bool sentinel = true;            // it is to watch (events) and can: its class is below the program's
  bool descriptor_events = false;  // threads that wait for descriptors do so without a kernel thread
  bool pipe_events = false;        // pipes, too
  bool share_threads = false;      // the monitor gives activations the weight of their processor's threads
  uint32_t activation_cap = 1024;  // soft: beyond it, one warning
  bool started = false;
  bool symbols = false;          // functions interposed by symbol are ours, not glibc's
  atomic<uint32_t> sleeping{0};  // shared processors whose owner is not running, where there are several
  atomic<uint32_t> spinning{0};  // idle processors that look for work
  uint64_t xsave_features = 3;
  uint32_t xsave_size = 512;
  int32_t pid = 0;
  uint64_t affinity[16] = {};  // what the process was given
  int64_t affinity_size = 0;   // bytes of it that the kernel knows
};
extern Runtime g_runtime;

// After a change of p's owner word from, or to, running: others are worth a look when somebody sleeps.
inline void count_sleeping(const Processor* p) noexcept {
  if (g_runtime.processors != 1 && !p->bound) g_runtime.sleeping.fetch_add(1, relaxed);
}
inline void count_awake(const Processor* p) noexcept {
  if (g_runtime.processors != 1 && !p->bound) g_runtime.sleeping.fetch_sub(1, relaxed);
}

inline Activation* self() noexcept { return static_cast<Activation*>(arch::read_gs_pointer<A_SELF>()); }
Activation* activation_at(uint32_t index) noexcept;
uint32_t activation_count() noexcept;

// --- activation.cc: making and parking kernel threads
// Null: the kernel refused (EAGAIN) or no memory.
Activation* new_activation_record() noexcept;
void adopt_first_activation(Activation*) noexcept;
// Starts one more activation of `p`, parked in its pool. 0 or -errno.
long spawn_activation(Processor* p) noexcept;
// CPU time that a kernel thread of this process has used, ns.
uint64_t cpu_time(int32_t tid) noexcept;
// Wakes a parked activation of `p` (makes one if `may_create`) to take the processor over.
bool wake_successor(Processor* p, bool may_create) noexcept;
// The sentinel's way: only the standby, no lock. A SCHED_IDLE thread that held one would starve behind those who spin for it.
bool wake_standby(Processor* p) noexcept;
// One more activation for the pool. False: the kernel refused.
bool make_standby(Processor* p) noexcept;
// The calling activation owns nothing: sleeps until it owns its processor.
void park(Activation*) noexcept;
// Same, for one that is in the pool already (put there by whoever claimed its processor).
void park_wait(Activation*) noexcept;
// Puts an activation that sleeps in idle() into the pool: its processor has been claimed.
void pool_adopt(Activation* sleeper) noexcept;
// A kernel thread that runs no threads. Returns its id or -errno.
long start_helper(void (*f)(void*), void* argument, size_t stack_bytes, int* tid,
                  KernelThread* record = nullptr) noexcept;
// The first that one does: no activation, no signals, the CPUs of the program.
void begin_helper() noexcept;
void pin_self(uint32_t cpu) noexcept;
// Ends the activation structures of a parent process: only the caller exists.
void forget_others(Activation* survivor) noexcept;

// `a` ends; its record is for the next one, once it is gone.
void keep_retired(Activation* a) noexcept;

// --- bound.cc: threads that keep their kernel thread
// The current thread, from now on and for good: to `where`, if that is parked, else to the caller's. Returns the thread to
// resume: t, which is bound; or another one, and t will call `again` on the kernel thread where it belongs. Null: no memory,
// or no kernel thread to take its processor over.
Thread* bind(Thread* t, Activation* where, Thread* (*again)(Thread*)) noexcept;
// The bound thread has, or has inherited, a filter of system calls that may kill it. Who then does the rest of its exit:
void note_filter(Thread* t) noexcept;
extern void (*g_thread_killed)(Thread*);
extern atomic<uint32_t> g_filtered;  // there has been one
// For a thread that a bound one makes: a processor with a kernel thread made by the caller's, 0 or -errno; and `n`, which has
// not run, belongs to it.
long new_bound_activation(Processor** made) noexcept;
void adopt_bound(Thread* n, Processor* p) noexcept;
// park_wait, `bind_to` is set: the calling activation goes there.
void settle_in(Activation* a) noexcept;
// Of the pool, for `own`. False: it is not parked.
bool take_parked(Activation* a, Processor* own) noexcept;
// A bound thread has ended, and its activation does.
[[noreturn]] void retire(Activation*) noexcept;
// Monitor: signals that bound threads have not looked at, and threads that were killed. True: it is to look again soon.
bool watch_bound() noexcept;
// fork's child: the one thread there is stands on the first shared processor again.
void unbind_in_child(Thread* survivor) noexcept;
// All that were ever made, by next_bound.
Processor* first_bound_processor() noexcept;
// Where a thread that is not bound is made ready by somebody who has no shared processor.
Processor* shared_home(Thread* t) noexcept;

// --- scheduler.cc: the owner's decisions
// The current thread has been put where it belongs (queue, wait); the next one to run. May sleep.
Thread* schedule(Activation*) noexcept;
// Same, by an activation that has just claimed its processor.
Thread* schedule_first(Activation*) noexcept;
// The take-over, if there was one, is complete: `p` goes on.
void end_take_over(Processor* p) noexcept;
// The turn of `t`, the current thread, is over although it would go on; its context is complete.
Thread* preempted(Activation*, Thread* t) noexcept;
// Same, but null instead of waiting.
Thread* next_ready(Activation*) noexcept;
// What others have put into the inbox moves to the queue.
void drain_inbox(Processor* p) noexcept;
// Makes `t` the current thread; t's FS base is loaded.
Thread* dispatch(Activation*, Thread* t) noexcept;
// `t` leaves the processor at a substituted call: everything live is saved. Before it becomes visible to others.
void save_for_switch(Thread* t) noexcept;
// Same, in a handler of upcall_native_call: what the ABI keeps over a function call.
void save_for_native_switch(Thread* t) noexcept;
// Makes a thread ready. From the owner of a processor: run next there.
void ready(Thread* t) noexcept;
// Wake-up preemption: the current thread has run since the monitor's last look, and has just made another one ready,
// which may have waited for what the current one is about to take again (a mutex). Its turn is over.
void yield_to_woken(Activation*) noexcept;
void preempt_for_woken(Processor* p) noexcept;
// The priority of `t`, which may be in any state, has changed.
void priority_changed(Thread* t) noexcept;
// As ready, but at the end of the queue.
void ready_last(Activation*, Thread* t) noexcept;
// A thread that what it waited for has come for: before those that compute.
void ready_woken(Activation*, Thread* t) noexcept;
// A thread that has not run yet.
void ready_new(Activation*, Thread* t) noexcept;
// From any kernel thread: the thread goes to p's inbox and the processor is told.
void ready_remote(Processor* p, Thread* t) noexcept;
// Something was put where `p` will look: wakes it if it sleeps.
void kick(Processor* p) noexcept;
// The thread's wait is over; the caller has won its wait word. Unlinks it from queue and timer.
void finish_wait(Thread* t, long result) noexcept;
void expire_timers(Processor* p, uint64_t now) noexcept;
// Called by finish_wait for a thread that waits in a bucket; set by the layer that has buckets.
extern void (*g_unlink_waiter)(Thread*);

// --- blocking.cc: calls that may block
// Performs the call of `t` with its processor free for others. Returns the thread to resume.
Thread* blocking_call(Thread* t) noexcept;
// After a change of p's owner word: a preemption signal on its way to the owner before has arrived when this returns. A
// program would see it as EINTR of the call that comes next.
void wait_for_preemption(Processor* p) noexcept;
inline void settle_preemption(Processor* p) noexcept {
  if (__builtin_expect(p->preempt_in_flight.load(fenced) != 0, 0))
    wait_for_preemption(p);  // pairs with preempt_activation
}
// The same for a call that is made once and to its end, whatever signals come: signals wait for it.
Thread* uninterrupted_call(Thread* t) noexcept;
// Same, for work of the runtime's own that may sleep; its result is the call's.
Thread* work_away(Thread* t, long (*work)(Thread*)) noexcept;
Thread* blocking_call(Thread* t, long nr, const long args[6]) noexcept;
// clone or vfork of a process that shares our memory; see upcall_clone_process.
// The child starts with child_context's registers (t's, or a copy that stays).
Thread* blocking_clone(Thread* t, long nr, const long args[6], const arch::ChildState* child,
                       Thread* child_context, bool own_stack) noexcept;
// --- sched_class.cc: what the kernel is told about our kernel threads
// Of the calling kernel thread, which is the program's.
void read_program_class() noexcept;
// False: nothing can be below the program, its CPU is never free for a sentinel.
bool sentinel_is_below() noexcept;
bool real_time_program() noexcept;
// The kernel gives its children the usual class and nice value (SCHED_RESET_ON_FORK).
bool resets_on_fork() noexcept;
// Of the calling kernel thread: an activation's, whoever made it; the monitor's.
void take_activation_class() noexcept;
void take_monitor_class() noexcept;
// A sentinel's: below all others.
void take_sentinel_class() noexcept;
// Monitor, at its ticks: the weight of the processor's owner follows the number of threads there (--share threads).
void weigh(Processor* p, OwnerWord w) noexcept;
// The calling activation's class has been changed: as at first.
void forget_weight() noexcept;
// The program has changed its nice value.
void program_nice_is(int32_t nice) noexcept;
// Of the calling activation, around calls that hand it on to a new process or program.
void show_program_class() noexcept;
void hide_program_class() noexcept;
// --- sentinel.cc
// The sentinel of `p` is to watch whether its owner blocks.
void arm_sentinel(Processor* p) noexcept;
// Same, from the owner, when threads begin to wait: not always worth a wake-up.
inline void want_sentinel(Processor* p) noexcept {
  if (p->sentinel_armed.load(relaxed)) return;
  if (p->arm_skipped++ < p->sentinel_backoff.load(relaxed)) return;
  p->arm_skipped = 0;
  arm_sentinel(p);
}

// The process is about to end, or to become another program, which waits for all its kernel threads to be gone: sentinels
// shall have the CPU for that. And back, when it goes on.
void raise_sentinels() noexcept;
void lower_sentinels() noexcept;
// From the kernel thread itself, which may be a sentinel.
void lower_own_sentinel(int32_t tid) noexcept;

// --- detach.cc: activations that block where nothing tells us (page faults, calls that were not substituted)
// The owner in `w`, which runs a thread and is outside the runtime, loses the processor. False: it was inside, or moved.
enum class Detacher : uint32_t { sentinel = 1, monitor = 2 };  // marks in Activation::lost
bool detach(Processor* p, OwnerWord w, Detacher by) noexcept;
// From a signal handler that interrupted the program: sets in_runtime and answers true, the processor is ours. An
// activation that has lost it and cannot have it back leaves its thread to others, and this does not return; false: no
// memory for that, on without a processor, in_runtime 0.
bool enter_from_handler(Activation* a, void* ucontext) noexcept;
// Monitor: stops those that compute again; their threads go to the ready queue.
void poll_lost() noexcept;
uint32_t lost_count() noexcept;
void forget_lost() noexcept;

// Value of Thread::attention: there is a pending_handler, and no signal that we know of.
inline constexpr uint32_t attention_pending_handler = 2;
// Called with the raw result before the thread resumes, still without a processor perhaps; false: call again.
extern bool (*g_after_blocking)(Thread*, long result);

// --- preempt.cc, monitor.cc
// Reserved, hidden from the program. Sent only to activations that run a thread, and to the monitor to poke it.
inline constexpr int preempt_signal = 60;
void on_preempt_signal(void* ucontext) noexcept;
bool start_monitor() noexcept;
// The CPUs of the program as the kernel has them now: those of the monitor, which is pinned to none.
void allowed_cpus(uint64_t (&mask)[16]) noexcept;
void poke_monitor() noexcept;
// It waits anew, for what is g_monitor_signals by now.
void renew_monitor() noexcept;
// Returns when the monitor has posted whatever it had taken before the call.
void wait_for_monitor() noexcept;
// The same, and whatever the kernel had for it: signals of g_monitor_signals that were pending before the call.
void ask_monitor() noexcept;
// The signal that the monitor has taken and not posted yet, or 0.
uint32_t signal_in_hand() noexcept;
int32_t monitor_tid() noexcept;
// One more activation of `p` in its pool: at the monitor's next tick; at once.
void want_activation(Processor* p) noexcept;
void poke_monitor_to_create(Processor* p) noexcept;
// Memory for a context saved by a preemption.
void* new_frame() noexcept;
void free_frame(void*) noexcept;
void lock_frames_for_fork() noexcept;
void unlock_frames_after_fork() noexcept;
extern atomic<uint64_t> g_monitor_deadline;  // when it will look next
extern atomic<uint32_t> g_monitor_ticking;   // time slices are being watched
// Sends the reserved signal, once until it has arrived. What it is to notice must be set before.
void send_signal(Activation* a) noexcept;
// Copies the frame of the interrupted thread to where it can stay. False: no memory.
bool keep_frame(Thread* t, const void* ucontext) noexcept;
void unblock_preempt_signal() noexcept;
// The calling activation comes back and its processor has another owner. One that sleeps or is in the kernel itself
// loses it: nobody needs to be woken. True: the processor is ours.
bool claim_back(Activation* a) noexcept;
// After claim_back: threads that were ready before `t` go first.
Thread* resume_in_turn(Activation* a, Thread* t) noexcept;
// No processor to be had: leaves `t`, whose context is complete, to others.
Thread* leave_thread(Activation* a, Thread* t) noexcept;
bool try_claim(Activation* a) noexcept;
// `a` comes back and its processor was taken from it: the upcall. Before it does anything else.
void unblocked(Activation* a) noexcept;
// Stops the thread that runs on `a` at the next possible point.
void preempt_activation(Activation* a) noexcept;
// The thread that runs there has a signal to look at and has not looked yet.
bool owes_attention(OwnerWord w) noexcept;
// The monitor hands real signals of the process to this function.
extern void (*g_process_signal)(int signal, void* siginfo);
// The same for a signal that the kernel gave to one of our kernel threads, from its handler: the thread may be anywhere in
// the runtime, with locks held or without a processor.
void hand_to_monitor(int signal, const void* siginfo) noexcept;
extern atomic<uint64_t> g_monitor_signals;  // set the monitor waits for

// A thread that is about to run again: signals. May return another thread. Set by src/linux.
extern Thread* (*g_before_resume)(Thread*);

}  // namespace upcall::activation

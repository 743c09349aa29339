// Signals of virtual kernel threads, internal to the signal*.cc files.
//
// Every activation blocks all asynchronous signals in the kernel. The monitor takes them (sigtimedwait) and posts
// them here; signals between our own threads never enter the kernel. A posted signal waits in the thread's or the
// process's queue; the thread is then told (`attention`), and handles it the next time it is about to run: entry.S
// calls before_resume, which builds the kernel's signal frame on the thread's own stack.
#pragma once

#include "activation/signal_frame.h"
#include "linux/linux.h"

namespace upcall::linux_abi::signals {

using activation::bit;
using activation::KernelUcontext;

inline constexpr int signal_count = 64;
inline constexpr uint64_t default_ignored = bit(17) | bit(18) | bit(23) | bit(28);  // CHLD CONT URG WINCH
inline constexpr uint64_t default_stop = bit(19) | bit(20) | bit(21) | bit(22);     // STOP TSTP TTIN TTOU
inline constexpr uint64_t unblockable = bit(9) | bit(19);
// What is blocked in the kernel everywhere and taken from there for the program's threads.
inline constexpr uint64_t takeable = activation::activation_mask & ~unblockable;
// glibc's: every thread it knows of must answer it, ended ones kept for reuse too.
inline constexpr int setxid_signal = activation::credentials_signal;

inline constexpr uint64_t flag_nocldstop = 1, flag_nocldwait = 2, flag_siginfo = 4, flag_onstack = 0x08000000,
                          flag_restart = 0x10000000, flag_nodefer = 0x40000000, flag_resethand = 0x80000000,
                          flag_restorer = 0x04000000;
inline constexpr int32_t si_user = 0, si_queue = -1, si_timer = -2, si_tkill = -6;
// Programs find out by these which flags there are: others are not kept.
inline constexpr uint64_t known_flags = flag_nocldstop | flag_nocldwait | flag_siginfo | flag_onstack |
                                        flag_restart | flag_nodefer | flag_resethand | flag_restorer |
                                        0x800 /* SA_EXPOSE_TAGBITS */;

// The kernel's struct sigaction.
struct Action {
  uint64_t handler = 0;  // 0 default, 1 ignore
  uint64_t flags = 0;
  uint64_t restorer = 0;
  uint64_t mask = 0;
};

struct Info {
  int32_t signo, error, code, padding;
  union {
    struct {
      int32_t pid;
      uint32_t uid;
      uint64_t value;
    } sender;
    struct {
      int32_t timer_id, overrun;
      uint64_t value;
    } timer;
    uint64_t fault_address;
    unsigned char rest[112];
  };
};
static_assert(sizeof(Info) == 128);

inline constexpr int cancel_signal = 32;  // glibc's for pthread_cancel

// --- signal_queue.cc
extern SpinLock g_lock;  // queues, pending sets, actions, timers
Action action_of(int signal) noexcept;
// The same for a signal that is about to be handled: SA_RESETHAND gives it to one thread only.
Action claim_action(int signal) noexcept;
// Answers the action that was.
Action exchange_action(int signal, const Action&) noexcept;
inline bool is_ignored(int signal, const Action& a) noexcept {
  return a.handler == 1 || (a.handler == 0 && (default_ignored & bit(signal)));
}
// Under g_lock: would it be thrown away where nobody blocks it?
bool ignored_now(int signal) noexcept;
// Under g_lock. False: no memory for a queued signal.
bool enqueue(sched::SignalState* of, int signal, const Info& info) noexcept;
void free_queued(sched::QueuedSignal*) noexcept;
int dequeue(sched::SignalState* of, uint64_t set, Info* info) noexcept;
extern sched::SignalState g_process;  // pending for whoever takes it; the mask is unused
// May the program queue one more (RLIMIT_SIGPENDING)? False: EAGAIN. Like the kernel, signals that are sent all the same
// may lose their information.
bool may_queue(int signal, Info* info) noexcept;
// Under g_lock: throws away what a timer has left there.
void drop_timer(sched::SignalState* of, int32_t timer_id) noexcept;
// Throws away what is pending anywhere, of the process or a thread.
void discard_everywhere(uint64_t set) noexcept;
// A stop signal ends a pending SIGCONT, and the reverse, whoever they are for.
void discard_opposite(int signal) noexcept;
// Takes the next signal of `set` pending for t or the process. 0: none.
int take(Thread* t, uint64_t set, Info* info) noexcept;
uint64_t pending_for(const Thread* t) noexcept;
uint64_t pending_for_process() noexcept;
void forget_queues(Thread* survivor) noexcept;

// --- signal.cc
void set_action(int signal, const Action&) noexcept;
// What the kernel is told of an action of the program.
void mirror_in_kernel(int signal, const Action& a) noexcept;
// For a moment, as the former: it comes to the runtime, and ends the call of the kernel thread that lets it through.
void interrupt_in_kernel(int signal) noexcept;
// Posts to one thread, or to the process. False: no memory for a queued signal (EAGAIN).
bool post_thread(Thread* t, int signal, const Info& info) noexcept;
bool post_process(int signal, const Info& info) noexcept;
// The two steps of the latter: it is in the queue; somebody is told.
enum class Queued : uint8_t { yes, thrown_away, no_memory };
Queued queue_for_process(int signal, const Info& info) noexcept;
void tell_process(int signal) noexcept;
// The mask of the current thread.
void set_mask(Thread* t, uint64_t mask) noexcept;

// --- signal_kernel.cc: what the kernel holds for the process, and who takes it
// A signalfd reads these: they stay in the kernel as long as every thread blocks them.
void leave_to_kernel(uint64_t set) noexcept;
void note_left_to_kernel(uint64_t set) noexcept;
uint64_t left_to_kernel() noexcept;
// What the signalfds read that the process has when it starts (signalfd.cc).
uint64_t read_by_signalfds() noexcept;
// These may come through the kernel.
void expect_from_kernel(uint64_t set) noexcept;
// Back into the kernel, pending for the process.
void send_again(int signal, Info& info) noexcept;
// It has been posted to the process, and no thread takes it.
void nobody_wants(int signal) noexcept;
// The current thread is to be told of signals of `set` that the kernel holds, now and from now on.
void open_in_kernel(uint64_t set) noexcept;
// What is pending is to be delivered before a call returns that opens the mask, and the monitor may not have come to it yet.
// Asks the kernel only about signals that have come to this process through it before, or are likely to.
void post_pending(uint64_t opened) noexcept;
// Those that have come before are pending in our queues afterwards, if the monitor takes them. False: there were none, of
// others neither.
bool await_posting(uint64_t set) noexcept;
// Pending in the kernel; what is not there any more is in our queues, if it was pending before.
uint64_t pending_in_kernel(uint64_t set) noexcept;
// `take`, of what the kernel holds as well.
int take_in_order(Thread* t, uint64_t set, Info* info) noexcept;
void lock_taking_for_fork() noexcept;
void unlock_taking_after_fork(bool in_child) noexcept;
void forget_taking() noexcept;

// --- terminal.cc
void lock_asking_for_fork() noexcept;
void unlock_asking_after_fork(bool in_child) noexcept;

// --- signal_lend.cc: signals of a thread that a signalfd may read, shown to its kernel thread for one call
void lend_signals(Thread* t) noexcept;
void take_back_signals(Thread* t) noexcept;
inline bool may_lend(const Thread* t) noexcept {
  return (t->signals.pending & t->signals.mask.load(relaxed) & left_to_kernel()) != 0;
}

// --- signal_timers.cc: timers of the kernel (timer_create)
// Under g_lock: a thread takes a timer's signal.
void timer_delivered(int32_t timer_id, int32_t overrun) noexcept;
// On the monitor. True: this one is for a single thread, and has been posted.
bool post_thread_timer(const Info& info) noexcept;
void forget_timers() noexcept;

// --- signal_owner.cc: files that signal one thread (F_SETOWN_EX)
// On the monitor, to which the kernel sent the reserved signal.
void post_file(const Info& from_kernel) noexcept;
void forget_files() noexcept;

// --- signal_deliver.cc, signal_calls.cc
// After t's mask has changed: is there something to deliver?
void recheck(Thread* t) noexcept;
// A fault of the running thread, in the frame `uc` on the activation's stack.
void deliver_fault(int signal, const Info* info, KernelUcontext* uc) noexcept;
// The default action of a fatal or stopping signal of `t`, the current thread, done by the kernel to the whole process.
// Returns from a stop.
void default_action(Thread* t, int signal, const Info& info) noexcept;
Thread* before_resume(Thread* t) noexcept;
Thread* sys_rt_sigreturn(Thread* t) noexcept;
// For the calls that change the mask for their own duration: 0 or -errno. before_resume, or return_mask, puts it back.
inline constexpr uint64_t mask_bytes = 8;
long borrow_mask(Thread* t, uint64_t user_mask, uint64_t size) noexcept;
void return_mask(Thread* t) noexcept;
// A signal is pending that only the borrowed mask lets through.
bool lets_something_through(const Thread* t) noexcept;
bool after_blocking(Thread* t, long result) noexcept;
// After a handler with SA_RESTART; signal(7).
bool restartable(int64_t nr) noexcept;
// The end of a sigtimedwait: answers the signal taken. False: nothing else may interrupt, the answer stands.
bool finish_sigwait(Thread* t) noexcept;
// The alternate stack: is `sp` on it; sigaltstack's change of it by a thread whose stack pointer is `sp`.
bool on_altstack(const Thread* t, uint64_t sp) noexcept;
long set_altstack(Thread* t, const activation::AltStack& fresh, uint64_t sp) noexcept;
inline constexpr int32_t ss_onstack = 1, ss_disable = 2, ss_autodisarm = static_cast<int32_t>(0x80000000);
// Starts a wait for signals (sigtimedwait, sigsuspend, pause).
Thread* wait_for_signal(Thread* t, uint64_t sigwait_set, uint64_t deadline) noexcept;
// On the monitor: it has taken one.
void on_process_signal(int signal, void* info) noexcept;
extern "C" void upcall_on_signal(int signal, void* info, void* ucontext);

}  // namespace upcall::linux_abi::signals

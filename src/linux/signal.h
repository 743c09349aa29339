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
// glibc's: every thread it knows of must answer it, ended ones kept for reuse too.
inline constexpr int setxid_signal = 33;

inline constexpr uint64_t flag_nocldstop = 1, flag_siginfo = 4, flag_onstack = 0x08000000,
                          flag_restart = 0x10000000, flag_nodefer = 0x40000000, flag_resethand = 0x80000000,
                          flag_restorer = 0x04000000;

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

extern SpinLock g_lock;  // queues, pending sets, actions
Action action_of(int signal) noexcept;
void set_action(int signal, const Action&) noexcept;
// Stops catching in the kernel what signalfd is to read.
void leave_to_kernel(uint64_t set) noexcept;
uint64_t left_to_kernel() noexcept;

// Posts to one thread, or to the process. False: no memory for a queued signal (EAGAIN).
bool post_thread(Thread* t, int signal, const Info& info) noexcept;
bool post_process(int signal, const Info& info) noexcept;
// Takes the next signal of `set` pending for t or the process. 0: none.
int take(Thread* t, uint64_t set, Info* info) noexcept;
uint64_t pending_for(const Thread* t) noexcept;
// After t's mask has changed: is there something to deliver?
void recheck(Thread* t) noexcept;
// A fault of the running thread, in the frame `uc` on the activation's stack.
void deliver_fault(int signal, const Info* info, KernelUcontext* uc) noexcept;
// The default action of a fatal or stopping signal, done by the kernel to the whole process.
void default_action(int signal) noexcept;
Thread* before_resume(Thread* t) noexcept;
Thread* sys_rt_sigreturn(Thread* t) noexcept;
// Timers of the kernel that are to signal one of our threads.
void note_timer(int32_t timer_id, int32_t tid) noexcept;
bool after_blocking(Thread* t, long result) noexcept;
// The end of a sigtimedwait: answers the signal taken. False: nothing else may interrupt, the answer stands.
bool finish_sigwait(Thread* t) noexcept;
// Starts a wait for signals (sigtimedwait, sigsuspend, pause).
Thread* wait_for_signal(Thread* t, uint64_t sigwait_set, uint64_t deadline) noexcept;
void on_process_signal(int signal, void* info) noexcept;
extern "C" void upcall_on_signal(int signal, void* info, void* ucontext);

}  // namespace upcall::linux_abi::signals

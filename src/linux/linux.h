// Virtual kernel threads: what a thread of an unmodified program would find in the kernel. Handlers of substituted
// system calls run on the activation's stack; each returns the thread to resume, with the answer in its rax.
#pragma once

#include <cstddef>
#include <cstdint>

#include "activation/activation.h"
#include "sched/thread_table.h"

namespace upcall::linux_abi {

using activation::Activation;
using sched::Thread;

using Handler = Thread* (*)(Thread*);

// errno values, without libc's header that makes errno a TLS access.
inline constexpr long e_perm = 1, e_srch = 3, e_intr = 4, e_again = 11, e_nomem = 12, e_fault = 14,
                      e_inval = 22, e_pipe = 32, e_nosys = 38, e_timedout = 110, e_canceled = 125,
                      e_restart = 512;

inline Thread* answer(Thread* t, long result) noexcept {
  t->rax = static_cast<uint64_t>(result);
  return t;
}
// The call as the program made it, on this kernel thread.
Thread* pass(Thread* t) noexcept;
// The call by its stub's own `syscall`, which stands before where the program goes on, outside the runtime.
inline Thread* leave_to_stub(Thread* t) noexcept {
  t->rip -= 2;
  t->rax = static_cast<uint64_t>(t->nr);
  return t;
}
inline long raw_call(const Thread* t) noexcept {
  return kernel::raw_syscall(t->nr, static_cast<long>(t->rdi), static_cast<long>(t->rsi),
                             static_cast<long>(t->rdx), static_cast<long>(t->r10), static_cast<long>(t->r8),
                             static_cast<long>(t->r9));
}

// --- table.cc
void install_table(bool started) noexcept;
// Must sites with this constant number be redirected?
bool wants_substitution(long nr) noexcept;
// Is it made with the processor free for others?
bool may_block_call(long nr) noexcept;

// --- futex.cc
Thread* sys_futex(Thread*) noexcept;
// Wakes waiters of a private word (exit's clear-child-tid).
void futex_wake_all(uint32_t* address) noexcept;
// Same, and those that wait for it in the kernel.
void wake_after_exit(uint32_t* address) noexcept;
void futex_wake_one(uint32_t* address) noexcept;
void reset_futexes() noexcept;
void init_futexes() noexcept;

// --- native_wait.cc: handlers of upcall_native_call for src/pthread
// Arguments: condition, deadline. 0 woken, -ETIMEDOUT; -ECANCELED: pthread_cancel; -EINTR, -ERESTART: wait again.
Thread* condition_wait(Thread*) noexcept;
// Arguments: condition, 0 one or 1 all.
Thread* condition_wake(Thread*) noexcept;
// Argument: condition. The caller has announced a wait and does not wait: 1 if it was woken meanwhile, else 0.
Thread* condition_leave(Thread*) noexcept;
// Arguments: semaphore, deadline. 0: look at the value again; -EINTR, -ERESTART (SA_RESTART), -ETIMEDOUT, -ECANCELED.
Thread* semaphore_wait(Thread*) noexcept;
// (nothing, ns): sleeps for about so long, or until a signal comes.
Thread* sleep_native(Thread*) noexcept;
Thread* semaphore_wake(Thread*) noexcept;
// Argument: a thread pointer. Ends that thread's native wait, now or when it begins.
Thread* post_cancel(Thread*) noexcept;
// The low bits of a key (addresses are multiples of 4): a wake-up of one kind never meets waiters of another.
enum class KeyKind : uint8_t { futex = 0, condition = 1, semaphore = 2 };
inline uint64_t key_of(uint64_t address, KeyKind kind) noexcept {
  return (address & ~3ul) | static_cast<uint64_t>(kind);
}

// What a condition variable is made of; as glibc's private one when nobody waits (begun == ended).
struct Condition {
  atomic<uint64_t> begun;  // twice the number of waits begun: changed under the program's mutex
  atomic<uint64_t> ended;  // twice the number of those over: changed under the bucket's lock
  uint32_t unused[5];
  uint32_t flags;  // glibc's __wrefs: bit 0 process-shared, bit 1 CLOCK_MONOTONIC
  uint64_t unused2;
};

// --- time.cc
Thread* sys_nanosleep(Thread*) noexcept;
Thread* sys_clock_nanosleep(Thread*) noexcept;
// Absolute time of `clock` (nanoseconds) as CLOCK_MONOTONIC. Negative errno in *error.
uint64_t to_monotonic(int clock, uint64_t absolute) noexcept;
// Reads a timespec of the program: 0, -EFAULT or -EINVAL.
long read_timespec(const void* user, uint64_t* nanoseconds) noexcept;
// An interrupted relative sleep tells the program what was left.
void report_remaining(Thread*) noexcept;

// --- threads.cc
Thread* sys_clone(Thread*) noexcept;
Thread* sys_clone3(Thread*) noexcept;
Thread* sys_exit(Thread*) noexcept;
void thread_killed(Thread*) noexcept;
Thread* sys_gettid(Thread*) noexcept;
Thread* sys_set_tid_address(Thread*) noexcept;
Thread* sys_set_robust_list(Thread*) noexcept;
Thread* sys_get_robust_list(Thread*) noexcept;
Thread* sys_rseq(Thread*) noexcept;
Thread* sys_sched_yield(Thread*) noexcept;
// Set by src/pthread. A thread made by `creator`, whose launch is set, before it runs; `tls` is its TLS.
extern void (*g_adopt)(Thread* creator, Thread* t, uint64_t tls);
// A thread of src/pthread, or the main one, exits.
extern void (*g_thread_exits)(Thread*);
// fork's child, before the table forgets the others.
extern void (*g_forked)(Thread* survivor);

// --- process.cc
Thread* sys_fork(Thread*) noexcept;
Thread* sys_vfork(Thread*) noexcept;
Thread* sys_exec(Thread*) noexcept;
Thread* sys_exit_group(Thread*) noexcept;
// clone and clone3 that make a process, not a thread. args as for `nr`.
Thread* clone_process(Thread*, unsigned long flags, bool own_stack) noexcept;

// --- memory.cc
Thread* sys_mmap(Thread*) noexcept;
Thread* sys_munmap(Thread*) noexcept;
Thread* sys_mprotect(Thread*) noexcept;
Thread* sys_madvise(Thread*) noexcept;
// The pooled stack that `address` lies in, guard included.
bool find_stack(uint64_t address, uint64_t* bottom, uint64_t* size, uint64_t* guard) noexcept;
// Of a stack that is no slot (kernels without guard regions, memory of the program): from above the fault up to the
// thread's TLS, if nothing between is unreadable.
bool find_own_stack(uint64_t tls, uint64_t fault, uint64_t* bottom, uint64_t* size) noexcept;
void lock_stacks_for_fork() noexcept;
void unlock_stacks_after_fork() noexcept;
// Counts files mapped executable: objects may have been loaded.
extern atomic<uint32_t> g_objects_mapped;

// --- bound.cc: calls that only a kernel thread can make for itself
Thread* sys_bound(Thread*) noexcept;
bool may_bind_call(long nr) noexcept;
// Which calls have bound how many threads, for the statistics.
void each_bound_reason(void (*f)(void*, const char* name, uint32_t times), void* argument) noexcept;
void forget_bound_reasons() noexcept;

// --- identity.cc
Thread* sys_sched_getaffinity(Thread*) noexcept;
Thread* sys_sched_setaffinity(Thread*) noexcept;
Thread* sys_sched_attributes(Thread*) noexcept;
Thread* sys_priority(Thread*) noexcept;
Thread* sys_prctl(Thread*) noexcept;

// --- signal_calls.cc
Thread* sys_rt_sigaction(Thread*) noexcept;
Thread* sys_rt_sigprocmask(Thread*) noexcept;
Thread* sys_rt_sigpending(Thread*) noexcept;
Thread* sys_rt_sigtimedwait(Thread*) noexcept;
Thread* sys_rt_sigsuspend(Thread*) noexcept;
Thread* sys_pause(Thread*) noexcept;
Thread* sys_sigaltstack(Thread*) noexcept;
Thread* sys_kill(Thread*) noexcept;
Thread* sys_tkill(Thread*) noexcept;
Thread* sys_tgkill(Thread*) noexcept;
Thread* sys_tgsigqueueinfo(Thread*) noexcept;
Thread* sys_signalfd(Thread*) noexcept;
Thread* sys_timer_create(Thread*) noexcept;
Thread* sys_ppoll(Thread*) noexcept;
Thread* sys_pselect6(Thread*) noexcept;
Thread* sys_epoll_pwait(Thread*) noexcept;

// --- signal.cc
// The program's signal state moves from the kernel into the runtime, and back (fork's child, exec).
void take_over_signals(Thread* t) noexcept;
void give_back_signals(Thread* t) noexcept;
// exec: what the new program inherits is the mask of the calling kernel thread and which signals are ignored. Handlers end
// with the old program; until then the runtime's own must stand, since the other kernel threads still run.
void let_exec_inherit(Thread* t) noexcept;
void keep_after_failed_exec() noexcept;
// A thread ends: what was pending for it goes.
void discard_signals(Thread* t, uint64_t set = ~0ul) noexcept;
// `t` will take no more signals of the process: somebody else is told of what is pending.
void pass_signals_on(Thread* t) noexcept;

// --- runtime/start.cc: the first thread is about to be made.
bool start_runtime(Thread* t) noexcept;
// fork's child: as before the first thread was made.
void unstart_runtime(Thread* t) noexcept;
void reset_counters() noexcept;
void reset_signals(Thread* t) noexcept;
// Reports, at the end of the process.
void report_at_exit() noexcept;

}  // namespace upcall::linux_abi

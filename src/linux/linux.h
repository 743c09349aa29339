// Virtual kernel threads: what a thread of an unmodified program would find in the kernel. Handlers of substituted
// system calls run on the activation's stack; each returns the thread to resume, with the answer in its rax.
#pragma once

#include <cstddef>
#include <cstdint>

#include "activation/activation.h"
#include "arch/x86_64/cpu.h"
#include "sched/thread_table.h"

struct clone_args;  // linux/sched.h

namespace upcall::linux_abi {

using activation::Activation;
using sched::Thread;

using Handler = Thread* (*)(Thread*);

// errno values, without libc's header that makes errno a TLS access.
inline constexpr long e_perm = 1, e_srch = 3, e_intr = 4, e_2big = 7, e_badf = 9, e_again = 11, e_nomem = 12,
                      e_fault = 14, e_inval = 22, e_pipe = 32, e_nosys = 38, e_timedout = 110,
                      e_canceled = 125, e_restart = 512;
// Calls that some headers do not have yet.
inline constexpr int epoll_pwait2 = 441;

inline Thread* answer(Thread* t, long result) noexcept {
  t->rax = static_cast<uint64_t>(result);
  return t;
}
// The call as the program made it, on this kernel thread.
Thread* pass(Thread* t) noexcept;
// The call in the kernel, with the processor free for others meanwhile.
Thread* may_block(Thread* t) noexcept;
// The call by its stub's own `syscall`, which stands before where the program goes on, outside the runtime.
inline Thread* leave_to_stub(Thread* t) noexcept {
  t->rip -= 2;
  t->rax = static_cast<uint64_t>(t->nr);
  return t;
}
// By its stub, from the beginning: the thread's next step is the call as the program made it.
inline void make_call_again(Thread* t) noexcept {
  t->rip -= STUB_RESTART_OFFSET;
  t->rax = static_cast<uint64_t>(t->nr);
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
// Argument: deadline. Until then, or until the processors have time to look for something (event_source.h).
Thread* hook_wait(Thread*) noexcept;
// (nothing, ns): sleeps for about so long, or until a signal comes.
Thread* sleep_native(Thread*) noexcept;
Thread* semaphore_wake(Thread*) noexcept;
// Argument: a thread pointer. Ends that thread's native wait, now or when it begins.
Thread* post_cancel(Thread*) noexcept;
// The low bits of a key (addresses are multiples of 4): a wake-up of one kind never meets waiters of another.
enum class KeyKind : uint8_t { futex = 0, condition = 1, semaphore = 2, descriptor = 3 };
inline uint64_t key_of(uint64_t address, KeyKind kind) noexcept {
  return (address & ~3ul) | static_cast<uint64_t>(kind);
}

// What a condition variable is made of; as glibc's private one when nobody waits (begun == ended).
struct Condition {
  atomic<uint64_t> begun;  // twice the number of waits begun: changed under the program's mutex
  atomic<uint64_t> ended;  // twice the number of those over: changed under the bucket's lock
  uint32_t words[8];       // one of them is glibc's __wrefs: bit 0 process-shared, bit 1 CLOCK_MONOTONIC
};

// --- time.cc
Thread* sys_nanosleep(Thread*) noexcept;
Thread* sys_clock_nanosleep(Thread*) noexcept;
Thread* sleep_milliseconds(Thread*, uint64_t milliseconds) noexcept;
// Of a call that is made again for the rest of its time; `remaining_to`: see report_remaining.
Thread* sleep_for_call(Thread*, uint64_t deadline, uint64_t remaining_to) noexcept;
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
// The runtime is being set up, for a first thread or at load.
extern void (*g_set_up)();
// fork's child, before the table forgets the others.
extern void (*g_forked)(Thread* survivor);

// --- process.cc
Thread* sys_fork(Thread*) noexcept;
Thread* sys_vfork(Thread*) noexcept;
Thread* sys_exec(Thread*) noexcept;
Thread* sys_exit_group(Thread*) noexcept;
// clone, clone3 (with its arguments) and vfork: a process, not a thread.
Thread* clone_process(Thread*, unsigned long flags, const clone_args* clone3) noexcept;

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

// --- credentials.cc
struct CodeRange {
  uintptr_t begin = 0, end = 0;
  bool holds(uintptr_t pc) const noexcept { return pc - begin < end - begin; }
};
// Where the C library, its threads and its syscall() are: calls from elsewhere in it are made for all threads. Before glibc
// 2.34 its threads are a library of their own, which does what set*id needs.
void know_library(const CodeRange& library, const CodeRange& threads, const CodeRange& plain) noexcept;
Thread* sys_set_ids(Thread*) noexcept;

// --- identity.cc
Thread* sys_sched_getaffinity(Thread*) noexcept;
Thread* sys_sched_setaffinity(Thread*) noexcept;
Thread* sys_sched_attributes(Thread*) noexcept;
Thread* sys_priority(Thread*) noexcept;
Thread* sys_prctl(Thread*) noexcept;
// This kernel thread becomes a process of its own, which is what the program has made of `t`: affinity, nice value, scheduling
// policy, and a name that other kernel threads were not told.
void show_attributes(const Thread* t) noexcept;
void show_affinity(const Thread* t) noexcept;

// --- terminal.cc
Thread* sys_ioctl(Thread*) noexcept;

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
Thread* sys_sigqueueinfo(Thread*) noexcept;
Thread* sys_pidfd_send_signal(Thread*) noexcept;

// --- terminal.cc
Thread* sys_ioctl(Thread*) noexcept;
bool read_in_background(Thread* t) noexcept;

// --- poll.cc
Thread* sys_poll(Thread*) noexcept;
Thread* sys_epoll_wait(Thread*) noexcept;
Thread* sys_semtimedop(Thread*) noexcept;
Thread* sys_io_getevents(Thread*) noexcept;
Thread* sys_ppoll(Thread*) noexcept;
Thread* sys_pselect6(Thread*) noexcept;
Thread* sys_epoll_pwait(Thread*) noexcept;
Thread* sys_io_pgetevents(Thread*) noexcept;
Thread* sys_io_uring_enter(Thread*) noexcept;

// --- signal_owner.cc: fcntl's commands about who gets SIGIO
bool is_owner_call(int32_t command) noexcept;
Thread* sys_file_owner(Thread*) noexcept;

// --- signal_timers.cc
Thread* sys_timer_create(Thread*) noexcept;
Thread* sys_timer_settime(Thread*) noexcept;
Thread* sys_timer_getoverrun(Thread*) noexcept;
Thread* sys_timer_delete(Thread*) noexcept;

// --- signal.cc
// The program's signal state moves from the kernel into the runtime, and back (fork's child, exec).
void take_over_signals(Thread* t) noexcept;
void give_back_signals(Thread* t) noexcept;
// exec: what the new program inherits is the mask of the calling kernel thread and which signals are ignored. Handlers end
// with the old program; until then the runtime's own must stand, since the other kernel threads still run.
void let_exec_inherit(Thread* t) noexcept;
void keep_after_failed_exec() noexcept;
// What the program catches and the kernel does not know of: for children that run without the runtime.
void tell_child(arch::ChildState* state) noexcept;
// CLONE_CLEAR_SIGHAND: what is caught becomes the default, what is ignored stays so.
void clear_handlers() noexcept;
// A thread ends: what was pending for it goes.
void discard_signals(Thread* t, uint64_t set = ~0ul) noexcept;
// `t` will take no more signals of the process: somebody else is told of what is pending.
void pass_signals_on(Thread* t) noexcept;

// --- runtime/start.cc
// A thread is about to be made, or something done that the runtime must know of: sets it up, if it is not. Keeps all
// general registers but those that a function may change.
extern "C" __attribute__((visibility("hidden"))) void upcall_first_thread() noexcept;
// The first thread is about to be made.
bool start_runtime(Thread* t) noexcept;
// fork's child: as before the first thread was made.
void unstart_runtime(Thread* t) noexcept;
void reset_counters() noexcept;
void reset_signals(Thread* t) noexcept;
// Reports, at the end of the process.
void report_at_exit() noexcept;
// The process ends by _exit, perhaps without having had a second thread.
void leaves_early() noexcept;

}  // namespace upcall::linux_abi

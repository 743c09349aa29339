// fork, vfork, exec and the end of the process. A new process or program must find the kernel state that the program
// thinks it has: its signal mask and dispositions, its affinity.
#include <linux/sched.h>
#include <signal.h>

#include "activation/signal_frame.h"
#include "arch/x86_64/cpu.h"
#include "kernel/memory.h"
#include "linux/descriptors.h"
#include "linux/linux.h"
#include "linux/patch/patch.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using signals::g_lock;

namespace {

// fork, or clone without CLONE_VM, with a stack for the child or without: how the call is made, and what the child does.
struct ForkCall {
  uint64_t flags = 0;      // of clone
  uint64_t stack_top = 0;  // where the child goes on; 0: where its parent was
  clone_args args;         // clone3's, without its stack
};

// On this kernel thread's own stack in parent and child alike.
long make_fork_call(const Thread* t, const ForkCall& call) noexcept {
  if (!call.stack_top) return raw_call(t);
  if (t->nr == __NR_clone) return kernel::sys(__NR_clone, t->rdi, 0, t->rdx, t->r10, t->r8);
  return kernel::sys(__NR_clone3, &call.args, t->rsi);
}

// The child is a copy of this kernel thread alone, on a copy of the runtime's stack.
Thread* fork_like(Thread* t, const ForkCall& call) noexcept {
  descriptors_shared();
  // Faults apart, nothing may interrupt the child before its runtime is in order; activations block the rest already.
  // Other kernel threads may be inside the runtime: what they hold would stay held in the child, half-changed. Locks
  // whose structures the child throws away whole (futex buckets, timers, queues) are made anew there instead.
  patch::lock_for_fork();
  signals::lock_taking_for_fork();
  sched::g_threads.lock_for_fork();
  signals::lock_asking_for_fork();
  g_lock.lock();
  lock_stacks_for_fork();
  activation::lock_frames_for_fork();
  activation::show_program_class();
  t->forked_on = activation::self();
  long r = make_fork_call(t, call);
  if (r) activation::hide_program_class();
  activation::unlock_frames_after_fork();
  unlock_stacks_after_fork();
  g_lock.unlock();
  signals::unlock_asking_after_fork(r == 0);
  sched::g_threads.unlock_after_fork();
  signals::unlock_taking_after_fork(r == 0);
  patch::unlock_after_fork();
  if (r == 0) {
    if (call.flags & CLONE_CLEAR_SIGHAND) clear_handlers();
    if (call.stack_top) t->rsp = call.stack_top;
    unstart_runtime(t);
  }
  return answer(t, r);
}

// The only kernel thread, whose state the kernel knows: the child needs no more than its stack.
Thread* fork_before_start(Thread* t, const ForkCall& call) noexcept {
  long r = make_fork_call(t, call);
  if (r == 0 && call.stack_top) t->rsp = call.stack_top;
  return answer(t, r);
}

}  // namespace

Thread* sys_fork(Thread* t) noexcept { return activation::g_runtime.started ? fork_like(t, {}) : pass(t); }

// In a child that shares our memory, or has CLONE_VFORK; GS is 0. On its own stack, or on the activation's, which waits.
extern "C" __attribute__((visibility("hidden"))) void upcall_child_begins(const Thread* t,
                                                                          const arch::ChildState* state) {
  if (!activation::g_runtime.started) return;  // the kernel knows the program's own
  if (!t->bound) show_attributes(t);
  for (uint32_t i = 0; i < state->caught; ++i)
    kernel::sys(__NR_rt_sigaction, state->actions[i].signal,
                static_cast<const void*>(state->actions[i].action), nullptr, 8);
  uint64_t mask = t->signals.mask.load(relaxed);
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
}

Thread* clone_process(Thread* t, unsigned long flags, const clone_args* clone3) noexcept {
  bool started = activation::g_runtime.started;
  descriptors_shared();
  t->forked_on = started ? activation::self() : nullptr;
  ForkCall call = {flags, 0, {}};
  bool own_stack = t->nr == __NR_clone && t->rsi;
  if (own_stack) call.stack_top = t->rsi;
  if (clone3 && clone3->stack) {
    own_stack = true;
    call.args = *clone3;
    call.stack_top = clone3->stack + clone3->stack_size;
    call.args.stack = call.args.stack_size = 0;
  }
  if (!(flags & (CLONE_VM | CLONE_VFORK))) {
    // Refused by the kernel, or by us what we do not know.
    if (clone3 && !clone3->stack != !clone3->stack_size) return pass(t);
    if (own_stack && clone3 && t->rsi > sizeof *clone3) return answer(t, -e_2big);
    return started ? fork_like(t, call) : fork_before_start(t, call);
  }
  long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi), static_cast<long>(t->rdx),
                  static_cast<long>(t->r10), static_cast<long>(t->r8),  static_cast<long>(t->r9)};
  arch::ChildState child;
  child.caught = 0;
  if (started && !(flags & (CLONE_SIGHAND | CLONE_CLEAR_SIGHAND))) tell_child(&child);
  Thread* context = t;
  if (!(flags & CLONE_VFORK)) {
    // The child may start after this thread has gone on: it gets a copy, which stays (a rare call).
    context = static_cast<Thread*>(kernel::map_pages(sizeof(Thread) + sizeof(arch::ChildState)));
    if (!context) return answer(t, -e_nomem);
    __builtin_memcpy(static_cast<void*>(context), t, sizeof(Thread));
    auto* state = reinterpret_cast<arch::ChildState*>(context + 1);
    *state = child;
    return activation::blocking_clone(t, t->nr, args, state, context, own_stack);
  }
  return activation::blocking_clone(t, t->nr, args, &child, context, own_stack);
}

Thread* sys_vfork(Thread* t) noexcept { return clone_process(t, CLONE_VM | CLONE_VFORK, nullptr); }

// exec keeps the mask and the affinity of the kernel thread that calls it: give it the program's.
Thread* sys_exec(Thread* t) noexcept {
  if (!activation::g_runtime.started) return pass(t);
  // The new program has no handler for the reserved signal: wait for one on its way, let no other be sent.
  Activation* a = activation::self();
  for (uint32_t i = 200; a->signal_sent.exchange(1, acq_rel); ++i) wait_step(i);
  let_exec_inherit(t);
  if (!t->bound) show_affinity(t);
  constexpr int one_process = 0;
  if (t->is_main && !t->bound) kernel::sys(__NR_setpriority, one_process, 0, t->nice);
  activation::show_program_class();
  activation::raise_sentinels();
  long r = raw_call(t);
  activation::lower_sentinels();
  activation::hide_program_class();
  if (!t->bound) activation::pin_self(a->processor->cpu);
  keep_after_failed_exec();
  a->signal_sent.store(0, release);
  return answer(t, r);
}

Thread* sys_exit_group(Thread* t) noexcept {
  report_at_exit();
  activation::raise_sentinels();
  return pass(t);
}

}  // namespace upcall::linux_abi

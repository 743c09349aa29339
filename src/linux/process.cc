// fork, vfork, exec and the end of the process. A new process or program must find the kernel state that the program
// thinks it has: its signal mask and dispositions, its affinity.
#include <linux/sched.h>
#include <signal.h>

#include "activation/signal_frame.h"
#include "arch/x86_64/cpu.h"
#include "kernel/memory.h"
#include "linux/linux.h"
#include "linux/patch/patch.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using signals::g_lock;

namespace {

void restore_affinity() noexcept {
  kernel::sys(__NR_sched_setaffinity, 0, sizeof activation::g_runtime.affinity,
              static_cast<void*>(activation::g_runtime.affinity));
}

// The child is a copy of this kernel thread alone, on a copy of the runtime's stack.
Thread* fork_like(Thread* t) noexcept {
  // Faults apart, nothing may interrupt the child before its runtime is in order; activations block the rest already.
  // Other kernel threads may be inside the runtime: what they hold would stay held in the child, half-changed. Locks
  // whose structures the child throws away whole (futex buckets, timers, queues) are made anew there instead.
  patch::lock_for_fork();
  sched::g_threads.lock_for_fork();
  g_lock.lock();
  lock_stacks_for_fork();
  activation::lock_frames_for_fork();
  activation::show_program_class();
  t->forked_on = activation::self();
  long r = raw_call(t);
  if (r) activation::hide_program_class();
  activation::unlock_frames_after_fork();
  unlock_stacks_after_fork();
  g_lock.unlock();
  sched::g_threads.unlock_after_fork();
  patch::unlock_after_fork();
  if (r == 0) unstart_runtime(t);
  return answer(t, r);
}

}  // namespace

Thread* sys_fork(Thread* t) noexcept { return activation::g_runtime.started ? fork_like(t) : pass(t); }

Thread* clone_process(Thread* t, unsigned long flags, bool own_stack) noexcept {
  t->forked_on = activation::g_runtime.started ? activation::self() : nullptr;
  if (!(flags & CLONE_VM)) {
    if (!activation::g_runtime.started && !own_stack) return pass(t);
    if (!own_stack) return fork_like(t);
  }
  long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi), static_cast<long>(t->rdx),
                  static_cast<long>(t->r10), static_cast<long>(t->r8),  static_cast<long>(t->r9)};
  // A bound thread's kernel thread has the affinity that its children are to inherit.
  arch::ChildState child = {t->signals.mask.load(relaxed),
                            t->bound ? 0 : sizeof activation::g_runtime.affinity,
                            activation::g_runtime.affinity};
  if (!activation::g_runtime.started) {
    kernel::sys(__NR_rt_sigprocmask, 0, nullptr, &child.signal_mask, 8);
    activation::g_runtime.affinity_size =
        kernel::sys(__NR_sched_getaffinity, 0, sizeof activation::g_runtime.affinity,
                    static_cast<void*>(activation::g_runtime.affinity));
  }
  Thread* context = t;
  if (!(flags & CLONE_VFORK)) {
    // The child may start after this thread has gone on: it gets a copy, which stays (a rare call).
    context = static_cast<Thread*>(kernel::map_pages(T_SIZE));
    if (!context) return answer(t, -e_nomem);
    __builtin_memcpy(static_cast<void*>(context), t, sizeof(Thread));
    auto* state = reinterpret_cast<arch::ChildState*>(context + 1);
    *state = child;
    return activation::blocking_clone(t, t->nr, args, state, context, own_stack);
  }
  return activation::blocking_clone(t, t->nr, args, &child, context, own_stack);
}

Thread* sys_vfork(Thread* t) noexcept { return clone_process(t, CLONE_VM | CLONE_VFORK, false); }

// exec keeps the mask and the affinity of the kernel thread that calls it: give it the program's.
Thread* sys_exec(Thread* t) noexcept {
  if (!activation::g_runtime.started) return pass(t);
  // The new program has no handler for the reserved signal: wait for one on its way, let no other be sent.
  Activation* a = activation::self();
  for (uint32_t i = 200; a->signal_sent.exchange(1, acq_rel); ++i) wait_step(i);
  let_exec_inherit(t);
  if (!t->bound) restore_affinity();
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

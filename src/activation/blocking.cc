// Calls that may block. The processor is left in_kernel(A): if the call does not block, A takes it back with one
// compare-and-swap and nobody noticed. If it does, somebody else runs the processor meanwhile: the sentinel (a
// SCHED_IDLE kernel thread of the processor, armed when there are ready threads) gets the CPU the moment A
// sleeps, and wakes a parked activation; whoever makes a thread ready later wakes one itself.
#include "activation/activation.h"
#include "arch/x86_64/cpu.h"
#include "kernel/futex.h"

namespace upcall::activation {

bool (*g_after_blocking)(Thread*, long) = nullptr;

bool claim_back(Activation* a) noexcept {
  Processor* p = a->processor;
  OwnerWord w = p->owner_word();
  if (w.state() == Owner::in_kernel || w.state() == Owner::vacant) {
    if (!try_claim(a)) return false;
  } else {
    if (w.state() != Owner::idle) return false;
    Activation* sleeper = activation_at(w.activation());
    if (!p->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel, relaxed))
      return false;
    count_awake(p);
    pool_adopt(sleeper);
  }
  end_take_over(p);
  // The thread may go on without dispatch, which would do these. The sleeper minded the timers itself.
  p->current_priority.store(a->current->sched_priority, relaxed);
  if (p->timers.next() < g_monitor_deadline.load(relaxed)) poke_monitor();
  return true;
}

Thread* resume_in_turn(Activation* a, Thread* t) noexcept {
  if (!a->processor->has_work()) {
    t->state.store(sched::State::running, relaxed);
    return t;
  }
  save_for_switch(t);
  t->home = a->processor;
  t->state.store(sched::State::ready, relaxed);
  drain_inbox(a->processor);
  a->processor->ready.push_woken(t);
  return schedule(a);
}

Thread* leave_thread(Activation* a, Thread* t) noexcept {
  Processor* p = a->processor;
  a->current = nullptr;
  t->woken = true;
  ready_remote(p, t);
  preempt_for_woken(p);
  park(a);
  return schedule_first(a);
}

namespace {

constexpr long errno_intr = 4, errno_restart = 512, errno_fbig = 27;

// Will the call that `t` is about to make block? As its last ones did; one in 16 is made as if not, to find out. Then the
// successor is woken before the call, which costs half a microsecond; the sentinel takes about five.
constexpr uint8_t surely = 8, likely = 5;

bool blocks_mostly(Thread* t) noexcept { return t->blocked_lately >= likely && (++t->calls & 15); }

void remember(Thread* t, bool blocked) noexcept {
  if (blocked) {
    if (t->blocked_lately < surely) ++t->blocked_lately;
  } else if (t->blocked_lately) {
    --t->blocked_lately;
  }
}

OwnerWord enter_kernel(Activation* a, Thread* t) noexcept {
  Processor* p = a->processor;
  t->state.store(sched::State::in_kernel, relaxed);
  count_sleeping(p);
  a->blocked_at.store(g_measuring && p->has_work() ? arch::tsc() : 0, relaxed);
  OwnerWord w = p->owner_word().next(Owner::in_kernel, a->index);
  // fenced: pairs with ready_remote's push and with the monitor's preempt_in_flight.
  p->owner.exchange(w.bits, fenced);
  settle_preemption(p);
  if (p->has_work() && !(blocks_mostly(t) && wake_successor(p, false))) arm_sentinel(p);
  if (p->timers.next() < g_monitor_deadline.load(relaxed)) poke_monitor();
  return w;
}

// True: the processor is still ours. False: somebody runs it, and we own nothing.
bool leave_kernel(Activation* a, OwnerWord w) noexcept {
  // acq_rel, or acquire: pairs with try_claim.
  if (!a->processor->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel,
                                                   acquire))
    return false;
  count_awake(a->processor);
  return true;
}

// After the call: goes on if the processor is ours or can be had, queues the thread otherwise.
Thread* come_back(Activation* a, Thread* t, OwnerWord w, long result) noexcept {
  t->rax = static_cast<uint64_t>(result);
  bool kept = leave_kernel(a, w);
  remember(t, !kept);
  if (kept) {
    t->state.store(sched::State::running, relaxed);
    return t;
  }
  unblocked(a);
  if (claim_back(a)) return resume_in_turn(a, t);
  // The thread's vector registers are in this kernel thread: saved before another one may run it.
  save_for_switch(t);
  return leave_thread(a, t);
}

}  // namespace

void wait_for_preemption(Processor* p) noexcept {
  for (uint32_t i = 200; p->preempt_in_flight.load(acquire); ++i) wait_step(i);
  kernel::sys(__NR_sched_yield);
}

Thread* blocking_call(Thread* t, long nr, const long args[6]) noexcept {
  Activation* a = self();
  ++a->processor->counters.blocking_calls;
  t->fs = arch::read_fs();
  OwnerWord w = enter_kernel(a, t);
  long r;
  do {
    // A signal for the thread sets `interrupt` through the reserved signal; see linux/signal.cc.
    a->interrupt.store(0, relaxed);
    compiler_barrier();
    r = t->attention.load(fenced) ? -errno_restart : upcall_blocking_syscall(nr, args);
  } while (!g_after_blocking(t, r));
  if (r == -errno_restart) r = -errno_intr;
  if (long done = t->call_done) {
    t->call_done = 0;
    r = r < 0 ? done : r + done;
  }
  return come_back(a, t, w, r);
}

Thread* blocking_call(Thread* t) noexcept {
  long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi), static_cast<long>(t->rdx),
                  static_cast<long>(t->r10), static_cast<long>(t->r8),  static_cast<long>(t->r9)};
  t->call_deadline = 0;
  return blocking_call(t, t->nr, args);
}

Thread* uninterrupted_call(Thread* t) noexcept {
  return work_away(t, [](Thread* of) noexcept {
    return kernel::sys(of->nr, of->rdi, of->rsi, of->rdx, of->r10, of->r8, of->r9);
  });
}

Thread* work_away(Thread* t, long (*work)(Thread*)) noexcept {
  Activation* a = self();
  ++a->processor->counters.blocking_calls;
  t->fs = arch::read_fs();
  t->interrupted_call = sched::Interrupted::no;
  OwnerWord w = enter_kernel(a, t);
  long r = work(t);
  if (r == -errno_fbig) g_after_blocking(t, r);  // there is a signal for it
  return come_back(a, t, w, r);
}

Thread* blocking_clone(Thread* t, long nr, const long args[6], const arch::ChildState* child,
                       Thread* child_context, bool own_stack) noexcept {
  Activation* a = self();
  if (!g_runtime.started) {
    t->rax = static_cast<uint64_t>(upcall_clone_process(nr, args, child_context, child, own_stack));
    return t;
  }
  ++a->processor->counters.blocking_calls;
  t->fs = arch::read_fs();
  OwnerWord w = enter_kernel(a, t);
  show_program_class();
  long r = upcall_clone_process(nr, args, child_context, child, own_stack);
  hide_program_class();
  // GS was 0: a reserved signal that came then found no activation to tell. fenced: pairs with send_signal.
  if (a->signal_sent.exchange(0, fenced)) a->resched.store(1, relaxed);
  return come_back(a, t, w, r);
}

}  // namespace upcall::activation

// What the owner of a processor does: choose the next thread, wait when there is none, make threads ready.
//
// Parking without a lost wake-up. A processor that goes to sleep first publishes idle(A), then looks at its inbox
// once more; whoever fills the inbox pushes first and then looks at the owner word. Both steps are sequentially
// consistent, so at least one sees the other. The same argument covers in_kernel(A): see blocking.cc.
//
// When to wake another processor. Moving a thread to a sleeping CPU costs an inter-processor interrupt; where the
// thread that made it ready is about to wait anyway, that is wasted. Idle processors spin for a while and take a
// thread once it has waited about as long as the move costs; sleeping ones are woken only if nobody spins, and a
// wake-up in vain makes the next one wait twice as long.
#include "activation/activation.h"
#include "activation/event_source.h"
#include "activation/signal_frame.h"
#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "kernel/futex.h"

namespace upcall::activation {

namespace {

constexpr uint64_t spin_ns = 60'000;
constexpr uint64_t patience_ns = 20'000;
constexpr uint64_t longest_holdoff_ns = 8'000'000;

atomic<uint64_t> g_wake_not_before{0};
atomic<uint64_t> g_holdoff{0};

// Somebody should look at this processor's queue. Cheap when nobody sleeps.
void invite_others(Processor* p) noexcept {
  Runtime& r = g_runtime;
  if (!g_monitor_ticking.load(relaxed)) poke_monitor();
  if (self()->current) want_sentinel(p);
  if (r.processors == 1 || r.sleeping.load(relaxed) == 0 || r.spinning.load(relaxed) != 0) return;
  uint64_t now = kernel::now();
  if (now < g_wake_not_before.load(relaxed)) return;
  g_wake_not_before.store(now + patience_ns, relaxed);
  for (uint32_t i = 1; i < r.processors; ++i) {
    Processor* other = &r.processor[(p->index + i) % r.processors];
    if (other->owner_word().state() == Owner::running) continue;
    kick(other);
    return;
  }
}

// Takes threads from the processor that has had some waiting for long enough. True: our queue has some now.
struct Victim {
  uint64_t dispatches = ~0ull;
  uint64_t since = 0;
};

bool steal_from(Processor* p, Processor* victim) noexcept {
  uint32_t n;
  Thread* first = victim->ready.steal_half(&n);
  if (!first) return false;
  Thread* last = first;
  while (last->next) last = last->next;
  p->ready.push_all(first, last, n);
  p->counters.steals += n;
  return true;
}

bool look_around(Processor* p, uint64_t now, Victim* seen) noexcept {
  Runtime& r = g_runtime;
  for (uint32_t i = 1; i < r.processors; ++i) {
    Processor* victim = &r.processor[(p->index + i) % r.processors];
    uint32_t waiting = victim->ready.count();
    bool mail = victim->inbox.load(relaxed) != nullptr;
    if (!waiting && !mail) continue;
    uint64_t d = victim->dispatches.load(relaxed);
    if (seen->dispatches != d) {
      seen->dispatches = d;
      seen->since = now;
      if (waiting < 4) continue;  // changes hands quickly: leave it alone
    } else if (waiting < 2 && now - seen->since < patience_ns) {
      continue;
    }
    if (waiting && steal_from(p, victim)) return true;
    if (!waiting && mail && now - seen->since >= patience_ns) {
      if (Thread* t = victim->inbox.exchange(nullptr, acquire)) {
        while (t) {
          Thread* next = t->next;
          p->ready.push(t);
          t = next;
        }
        return true;
      }
    }
  }
  return false;
}

// Looks for work for a while. True: there is some.
bool spin_for_work(Activation* a) noexcept {
  Runtime& r = g_runtime;
  Processor* p = a->processor;
  if (r.processors == 1 || p->bound) return false;
  r.spinning.fetch_add(1, relaxed);
  uint64_t start = kernel::now();
  Victim seen;
  bool found = false;
  for (uint64_t now = start; now - start < spin_ns; now = kernel::now()) {
    if (p->has_work() || p->timers.next() <= now || look_around(p, now, &seen) ||
        (events_wanted() && look_for_events(a))) {
      found = true;
      break;
    }
    // Somebody else's turn on this CPU? The kernel decides; we only must not hold others up.
    for (int i = 0; i < 32; ++i) pause_cpu();
  }
  r.spinning.fetch_sub(1, relaxed);
  if (found) {
    g_holdoff.store(0, relaxed);
  } else {
    uint64_t h = g_holdoff.load(relaxed);
    h = h ? (h * 2 < longest_holdoff_ns ? h * 2 : longest_holdoff_ns) : spin_ns;
    g_holdoff.store(h, relaxed);
    g_wake_not_before.store(kernel::now() + h, relaxed);
  }
  return found;
}

// Nothing to run: sleeps until there may be something. Returns owning the processor.
void idle(Activation* a) noexcept {
  Processor* p = a->processor;
  if (spin_for_work(a)) return;
  OwnerWord w = p->owner_word();
  OwnerWord sleeping = w.next(Owner::idle, a->index);
  a->current = nullptr;
  a->wake.store(0, relaxed);
  a->adopted.store(0, relaxed);
  count_sleeping(p);
  // fenced: pairs with ready_remote's push followed by its load of the owner word.
  p->owner.exchange(sleeping.bits, fenced);
  Found found;
  if (!p->has_work()) sleep_or_watch(a, p->timers.next(), &found);
  // acq_rel: pairs with a returning activation's claim.
  if (p->owner.compare_exchange_strong(sleeping.bits, sleeping.next(Owner::running, a->index).bits, acq_rel,
                                       relaxed)) {
    count_awake(p);
    a->wake.store(0, relaxed);
    deliver_events(a, found);
  } else {
    // acquire: pairs with pool_adopt. Not before: it would be in the pool twice.
    for (uint32_t i = 200; !a->adopted.load(acquire); ++i) wait_step(i);
    deliver_as_guest(a, found);
    pass_watch_on();  // idle processors may sleep without, because this one watched
    park_wait(a);
  }
}

// upcall_save_control without a call in the common case.
inline void save_control(Thread* t) noexcept {
  auto* fcw = reinterpret_cast<uint16_t*>(&t->fcw);
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(t->mxcsr), "=m"(*fcw));
  t->fpu = FPU_LIVE;
  if (__builtin_expect(t->mxcsr != DEFAULT_MXCSR || *fcw != DEFAULT_FCW, 0)) upcall_save_control(t);
}
}  // namespace

void drain_inbox(Processor* p) noexcept {
  Thread* newest = p->inbox.exchange(nullptr, acquire);  // pairs with ready_remote
  Thread* first = nullptr;
  while (newest) {  // reverse: oldest first
    Thread* next = newest->next;
    newest->next = first;
    first = newest;
    newest = next;
  }
  for (Thread *t = first, *next; t; t = next) {
    next = t->next;
    if (t->woken)
      p->ready.push_woken(t);
    else
      p->ready.push(t);
    t->woken = false;
  }
}

void save_for_switch(Thread* t) noexcept {
  if (t->kind != CONTEXT_REGISTERS) return;  // the frame has everything
  t->fs = arch::read_fs();
  if (t->fpu == FPU_LIVE) upcall_save_vectors(t);
}

void save_for_native_switch(Thread* t) noexcept {
  t->fs = arch::read_thread_pointer();
  save_control(t);
}

Thread* dispatch(Activation* a, Thread* t) noexcept {
  Processor* p = a->processor;
  p->dispatches.store(p->dispatches.load(relaxed) + 1, relaxed);
  ++p->counters.switches;
  p->current_priority.store(t->sched_priority, relaxed);
  // The same descriptor may have had another thread since: it alone does not say that FS is still loaded.
  if (a->current != t || arch::read_fs() != t->fs) arch::write_fs(t->fs);
  a->current = t;
  t->activation.store(a, relaxed);
  t->state.store(sched::State::running, relaxed);
  if (t->kind == CONTEXT_SIGNAL_FRAME) prepare_frame(a, static_cast<KernelUcontext*>(t->signal_frame));
  bool work = p->has_work();
  if (work) want_sentinel(p);
  if (((work || events_wanted()) && !g_monitor_ticking.load(relaxed)) ||
      p->timers.next() < g_monitor_deadline.load(relaxed))
    poke_monitor();
  return t;
}

Thread* next_ready(Activation* a) noexcept {
  Processor* p = a->processor;
  if (p->inbox.load(relaxed)) drain_inbox(p);
  if (__builtin_expect(events_wanted(), 0)) look_in_turn(a);
  if (p->timers.next() != sched::never && (++p->timer_check & 7) == 0) expire_timers(p, kernel::now());
  Thread* t = p->ready.pop();
  return t ? dispatch(a, t) : nullptr;
}

Thread* schedule(Activation* a) noexcept {
  Processor* p = a->processor;
  for (;;) {
    if (Thread* t = next_ready(a)) return t;
    if (p->timers.next() != sched::never) {
      expire_timers(p, kernel::now());
      if (p->has_work()) continue;
    }
    if (__builtin_expect(hooks_wanted(), 0) && g_run_hooks(a)) continue;
    idle(a);
    if (!p->taken_over) continue;
    Thread* t = next_ready(a);
    end_take_over(p);
    if (t) return t;
  }
}

Thread* schedule_first(Activation* a) noexcept {
  Thread* t = next_ready(a);
  end_take_over(a->processor);
  return t ? t : schedule(a);
}

void end_take_over(Processor* p) noexcept {
  if (!p->taken_over) return;
  p->take_over_latency.add(ns_since(p->taken_over));
  p->taken_over = 0;
}

Thread* preempted(Activation* a, Thread* t) noexcept {
  deliver(new_event(Upcall::processor_preempted, a->processor->index, a->index, t->tid));
  ready_last(a, t);
  return schedule(a);
}

namespace {

// How much the processor has to lose: the priority that runs there, -1 when nothing does.
int32_t priority_at(const Processor* p) noexcept {
  Owner state = p->owner_word().state();
  return state == Owner::running ? p->current_priority.load(relaxed) : -1;
}

// Threads that do not simply go to the processor where they were made ready.
bool is_special(const Thread* t) noexcept { return (t->sched_priority != 0) | (t->bound != nullptr); }

// A bound thread goes to its own processor; one with a priority where the lowest one runs, and takes the processor at once.
void ready_special(Activation* a, Thread* t) noexcept {
  Runtime& r = g_runtime;
  if (t->bound) {
    t->home = t->bound;
    t->state.store(sched::State::ready, relaxed);
    if (a->processor == t->bound)
      t->bound->ready.push(t);
    else
      ready_remote(t->bound, t);
    return;
  }
  Processor* own = a->outside ? nullptr : a->processor;
  Processor* best = own ? own : shared_home(t);
  int32_t least = own ? own->current_priority.load(relaxed) : priority_at(best);
  for (uint32_t i = 0; i < r.processors && least >= 0; ++i) {
    int32_t there = &r.processor[i] == own ? least : priority_at(&r.processor[i]);
    if (there < least) best = &r.processor[i], least = there;
  }
  if (best == own) {
    t->home = own;
    t->state.store(sched::State::ready, relaxed);
    own->ready.push(t);
    if (t->sched_priority > least) a->resched.store(1, relaxed);
    invite_others(own);
    return;
  }
  t->woken = true;
  ready_remote(best, t);
  OwnerWord w = best->owner_word();
  if (w.state() == Owner::running && t->sched_priority > least)
    if (Activation* other = activation_at(w.activation())) preempt_activation(other);
}

}  // namespace

void priority_changed(Thread* t) noexcept {
  Activation* a = self();
  switch (t->state.load(acquire)) {
    case sched::State::running: {
      Activation* on = t->activation.load(acquire);
      if (!on || on->is_monitor) return;
      on->processor->current_priority.store(t->sched_priority, relaxed);
      if (on == a)
        a->resched.store(1, relaxed);
      else
        preempt_activation(on);
      return;
    }
    case sched::State::ready:
      if (Processor* p = t->home; p && p->ready.take_out(t)) {
        ready_last(a, t);
      }
      return;
    default:
      return;  // takes effect when it becomes ready
  }
}

void ready(Thread* t) noexcept {
  Activation* a = self();
  if (__builtin_expect(is_special(t), 0)) {
    ready_special(a, t);
    return;
  }
  if (__builtin_expect(a->outside, 0)) {
    t->woken = true;
    ready_remote(shared_home(t), t);
    return;
  }
  Processor* p = a->processor;
  t->home = p;
  t->state.store(sched::State::ready, relaxed);
  p->ready.push_lifo(t);
  invite_others(p);
}

// A thread comes back to a processor that another one computes on: as the kernel does, it goes first. Bounded, since a
// stop costs some microseconds.
void preempt_for_woken(Processor* p) noexcept {
  constexpr uint64_t cycles_between = 20'000;
  uint64_t t = arch::tsc();
  if (!g_runtime.quantum || t - p->last_woken_preemption.load(relaxed) < cycles_between) return;
  p->last_woken_preemption.store(t, relaxed);
  OwnerWord w = p->owner_word();
  if (w.state() != Owner::running) return;
  if (Activation* a = activation_at(w.activation())) preempt_activation(a);
}

void yield_to_woken(Activation* a) noexcept {
  Processor* p = a->processor;
  if (p->seen_dispatches.load(relaxed) == p->dispatches.load(relaxed) && g_runtime.quantum)
    a->resched.store(1, relaxed);
}

void ready_last(Activation* a, Thread* t) noexcept {
  if (is_special(t) && t != a->current) {
    ready_special(a, t);
    return;
  }
  if (__builtin_expect(a->outside && t != a->current, 0)) {
    ready_remote(shared_home(t), t);
    return;
  }
  t->home = a->processor;
  t->state.store(sched::State::ready, relaxed);
  if (t == a->current)
    a->processor->ready.push_stopped(t);
  else
    a->processor->ready.push(t);
  invite_others(a->processor);
}

void ready_woken(Activation* a, Thread* t) noexcept {
  if (is_special(t)) {
    ready_special(a, t);
    return;
  }
  if (a->outside) {
    t->woken = true;
    ready_remote(shared_home(t), t);
    return;
  }
  t->home = a->processor;
  t->state.store(sched::State::ready, relaxed);
  a->processor->ready.push_woken(t);
  invite_others(a->processor);
}

void ready_new(Activation* a, Thread* t) noexcept {
  if (is_special(t)) {
    ready_special(a, t);
    return;
  }
  if (__builtin_expect(a->outside, 0)) {
    ready_remote(shared_home(t), t);
    return;
  }
  t->home = a->processor;
  t->state.store(sched::State::ready, relaxed);
  a->processor->ready.push_new(t);
  invite_others(a->processor);
}

void ready_remote(Processor* p, Thread* t) noexcept {
  t->home = p;
  t->state.store(sched::State::ready, relaxed);
  Thread* head = p->inbox.load(relaxed);
  do {
    t->next = head;
    // fenced: pairs with idle's and enter_kernel's exchange of the owner word.
  } while (!p->inbox.compare_exchange_weak(head, t, fenced, relaxed));
  // The owner may compute for long: the monitor will stop it when its slice is over.
  if (!g_monitor_ticking.load(relaxed)) poke_monitor();
  kick(p);
}

void kick(Processor* p) noexcept {
  OwnerWord w = {p->owner.load(fenced)};  // fenced: after the push above
  switch (w.state()) {
    case Owner::running:  // perhaps blocked where we do not see it
      if (!p->sentinel_armed.load(relaxed) && !p->sentinel_backoff.load(relaxed)) arm_sentinel(p);
      break;
    case Owner::idle:
      if (Activation* a = activation_at(w.activation())) wake_sleeper(a);
      break;
    case Owner::in_kernel:
    case Owner::vacant:
      wake_successor(p, true);
      break;
  }
}

void finish_wait(Thread* t, long result) noexcept {
  t->rax = static_cast<uint64_t>(result);  // before: g_unlink_waiter looks at it
  // acquire: pairs with linux/bucket.h's unlink; a waker of the same bucket may have taken the thread out.
  if (t->wait_bucket.load(acquire)) g_unlink_waiter(t);
  if (sched::is_armed(t)) t->timers->cancel(t);
  ready(t);
}

void expire_timers(Processor* p, uint64_t now) noexcept {
  uint64_t word;
  while (Thread* t = p->timers.pop_due(now, &word))
    if (sched::claim_wait(t, word)) {
      if (t->sigwait_set) t->attention.store(1, relaxed);  // before_resume ends the wait for signals
      finish_wait(t, t->timeout_result);
    }
}

}  // namespace upcall::activation

using upcall::activation::Activation;
using upcall::sched::Thread;

extern "C" {

namespace {

__attribute__((noinline, cold)) Thread* yield_slowly(Activation* a, Thread* t) noexcept {
  namespace act = upcall::activation;
  act::Processor* p = a->processor;
  if (!act::g_runtime.started) {
    t->rax = static_cast<uint64_t>(upcall::kernel::sys(__NR_sched_yield));
    return t;
  }
  t->rax = 0;
  if (!p->has_work()) {
    if (p->timers.next() != upcall::sched::never) act::expire_timers(p, upcall::kernel::now());
    if (!p->has_work()) {
      // Kernel threads of the same priority have their turn, as the caller wants it: returning activations are among them.
      if (act::real_time_program() || p->bound) upcall::kernel::sys(__NR_sched_yield);
      if (!p->has_work()) return t;
    }
  }
  act::save_for_native_switch(t);
  ++p->counters.yields;
  t->state.store(upcall::sched::State::ready, upcall::relaxed);
  t->home = p;
  if (p->inbox.load(upcall::relaxed) || p->timers.next() != upcall::sched::never || act::events_wanted()) {
    p->ready.push(t);
    return act::schedule(a);
  }
  return act::dispatch(a, p->ready.rotate(t));
}

}  // namespace

// sched_yield called by symbol, from entry.S. What is not the common case (several threads that compute) goes the long way.
__attribute__((visibility("hidden"))) Thread* upcall_yield_thread(Thread* t) noexcept {
  namespace act = upcall::activation;
  using upcall::relaxed;
  Activation* a = act::self();
  act::Processor* p = a->processor;
  bool common = act::g_runtime.started && act::g_monitor_ticking.load(relaxed) && !p->inbox.load(relaxed) &&
                p->timers.next() == upcall::sched::never && !t->sched_priority && !act::events_wanted();
  if (__builtin_expect(!common, 0)) return yield_slowly(a, t);
  // Complete before the queue has it: a thief may take it at once.
  t->fs = upcall::arch::read_thread_pointer();
  act::save_control(t);
  t->rax = 0;
  t->home = p;
  t->state.store(upcall::sched::State::ready, relaxed);
  Thread* n = p->ready.rotate_list(t);
  if (__builtin_expect(!n || n->kind != CONTEXT_REGISTERS, 0)) {
    if (n) return act::dispatch(a, n);
    t->state.store(upcall::sched::State::running, relaxed);
    return yield_slowly(a, t);
  }
  ++p->counters.yields;
  ++p->counters.switches;
  p->dispatches.store(p->dispatches.load(relaxed) + 1, relaxed);
  upcall::arch::write_fs(n->fs);
  a->current = n;
  n->activation.store(a, relaxed);
  n->state.store(upcall::sched::State::running, relaxed);
  return n;
}

// From entry.S: something is to be done before `t`, the current thread, goes on.
__attribute__((visibility("hidden"))) Thread* upcall_before_resume(Thread* t) noexcept {
  namespace act = upcall::activation;
  Activation* a = act::self();
  if (a->resched.load(upcall::relaxed)) {
    a->resched.store(0, upcall::relaxed);
    act::drain_inbox(a->processor);
    if (a->processor->ready.beats(t)) {
      act::save_for_switch(t);
      t = act::preempted(a, t);
    }
  }
  while (t->pending_handler) {
    auto* handler = t->pending_handler;
    t->pending_handler = nullptr;
    // Unless a signal has been posted: the call would end with EINTR for nothing.
    uint32_t ours = act::attention_pending_handler;
    t->attention.compare_exchange_strong(ours, 0, upcall::relaxed, upcall::relaxed);
    if (t->fpu != FPU_LIVE) upcall_load_fpu(t);
    t = handler(t);
  }
  if (t->attention.load(upcall::acquire)) t = act::g_before_resume(t);
  return t;
}
}

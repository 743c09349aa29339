// Bound threads: what only a kernel thread can have (namespaces, filters, capabilities, tracees) belongs to the kernel
// thread that asked for it. Such a thread keeps its activation for good. The two get a processor of their own, beside those
// that other threads share: nothing else is ever queued there, nobody steals from it or takes it over, no sentinel watches
// it, and the kernel runs it where it likes. To every other part of the runtime it is a processor like the others.
//   bind           the activation leaves its shared processor vacant, to be claimed by another one
//   threads it makes   are bound too, on kernel threads made by its own, which inherit from it as the program expects
//   exit           ends the activation; what it has must not come to other threads. The process's first kernel thread
//                  cannot end before the process (/proc/self would be lost with it): only the main thread is bound to it,
//                  and it sleeps then.
//   killed         by its own filter, which the monitor finds out
// A bound activation makes no kernel threads for others: the monitor does (wake_successor). One with a filter may be refused
// what the runtime needs; membarrier(2), which sandboxes hardly know, is then made by a helper.
#include <linux/close_range.h>

#include <new>

#include "activation/credentials.h"
#include "activation/event_source.h"
#include "activation/switch_events.h"
#include "arch/x86_64/cpu.h"
#include "base/fence.h"
#include "kernel/futex.h"
#include "kernel/memory.h"

namespace upcall::activation {

void (*g_thread_killed)(Thread*) = nullptr;
atomic<uint32_t> g_filtered{0};

namespace {

atomic<Processor*> g_bound{nullptr};  // all that were ever made
constexpr uint32_t in_use = 1, unused = 0;

Processor* bound_processor() noexcept {
  for (Processor* p = g_bound.load(acquire); p; p = p->next_bound) {  // pairs with the push below
    uint32_t none = unused;
    // acq_rel: pairs with give_up.
    if (!p->bound_in_use.compare_exchange_strong(none, in_use, acq_rel, relaxed)) continue;
    p->filtered = p->own_files = p->counted = false;
    return p;
  }
  auto* memory = kernel::map_pages((sizeof(Processor) + 4095) & ~4095ul);
  if (!memory) return nullptr;
  auto* p = new (memory) Processor;
  p->bound = true;
  p->bound_in_use.store(in_use, relaxed);
  p->index = g_runtime.processors;  // in events: beyond the shared ones
  p->spare_count = ~0u;             // full: threads for reuse go to the others
  Processor* head = g_bound.load(relaxed);
  do {
    p->next_bound = head;
  } while (!g_bound.compare_exchange_weak(head, p, release, relaxed));  // pairs with the loads of g_bound
  return p;
}

// The owner's: `a` goes, and whoever looks at `p` next may claim it.
void leave_vacant(Activation* a, Processor* p) noexcept {
  count_sleeping(p);
  OwnerWord w = p->owner_word().next(Owner::vacant, 0);
  // fenced: pairs with ready_remote's push and with preempt_activation.
  p->owner.exchange(w.bits, fenced);
  // A signal meant for what ran here must not end a call that is made elsewhere.
  settle_preemption(p);
  if (p->has_work()) wake_successor(p, true);
  if (p->timers.next() < g_monitor_deadline.load(relaxed)) poke_monitor();
}

void give_affinity(const Thread* t) noexcept {
  uint64_t mask[16];
  if (t->affinity_set)
    __builtin_memcpy(mask, t->affinity, sizeof mask);
  else
    allowed_cpus(mask);
  kernel::sys(__NR_sched_setaffinity, 0, sizeof mask, static_cast<void*>(mask));
}

// By the activation itself, before it has a processor of its own: what the kernel is to know of its thread.
void settle(Activation* a, const Thread* t) noexcept {
  part_with_credentials(a);
  show_program_class();
  // Should it end, its memory may be used again after that only; other kernel threads are made with this.
  a->alive.store(1, relaxed);
  kernel::sys(__NR_set_tid_address, &a->alive);
  give_affinity(t);
  constexpr int one_process = 0;
  kernel::sys(__NR_setpriority, one_process, 0, t->nice);
  if (t->sched_policy || t->sched_priority)
    kernel::sys(__NR_sched_setscheduler, 0, t->sched_policy, &t->sched_priority);
}

// The thread's side.
void adopt(Thread* t, Processor* p, Activation* a) noexcept {
  p->sole = a;
  p->thread.store(t, relaxed);
  p->current_priority.store(t->sched_priority, relaxed);
  t->bound = p;
  t->bound_tid = a->tid;
  t->home = p;
  t->touched = true;  // it ends for good
  g_counters.bound_threads.fetch_add(1, relaxed);
}

void give_up(Processor* own) noexcept {
  own->bound_in_use.store(unused, release);  // pairs with bound_processor
}

// `t` goes on elsewhere, where it makes its call again.
void prepare_to_leave(Thread* t, Thread* (*again)(Thread*)) noexcept {
  save_for_switch(t);
  t->pending_handler = again;
  uint32_t none = 0;
  t->attention.compare_exchange_strong(none, attention_pending_handler, relaxed, relaxed);
}

// The activation of the process's first kernel thread.
Activation* leader() noexcept {
  for (uint32_t i = 0; i < activation_count(); ++i)
    if (Activation* a = activation_at(i); a && a->tid == g_runtime.pid) return a;
  return nullptr;
}

// Somebody must be able to take the processor over, also once the system gives no more kernel threads.
bool has_successor(const Processor* p) noexcept {
  return p->pool || p->standby.load(relaxed) || p->spawning.load(relaxed);
}

// Heavy fences for those that may not make them: how many were asked for, and made. Futexes both.
atomic<uint32_t> g_fences_wanted{0}, g_fences_made{0};
atomic<uint32_t> g_fencer{0};

// Holds nothing while it waits, and nobody waits for it but who has asked: no lock of the runtime is in the way.
void fencer_main(void*) noexcept {
  begin_helper();
  take_monitor_class();
  for (uint32_t made = g_fences_made.load(relaxed);;) {
    uint32_t wanted = g_fences_wanted.load(acquire);  // pairs with fence_elsewhere
    if (wanted == made) {
      kernel::futex_wait(&g_fences_wanted, made);
      continue;
    }
    heavy_fence();
    made = wanted;
    g_fences_made.store(made, release);  // pairs with fence_elsewhere
    kernel::futex_wake(&g_fences_made, 1u << 30);
  }
}

void fence_elsewhere() noexcept {
  // fenced: what the fence is to order comes before; pairs with fencer_main.
  uint32_t ticket = g_fences_wanted.fetch_add(1, fenced) + 1;
  kernel::futex_wake(&g_fences_wanted, 1);
  for (;;) {
    uint32_t made = g_fences_made.load(acquire);  // pairs with fencer_main
    if (static_cast<int32_t>(made - ticket) >= 0) return;
    kernel::futex_wait(&g_fences_made, made);
  }
}

// A thread with a filter may be refused membarrier(2), and those that it makes inherit it: made before any is bound.
bool start_fencer() noexcept {
  enum : uint32_t { none, being_made, there };
  if (!g_have_membarrier) return true;
  for (uint32_t i = 0;; ++i) {
    uint32_t state = none;
    // acq_rel, acquire: pairs with the stores below.
    if (g_fencer.compare_exchange_strong(state, being_made, acq_rel, acquire)) break;
    if (state == there) return true;
    wait_step(i);
  }
  g_fence_elsewhere = fence_elsewhere;
  int tid;
  bool made = start_helper(fencer_main, nullptr, 16 * 1024, &tid) >= 0;
  g_fencer.store(made ? there : none, release);
  return made;
}

// `f`, if it is parked, gets `own` and its thread. False: it is not.
bool give_to(Activation* f, Processor* own, Thread* t) noexcept {
  own->thread.store(t, relaxed);  // known by the pool's lock
  if (!take_parked(f, own)) return false;
  adopt(t, own, f);
  t->state.store(sched::State::ready, relaxed);
  ready_remote(own, t);
  wake_sleeper(f);  // which may be an outpost
  return true;
}

}  // namespace

Thread* bind(Thread* t, Activation* where, Thread* (*again)(Thread*)) noexcept {
  if (t->bound) return t;
  Activation* a = self();
  Processor* from = a->processor;
  Processor* own =
      (has_successor(from) || make_standby(from)) && start_fencer() ? bound_processor() : nullptr;
  if (!own) return nullptr;
  if (!where && t->is_main) where = leader();
  if (where && where != a && !where->is_monitor) {
    prepare_to_leave(t, again);
    // It may have been woken for nothing, and be on its way back to the pool: not for long, if it runs no thread.
    constexpr uint32_t first_try = 390, tries = 100;  // with some sleep between, see wait_step
    for (uint32_t i = first_try; i < first_try + tries; ++i) {
      if (give_to(where, own, t)) return schedule(a);
      if (__atomic_load_n(&where->current, __ATOMIC_RELAXED)) break;
      wait_step(i);
    }
    // It runs others: the thread goes to that processor, and asks again when it is its turn there.
    constexpr uint8_t most_visits = 100;
    Processor* there = where->processor;
    if (there && there != from && !there->bound && there->owner_word().activation() == where->index &&
        t->bind_visits < most_visits) {
      ++t->bind_visits;
      give_up(own);
      ready_remote(there, t);
      return schedule(a);
    }
    t->pending_handler = nullptr;
    uint32_t ours = attention_pending_handler;
    t->attention.compare_exchange_strong(ours, 0, relaxed, relaxed);
  }
  if (a->tid == g_runtime.pid && !t->is_main && where != a) {
    // The process is known by its first kernel thread (/proc/PID), which cannot end before it: for the main thread only,
    // and for tracers that have forked there.
    give_up(own);
    prepare_to_leave(t, again);
    leave_vacant(a, from);
    return leave_thread(a, t);
  }
  t->bind_visits = 0;
  settle(a, t);
  a->processor = own;
  a->outside = true;
  adopt(t, own, a);
  own->owner.store(own->owner_word().next(Owner::running, a->index).bits, release);  // pairs with owner_word
  leave_vacant(a, from);
  return t;
}

void settle_in(Activation* a) noexcept {
  Processor* own = a->bind_to;
  a->bind_to = nullptr;
  settle(a, own->thread.load(relaxed));
  a->processor = own;
  a->outside = true;
}

long new_bound_activation(Processor** made) noexcept {
  Processor* p = bound_processor();
  if (!p) return -12;
  p->spawning.store(1, relaxed);
  *made = p;
  long r = spawn_activation(p);
  if (r == 0) return 0;
  p->spawning.store(0, relaxed);
  give_up(p);
  return r;
}

void adopt_bound(Thread* n, Processor* p) noexcept {
  const Processor* creators = self()->processor;
  p->filtered = creators->filtered;
  p->own_files = creators->own_files;
  p->counted = true;  // with its creator
  adopt(n, p, p->sole);
}

void retire(Activation* a) noexcept {
  Processor* p = a->processor;
  p->current_priority.store(0, relaxed);
  p->thread.store(nullptr, relaxed);
  if (a->tid == g_runtime.pid) {
    // Descriptors of its own must be closed: others wait for the end of the file.
    if (p->own_files) kernel::sys(__NR_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
    atomic<uint32_t> never{0};
    for (;;) kernel::futex_wait(&never, 0);
  }
  p->owner.exchange(p->owner_word().next(Owner::vacant, 0).bits, fenced);  // as in leave_vacant
  settle_preemption(p);
  give_up(p);
  forget_own_switches(a);
  g_counters.kernel_threads_live.fetch_sub(1, relaxed);
  keep_retired(a);
  for (;;) kernel::sys(__NR_exit, 0);
}

bool watch_bound() noexcept {
  bool waiting = false;
  for (Processor* p = first_bound_processor(); p; p = p->next_bound) {
    OwnerWord w = p->owner_word();
    if (!p->bound_in_use.load(acquire) || w.state() == Owner::vacant) continue;  // pairs with give_up
    Activation* a = activation_at(w.activation());
    if (owes_attention(w)) {
      preempt_activation(a);
      waiting = true;
    }
    // acquire: pairs with the kernel's store at its end. Was it retire's, the processor has another owner word since, and
    // perhaps another thread.
    if (!p->filtered || a->alive.load(acquire)) continue;
    Thread* t = p->thread.load(relaxed);
    if (t && p->owner.compare_exchange_strong(w.bits, w.next(Owner::vacant, 0).bits, fenced, relaxed)) {
      p->thread.store(nullptr, relaxed);
      g_thread_killed(t);
      give_up(p);
      forget_own_switches(a);
      g_counters.kernel_threads_live.fetch_sub(1, relaxed);
      keep_retired(a);
    }
  }
  return waiting;
}

void unbind_in_child(Thread* survivor) noexcept {
  Activation* a = self();
  g_fencer.store(0, relaxed);
  g_fence_elsewhere = nullptr;
  g_fences_made.store(g_fences_wanted.load(relaxed), relaxed);
  g_filtered.store(0, relaxed);
  if (survivor->bound) {
    a->processor = &g_runtime.processor[0];
    a->outside = false;
    survivor->bound = nullptr;
    survivor->bound_tid = 0;
  }
  for (Processor* p = g_bound.load(relaxed); p; p = p->next_bound) {
    p->owner.store(0, relaxed);
    p->ready.reset();
    p->timers.reset();
    p->inbox.store(nullptr, relaxed);
    p->preempt_in_flight.store(0, relaxed);
    p->spawning.store(0, relaxed);
    p->current_priority.store(0, relaxed);
    p->taken_over = 0;
    p->counters = {};
    p->sole = nullptr;
    p->thread.store(nullptr, relaxed);
    p->filtered = p->own_files = p->counted = false;
    p->bound_in_use.store(unused, relaxed);
  }
}

Processor* first_bound_processor() noexcept { return g_bound.load(acquire); }  // pairs with bound_processor

void note_filter(Thread* t) noexcept {
  t->bound->filtered = true;
  // The monitor looks from time to time whether it has ended by it. fenced: pairs with next_deadline.
  if (g_filtered.exchange(1, fenced) == 0) poke_monitor();
}

Processor* shared_home(Thread* t) noexcept {
  static atomic<uint32_t> turn{0};
  if (t->home && !t->home->bound) return t->home;
  return &g_runtime.processor[turn.fetch_add(1, relaxed) % g_runtime.processors];
}

}  // namespace upcall::activation

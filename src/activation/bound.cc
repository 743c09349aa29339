// Bound threads: what only a kernel thread can have (namespaces, filters, capabilities, tracees) belongs to the kernel
// thread that asked for it. Such a thread keeps its activation for good. The two get a processor of their own, beside those
// that other threads share: nothing else is ever queued there, nobody steals from it or takes it over, no sentinel watches
// it, and the kernel runs it where it likes. To every other part of the runtime it is a processor like the others.
//   bind           the activation leaves its shared processor vacant, to be claimed by another one
//   threads it makes   are bound too, on kernel threads made by its own, which inherit from it as the program expects
//   exit           ends the activation; what it has must not come to other threads. The process's first kernel thread
//                  cannot end before the process (/proc/self would be lost with it): it sleeps.
// A bound activation makes no kernel threads for others: the monitor does (wake_successor). One with a filter may be refused
// what the runtime needs; membarrier(2), which sandboxes hardly know, is then made by a helper.
#include <new>

#include "activation/activation.h"
#include "arch/x86_64/cpu.h"
#include "base/fence.h"
#include "kernel/futex.h"
#include "kernel/memory.h"

namespace upcall::activation {

namespace {

atomic<Processor*> g_bound{nullptr};  // all that were ever made
constexpr uint32_t in_use = 1, unused = 0;

Processor* bound_processor() noexcept {
  for (Processor* p = g_bound.load(acquire); p; p = p->next_bound) {  // pairs with the push below
    uint32_t none = unused;
    // acq_rel: pairs with retire, which has left it as new.
    if (p->bound_in_use.compare_exchange_strong(none, in_use, acq_rel, relaxed)) return p;
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
  g_runtime.sleeping.fetch_add(1, relaxed);
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

void take_over_own(Activation* a, Thread* t, Processor* p) noexcept {
  a->processor = p;
  a->outside = true;
  p->sole = a;
  t->bound = p;
  t->home = p;
  t->touched = true;  // it ends for good
  p->current_priority.store(t->sched_priority, relaxed);
  p->owner.store(p->owner_word().next(Owner::running, a->index).bits, release);  // pairs with owner_word
  g_counters.bound_threads.fetch_add(1, relaxed);
}

// Heavy fences for those that may not make them: how many were asked for, and made. Futexes both.
atomic<uint32_t> g_fences_wanted{0}, g_fences_made{0};
atomic<uint32_t> g_fencer_started{0};

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

}  // namespace

bool prepare_for_filter() noexcept {
  const Activation* a = self();
  // Another filter on top of one: the helper is there, or could only be made with that one.
  if (!g_have_membarrier || g_fencer_started.load(relaxed) || a->outside) return true;
  if (g_fencer_started.exchange(1, relaxed)) return true;
  g_fence_elsewhere = fence_elsewhere;
  int tid;
  if (start_helper(fencer_main, nullptr, 16 * 1024, &tid) >= 0) return true;
  g_fencer_started.store(0, relaxed);
  return false;
}

bool bind(Thread* t) noexcept {
  if (t->bound) return true;
  Activation* a = self();
  Processor* from = a->processor;
  // Somebody must be able to take the processor over, also once the system gives no more kernel threads.
  if (!from->pool && !from->standby.load(relaxed) && !from->spawning.load(relaxed)) make_standby(from);
  Processor* own = bound_processor();
  if (!own || (!from->pool && !from->standby.load(relaxed) && !from->spawning.load(relaxed))) {
    if (own) own->bound_in_use.store(unused, release);  // pairs with bound_processor
    return false;
  }
  show_program_class();
  // Should it end, its memory may be used again after that only; other kernel threads are made with this.
  a->alive.store(1, relaxed);
  kernel::sys(__NR_set_tid_address, &a->alive);
  take_over_own(a, t, own);
  leave_vacant(a, from);
  give_affinity(t);
  constexpr int one_process = 0;
  kernel::sys(__NR_setpriority, one_process, 0, t->nice);
  return true;
}

Processor* new_bound_activation() noexcept {
  Processor* p = bound_processor();
  if (!p) return nullptr;
  p->spawning.store(1, relaxed);
  g_runtime.sleeping.fetch_add(1, relaxed);  // as a vacant one; while nobody uses it it does not count
  if (spawn_activation(p)) return p;
  g_runtime.sleeping.fetch_sub(1, relaxed);
  p->spawning.store(0, relaxed);
  p->bound_in_use.store(unused, release);  // pairs with bound_processor
  return nullptr;
}

void adopt_bound(Thread* n, Processor* p) noexcept {
  n->bound = p;
  n->home = p;
  n->touched = true;
  g_counters.bound_threads.fetch_add(1, relaxed);
}

void retire(Activation* a) noexcept {
  Processor* p = a->processor;
  p->current_priority.store(0, relaxed);
  if (a->tid == g_runtime.pid) {
    atomic<uint32_t> never{0};
    for (;;) kernel::futex_wait(&never, 0);
  }
  p->owner.exchange(p->owner_word().next(Owner::vacant, 0).bits, fenced);  // as in leave_vacant
  settle_preemption(p);
  p->sole = nullptr;
  p->bound_in_use.store(unused, release);  // pairs with bound_processor
  g_counters.kernel_threads_live.fetch_sub(1, relaxed);
  keep_retired(a);
  for (;;) kernel::sys(__NR_exit, 0);
}

void unbind_in_child(Thread* survivor) noexcept {
  Activation* a = self();
  g_fencer_started.store(0, relaxed);
  g_fence_elsewhere = nullptr;
  g_fences_made.store(g_fences_wanted.load(relaxed), relaxed);
  if (survivor->bound) {
    a->processor = &g_runtime.processor[0];
    a->outside = false;
    survivor->bound = nullptr;
  }
  for (Processor* p = g_bound.load(relaxed); p; p = p->next_bound) {
    p->owner.store(0, relaxed);
    p->ready.reset();
    p->timers.reset();
    p->inbox.store(nullptr, relaxed);
    p->counters = {};
    p->sole = nullptr;
    p->bound_in_use.store(unused, relaxed);
  }
}

Processor* first_bound_processor() noexcept { return g_bound.load(acquire); }  // pairs with bound_processor

Processor* shared_home(Thread* t) noexcept {
  static atomic<uint32_t> turn{0};
  if (t->home && !t->home->bound) return t->home;
  return &g_runtime.processor[turn.fetch_add(1, relaxed) % g_runtime.processors];
}

}  // namespace upcall::activation

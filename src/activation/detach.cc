// Activations that block where nothing tells us: in a page fault, or in a system call that was not substituted. Who
// finds one (sentinel, monitor) takes its processor away; on its return it runs its thread without a processor until it
// enters the runtime, or until the monitor's signal stops it.
//
// Who owns the processor is still decided on the owner word alone. `lost` only makes the activation look:
//   detacher:   lost = 1; heavy fence; not in the runtime? then CAS owner running(A) -> in_kernel(A); failed: lost = 0
//   activation: in_runtime = 1; (light fence) lost?  then lost = 0; CAS owner running(A) -> running(A), next epoch
// By the asymmetric fence either the detacher sees in_runtime and keeps off, or the activation sees lost. If both, the two
// compare-and-swaps meet on one word and one wins. The activation clears `lost` before its own, so that a detacher who
// has read the word after it finds its `lost` still set. Each detacher has a mark of its own in `lost`: one that comes late (the
// sentinel waits for its CPU between reading the word and acting on it) takes back its own mark only.
#include "activation/activation.h"
#include "activation/signal_frame.h"
#include "activation/switch_events.h"
#include "arch/x86_64/cpu.h"
#include "base/fence.h"

namespace upcall::activation {

namespace {

constexpr uint32_t nobodys_mark = 4;  // in `lost`: on without a processor; no detacher clears this

// Activations that have lost their processor, for the monitor to look at. Without a lock: the sentinel would be kept from
// giving it back by those who spin for it. Detachers push, the monitor alone takes.
atomic<Activation*> g_new_lost{nullptr};
atomic<uint32_t> g_lost_count{0};
Activation* g_watched = nullptr;  // the monitor's

void watch(Activation* a) noexcept {
  if (a->lost_listed.exchange(1, acq_rel)) return;  // pairs with poll_lost's unlinking
  Activation* head = g_new_lost.load(relaxed);
  do {
    a->lost_next = head;
  } while (!g_new_lost.compare_exchange_weak(head, a, release, relaxed));  // pairs with poll_lost's exchange
  // It looks at every tick. fenced: pairs with the end of its ticks, after which it looks once more. A signal would
  // have it run at once, for 20 us that the next thread waits for.
  if (g_lost_count.fetch_add(1, fenced) == 0 && !g_monitor_ticking.load(fenced)) poke_monitor();
}

// Inside the runtime, `lost` seen. True: the processor is ours.
bool take_back(Activation* a) noexcept {
  Processor* p = a->processor;
  bool told = a->lost.load(relaxed) & nobodys_mark;
  a->lost.store(0, relaxed);  // ordered before the compare-and-swap below, which is a full fence here
  OwnerWord w = p->owner_word();
  // acq_rel: pairs with detach and try_claim.
  if (w.state() == Owner::running && w.activation() == a->index &&
      p->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel, relaxed))
    return true;  // nobody had taken it yet
  w = p->owner_word();
  if (w.state() == Owner::in_kernel && w.activation() == a->index &&
      p->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel, relaxed)) {
    count_awake(p);
    g_counters.taken_back.fetch_add(1, relaxed);
    return true;
  }
  if (!told) unblocked(a);  // after the load of the owner word, which has seen who took it
  if (!claim_back(a)) return false;
  g_counters.taken_back.fetch_add(1, relaxed);
  return true;
}

}  // namespace

bool detach(Processor* p, OwnerWord w, Detacher by) noexcept {
  Activation* a = activation_at(w.activation());
  if (!a || !g_have_membarrier) return false;
  // Not worth a fence, which asks for a lock of the whole machine. acquire: as below.
  if (a->in_runtime.load(acquire)) return false;
  auto mark = static_cast<uint32_t>(by);
  bool done = false;
  // relaxed: the heavy fence orders it before the load of in_runtime; pairs with entry.S.
  a->lost.fetch_or(mark, relaxed);
  heavy_fence();
  // acquire: pairs with the store at the end of entry.S's way out.
  if (!a->in_runtime.load(acquire)) {
    count_sleeping(p);
    // Should the owner be entering the kernel at this moment, which makes the next step fail: about the same time.
    a->blocked_at.store(arch::tsc(), relaxed);
    // acq_rel: pairs with take_back, and with whoever claims the processor now.
    done =
        p->owner.compare_exchange_strong(w.bits, w.next(Owner::in_kernel, a->index).bits, acq_rel, relaxed);
    if (!done) count_awake(p);
  }
  if (!done) a->lost.fetch_and(~mark, relaxed);
  if (done) watch(a);
  return done;
}

bool enter_from_handler(Activation* a, void* ucontext) noexcept {
  a->in_runtime.store(1, relaxed);
  light_fence();  // pairs with detach's heavy fence
  Thread* t = a->current;
  if (a->lost.load(relaxed) && !take_back(a)) {
    if (keep_frame(t, ucontext)) {
      unblock_preempt_signal();
      t->fs = arch::read_fs();
      g_counters.surrendered.fetch_add(1, relaxed);
      upcall_resume(leave_thread(a, t));
    }
    a->lost.store(nobodys_mark, relaxed);  // no memory
    compiler_barrier();
    a->in_runtime.store(0, relaxed);
    return false;
  }
  return true;
}

uint32_t lost_count() noexcept { return g_lost_count.load(relaxed); }

void forget_lost() noexcept {
  g_new_lost.store(nullptr, relaxed);
  g_watched = nullptr;
  g_lost_count.store(0, relaxed);
}

// What a lost activation may use between two looks (a millisecond) without being stopped. One that computes again uses more;
// one that goes from fault to fault uses less, and is best left alone: to stop it, queue its thread, give that a
// processor and lose it again at the next fault costs ten times what it uses.
constexpr uint64_t lost_allowance_ns = 50'000, lost_allowance_blocked_ns = 300'000;

void poll_lost() noexcept {
  // acquire: pairs with watch.
  for (Activation *a = g_new_lost.exchange(nullptr, acquire), *next; a; a = next) {
    next = a->lost_next;
    a->lost_cpu_time = cpu_time(a->tid);
    a->lost_next = g_watched;
    g_watched = a;
  }
  for (Activation** link = &g_watched; Activation* a = *link;) {
    if (a->lost.load(acquire)) {
      uint64_t used = cpu_time(a->tid);
      // Blocked again, it is not to be disturbed, the signal would end its call. If it used much, it only seems so.
      uint64_t allowed =
          kernel_state(a) == KernelState::blocked ? lost_allowance_blocked_ns : lost_allowance_ns;
      if (used - a->lost_cpu_time > allowed) {
        // As in preempt_activation: it has its processor back before it enters the kernel, and then waits for us.
        Processor* p = a->processor;  // it may get another one meanwhile (bound.cc)
        p->preempt_in_flight.fetch_add(1, fenced);
        if (a->lost.load(fenced)) send_signal(a);
        p->preempt_in_flight.fetch_sub(1, release);
      }
      a->lost_cpu_time = used;
      link = &a->lost_next;
      continue;
    }
    *link = a->lost_next;
    g_lost_count.fetch_sub(1, relaxed);
    a->lost_listed.exchange(0,
                            acq_rel);  // pairs with watch: lost again before this, and it has left it to us
    if (a->lost.load(acquire)) watch(a);
  }
}

}  // namespace upcall::activation

using upcall::activation::Activation;
using upcall::sched::Thread;

extern "C" {
// From entry.S: `t` has called while its activation may have no processor.
__attribute__((visibility("hidden"))) Thread* upcall_take_back(Thread* t,
                                                               Thread* (*handler)(Thread*)) noexcept {
  namespace act = upcall::activation;
  Activation* a = act::self();
  if (act::take_back(a)) return handler(t);
  act::save_for_switch(t);
  t->pending_handler = handler;
  upcall::g_counters.surrendered.fetch_add(1, upcall::relaxed);
  // So that entry.S goes through upcall_before_resume; distinct from a signal's, which may be there already.
  uint32_t none = 0;
  t->attention.compare_exchange_strong(none, act::attention_pending_handler, upcall::relaxed,
                                       upcall::relaxed);
  return act::leave_thread(a, t);
}
}

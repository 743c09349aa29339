// The sentinel: a SCHED_IDLE kernel thread per processor, pinned to its CPU. It gets the CPU when nobody else on it can
// run, above all when the processor's owner has blocked. Linux gives it a small share beside a running owner too (weight 3
// against 1,024), so it looks before it acts. Armed only while threads wait for the processor.
#include <sched.h>

#include "activation/activation.h"
#include "activation/switch_events.h"
#include "activation/task_state.h"
#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "kernel/futex.h"

namespace upcall::activation {

namespace {

constexpr uint32_t longest_backoff = 256;

// What the sentinel saw when it ran last.
struct Look {
  uint64_t owner = 0, cpu_time = 0;
  uint64_t at = 0;     // CLOCK_MONOTONIC, nanoseconds
  uint32_t alike = 0;  // looks in a row that found the owner so, with nobody else on the CPU in between
};
// Between two looks lies one sched_yield that came back at once.
constexpr uint64_t at_once_ns = 20'000;
constexpr uint32_t alike_enough = 4;

// Nothing tells us exactly, and /proc may not be asked: killed with one of its entries in hand, a SCHED_IDLE kernel thread
// makes all who take the process's entries away spin until it gets the CPU (d_invalidate; seconds). But a kernel thread
// that gives the CPU away comes behind all that are runnable there, the more so one of this class: when several yields in a
// row come back at once and the owner has not used the CPU, it is not runnable (sched_yield(2); fair.c, yield_task_fair).
bool seems_blocked(const Activation* a, OwnerWord w, Look* last) noexcept {
  Look now = {w.bits, cpu_time(a->tid), kernel::now()};
  if (now.owner == last->owner && now.cpu_time == last->cpu_time && now.at - last->at < at_once_ns)
    now.alike = last->alike + 1;
  *last = now;
  return now.alike >= alike_enough;
}

// The owner was only preempted by us.
void leave_alone(KernelState known) noexcept {
  if (known == KernelState::runnable) g_counters.preempted_left.fetch_add(1, relaxed);
  kernel::sys(__NR_sched_yield);
}

// The owner runs a thread, threads wait, and yet we have the CPU. True: the owner was blocked and has lost the processor.
bool look_at_owner(Processor* p, OwnerWord w, Look* last) noexcept {
  Activation* a = activation_at(w.activation());
  if (!a) return false;
  KernelState known = kernel_state(a);
  if (known == KernelState::runnable || (known == KernelState::unknown && !seems_blocked(a, w, last))) {
    leave_alone(known);
    return false;
  }
  if (detach(p, w, Detacher::sentinel)) {
    auto& source =
        known == KernelState::blocked ? g_counters.detached_by_bpf : g_counters.detached_by_sentinel;
    source.fetch_add(1, relaxed);
    return true;
  }
  // It has gone on, perhaps into a call that blocks: that is to be seen at once.
  if (p->owner_word().bits != w.bits) return false;
  // Blocked inside the runtime: nothing to be done before it comes back.
  constexpr __kernel_timespec pause = {0, 200'000};
  kernel::sys(__NR_nanosleep, &pause, nullptr);
  return false;
}

void sentinel_main(void* argument) noexcept {
  auto* p = static_cast<Processor*>(argument);
  begin_helper();
  leave_descriptors();
  pin_self(p->cpu);
  take_sentinel_class();
  Look last;
  for (;;) {
    while (!p->sentinel_armed.load(acquire)) kernel::futex_wait(&p->sentinel_armed, 0);
    OwnerWord w = p->owner_word();
    bool work = p->has_work();
    if (w.state() == Owner::running && work) {
      if (!look_at_owner(p, w, &last)) continue;
    } else if (w.state() == Owner::in_kernel && work &&
               kernel_state(activation_at(w.activation())) == KernelState::runnable) {
      leave_alone(KernelState::runnable);  // its call has not blocked
      continue;
    }
    // fenced: pairs with those who make a thread ready and find us armed; what they did before is seen below.
    p->sentinel_armed.store(0, fenced);
    w = p->owner_word();
    work = p->has_work();
    if (w.state() == Owner::running && work) {
      p->sentinel_armed.store(1, relaxed);
      continue;
    }
    if (w.state() != Owner::in_kernel || !work) {
      uint32_t b = p->sentinel_backoff.load(relaxed);
      if (w.state() == Owner::idle)
        p->sentinel_backoff.store(b ? (b < longest_backoff ? 2 * b : b) : 1, relaxed);
      continue;
    }
    p->sentinel_backoff.store(0, relaxed);
    // Never clones: the child could not leave SCHED_IDLE. The monitor makes activations where the pool is empty, and a
    // standby where it has become so, at its next tick: the next hand-over shall not wait for a clone. Asked for before:
    // whom we wake has the CPU at once, and we only when it blocks.
    if (!p->pool) want_activation(p);
    if (wake_standby(p))
      g_counters.sentinel_wakes.fetch_add(1, relaxed);
    else
      poke_monitor_to_create(p);
  }
}

}  // namespace

void arm_sentinel(Processor* p) noexcept {
  if (!g_runtime.sentinel || p->bound) return;
  // A bound thread's would inherit from it: somebody else will start it.
  if (const Activation* me = self(); !p->sentinel_started.load(relaxed) && me->outside && !me->is_monitor)
    return;
  if (!p->sentinel_started.load(relaxed) && !p->sentinel_started.exchange(1, relaxed)) {
    if (start_helper(sentinel_main, p, 32 * 1024, &p->sentinel_tid) < 0)
      p->sentinel_started.store(0, relaxed);
  }
  if (!p->sentinel_armed.load(relaxed) && !p->sentinel_armed.exchange(1, acq_rel))
    kernel::futex_wake(&p->sentinel_armed, 1);
}

namespace {

// Each sentinel there is, by its id.
template <typename F>
void each_sentinel(F f) noexcept {
  if (!g_runtime.started) return;  // fork's child: these are its parent's
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    const Processor& p = g_runtime.processor[i];
    if (p.sentinel_started.load(relaxed) && p.sentinel_tid) f(p.sentinel_tid, p.cpu);
  }
}

}  // namespace

void raise_sentinels() noexcept {
  each_sentinel([](int32_t tid, uint32_t) {
    // Refused to programs that may not raise a nice value. Then any CPU that has nothing better to do is good.
    sched_param param = {0};
    if (kernel::sys(__NR_sched_setscheduler, tid, SCHED_OTHER, &param))
      kernel::sys(__NR_sched_setaffinity, tid, sizeof g_runtime.affinity,
                  static_cast<void*>(g_runtime.affinity));
  });
}

namespace {

void lower(int32_t tid, uint32_t cpu) noexcept {
  sched_param param = {0};
  kernel::sys(__NR_sched_setscheduler, tid, SCHED_IDLE, &param);
  uint64_t mask[16] = {};
  mask[cpu / 64 % 16] = 1ul << (cpu % 64);
  kernel::sys(__NR_sched_setaffinity, tid, sizeof mask, static_cast<void*>(mask));
}

}  // namespace

void lower_sentinels() noexcept { each_sentinel(lower); }

void lower_own_sentinel(int32_t tid) noexcept {
  each_sentinel([tid](int32_t one, uint32_t cpu) {
    if (one == tid) lower(one, cpu);
  });
}

}  // namespace upcall::activation

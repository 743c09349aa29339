// The monitor: one kernel thread, asleep in sigtimedwait unless something is due. It
//   - takes the process's asynchronous signals, which every activation blocks, and hands them to src/linux;
//   - expires timers of processors whose owner computes or sits in the kernel;
//   - watches time slices, while some processor has threads waiting, and ends those that are over;
//   - hands over processors whose owner has been in the kernel for a whole tick (the sentinel is starved when
//     other programs keep the CPU busy).
#include <sched.h>
#include <signal.h>

#include "activation/activation.h"
#include "activation/event_source.h"
#include "activation/signal_frame.h"
#include "activation/switch_events.h"
#include "activation/task_state.h"
#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "kernel/futex.h"
#include "kernel/memory.h"

namespace upcall::activation {

atomic<uint64_t> g_monitor_deadline{sched::never};
atomic<uint32_t> g_monitor_ticking{0};
void (*g_process_signal)(int, void*) = nullptr;
atomic<uint64_t> g_monitor_signals{0};

namespace {

// Half a time slice, at most this: a processor whose owner is in the kernel, and whose sentinel starves beside other
// programs, waits for one to two ticks.
constexpr uint64_t longest_tick_ns = 1'000'000;
// Returns from unseen blocking are noticed within the first; the second bounds the monitor's share of a CPU.
constexpr uint64_t lost_poll_ns = 900'000, lost_look_ns = 20'000;
constexpr uint64_t probe_ns = 100'000;
constexpr uint64_t killed_poll_ns = 50'000'000;  // bound threads that their own filters have killed
constexpr int quiet_ticks_before_sleep = 100;
uint32_t g_ticks_of_slice = 1;  // looks at the same thread after which its time slice is over
uint32_t g_ticks_of_stall = 1;  // those without CPU time after which it counts as blocked: a slice, or 10 ms

// Signals from handlers of ours, one of each kind, as they would be pending.
enum : uint32_t { slot_free, slot_filling, slot_full };
struct Handed {
  atomic<uint32_t> state{slot_free};
  unsigned char info[128] = {};
};
constinit Handed g_handed[65];
atomic<uint32_t> g_any_handed{0};

void take_handed() noexcept {
  if (!g_any_handed.exchange(0, acquire)) return;  // pairs with hand_to_monitor
  for (int s = 1; s <= 64; ++s) {
    if (g_handed[s].state.load(acquire) != slot_full) continue;  // pairs with hand_to_monitor
    alignas(8) unsigned char info[128];
    __builtin_memcpy(info, g_handed[s].info, sizeof info);
    g_handed[s].state.store(slot_free, release);  // pairs with hand_to_monitor's compare-and-swap
    g_process_signal(s, info);
  }
}

Activation* g_monitor = nullptr;
atomic<uint32_t> g_poked{0};
atomic<uint32_t> g_rounds{0};  // how often it has looked at everything

}  // namespace

// Who posts a signal may miss the moment at which the thread starts to run; here it is seen for as long as it is not done.
bool owes_attention(OwnerWord w) noexcept {
  if (w.state() != Owner::running) return false;
  Activation* a = activation_at(w.activation());
  // A racy look: descriptors are never unmapped, and a wrong answer costs one signal to ourselves.
  Thread* t = a ? __atomic_load_n(&a->current, __ATOMIC_RELAXED) : nullptr;
  return t && t->attention.load(relaxed);
}

namespace {

void take_from_blocked(Processor* p, OwnerWord w, KernelState known) noexcept {
  if (!detach(p, w, Detacher::monitor)) return;
  auto& source = known == KernelState::blocked ? g_counters.detached_by_bpf : g_counters.detached_by_monitor;
  source.fetch_add(1, relaxed);
  if (wake_successor(p, true)) g_counters.monitor_wakes.fetch_add(1, relaxed);
}

// The owner has used no CPU time for some ticks. Beside other programs one that computes may not run for that long: the
// kernel is asked; should it not say, the sentinel knows better, if any.
bool is_blocked(Activation* owner, KernelState known, uint32_t still_ticks) noexcept {
  if (known != KernelState::unknown) return known == KernelState::blocked;
  TaskState s = ask_task_state(owner->tid);
  if (s != TaskState::unknown) return s == TaskState::blocked;
  return still_ticks >= (g_runtime.sentinel ? g_ticks_of_stall : 2u);
}

// True: the processor has threads that wait for it, or one with a signal to handle.
bool tick(Processor* p, uint64_t now) noexcept {
  OwnerWord w = p->owner_word();
  bool work = p->has_work();
  bool signal = owes_attention(w);
  uint64_t d = p->dispatches.load(relaxed);
  bool same = w.bits == p->seen_owner && d == p->seen_dispatches.load(relaxed);
  p->seen_owner = w.bits;
  p->seen_dispatches.store(d, relaxed);
  p->same_ticks = same ? p->same_ticks + 1 : 0;
  weigh(p, w);
  if (!work && !signal) return false;
  if (w.state() == Owner::running) {
    Activation* owner = activation_at(w.activation());
    uint64_t used = owner ? cpu_time(owner->tid) : 0;
    p->still_ticks = same && used == p->seen_cpu_time ? p->still_ticks + 1 : 0;
    p->seen_cpu_time = used;
    // The clock's word as well: a wake-up may have gone unseen (switch_events.h).
    KernelState known = kernel_state(owner);
    if (work && p->still_ticks && is_blocked(owner, known, p->still_ticks)) {
      p->still_ticks = 0;
      take_from_blocked(p, w, known);
      return true;
    }
    if (work && !p->sentinel_armed.load(relaxed)) arm_sentinel(p);
    // Who has not used the CPU may be blocked where a signal would end the call with EINTR: the next looks tell.
    if (signal ? same : g_runtime.quantum && p->same_ticks >= g_ticks_of_slice && !p->still_ticks) {
      if (Activation* a = activation_at(w.activation())) preempt_activation(a);
    }
    // Threads wait here while another processor sleeps: the hints of scheduler.cc have missed it.
    if (same && g_runtime.processors > 1 && g_runtime.sleeping.load(relaxed) &&
        !g_runtime.spinning.load(relaxed)) {
      for (uint32_t i = 1; i < g_runtime.processors; ++i) {
        Processor* other = &g_runtime.processor[(p->index + i) % g_runtime.processors];
        if (other->owner_word().state() == Owner::running) continue;
        kick(other);
        break;
      }
    }
  } else if (w.state() == Owner::in_kernel && same) {
    // A call that keeps the CPU busy instead of blocking has a time slice like any thread.
    if (kernel_state(activation_at(w.activation())) == KernelState::runnable &&
        p->same_ticks < g_ticks_of_slice)
      g_counters.preempted_left.fetch_add(1, relaxed);
    else if (wake_successor(p, true))
      g_counters.monitor_wakes.fetch_add(1, relaxed);
  } else if (w.state() == Owner::idle || w.state() == Owner::vacant) {
    kick(p);
  }
  return true;
}

// Processors that all compute, some with many threads waiting and some with few: moves half of what waits at the
// busiest. Idle processors help themselves.
void balance() noexcept {
  Processor *busiest = nullptr, *laziest = nullptr;
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    Processor* p = &g_runtime.processor[i];
    if (p->owner_word().state() != Owner::running) continue;
    if (!busiest || p->ready.count() > busiest->ready.count()) busiest = p;
    if (!laziest || p->ready.count() < laziest->ready.count()) laziest = p;
  }
  if (!busiest || busiest == laziest || laziest->inbox.load(relaxed)) return;
  if (busiest->ready.count() < 2 * laziest->ready.count() + 2) return;
  uint32_t n;
  Thread* next;
  for (Thread* t = busiest->ready.steal_half(&n); t; t = next) {
    next = t->next;
    ready_remote(laziest, t);
  }
}

// Threads of a processor have become ready while its owner runs one. Should that be blocked in a page fault, a signal would
// only make it fault again: first it is seen whether it uses its CPU.
void stop_for_woken(Processor* p, uint64_t now) noexcept {
  OwnerWord w = p->owner_word();
  Activation* a = w.state() == Owner::running ? activation_at(w.activation()) : nullptr;
  if (!a || !p->has_work() || p->probe.due != sched::never) return;
  if (kernel_state(a) == KernelState::runnable)
    preempt_activation(a);
  else
    p->probe = {now + probe_ns, w.bits, p->dispatches.load(relaxed), cpu_time(a->tid)};
}

void expire_all(uint64_t now) noexcept {
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    Processor* p = &g_runtime.processor[i];
    if (p->timers.next() > now) continue;
    expire_timers(p, now);
    stop_for_woken(p, now);
  }
}

// Threads wait for events, and all processors may compute: then nobody else looks. True: it is to look again.
bool mind_events(uint64_t now) noexcept {
  if (!events_wanted()) return false;
  if (hooks_wanted() && g_run_hooks(g_monitor))
    for (uint32_t i = 0; i < g_runtime.processors; ++i) stop_for_woken(&g_runtime.processor[i], now);
  if (!events_awaited()) return true;
  if (Processor* p = takes_lone_request(); p && !has_outpost()) send_outpost(p);
  if (events_watched()) return hooks_wanted();
  Processor* computing = nullptr;
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    Processor* p = &g_runtime.processor[i];
    Owner state = p->owner_word().state();
    if (state == Owner::idle) {
      kick(p);  // it will watch
      return true;
    }
    if (state == Owner::running && wants_outpost(p)) computing = p;
  }
  if (computing && !has_outpost()) send_outpost(computing);
  if (look_for_events(g_monitor)) {
    for (uint32_t i = 0; i < g_runtime.processors; ++i) stop_for_woken(&g_runtime.processor[i], now);
    return true;
  }
  return !has_outpost();
}

void finish_probes(uint64_t now) noexcept {
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    Processor* p = &g_runtime.processor[i];
    if (p->probe.due > now) continue;
    p->probe.due = sched::never;
    OwnerWord w = p->owner_word();
    // It has been in the scheduler since, and has seen what is ready.
    if (w.bits != p->probe.owner || p->dispatches.load(relaxed) != p->probe.dispatches) continue;
    Activation* a = activation_at(w.activation());
    if (cpu_time(a->tid) == p->probe.cpu_time)
      take_from_blocked(p, w, kernel_state(a));
    else
      preempt_activation(a);
  }
}

uint64_t next_deadline(uint64_t next_tick, bool one_more) noexcept {
  uint64_t now = lost_count() ? kernel::now() : 0;
  uint64_t d = now ? now + lost_poll_ns + lost_count() * lost_look_ns : sched::never;
  if ((one_more || g_monitor_ticking.load(relaxed)) && next_tick < d) d = next_tick;
  if (g_filtered.load(fenced)) {  // pairs with note_filter
    if (!now) now = kernel::now();
    if (now + killed_poll_ns < d) d = now + killed_poll_ns;
  }
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    Processor* p = &g_runtime.processor[i];
    if (p->probe.due < d) d = p->probe.due;
    if (p->owner_word().state() == Owner::idle) continue;  // sleeps with its own deadline
    uint64_t t = p->timers.next();
    if (t < d) d = t;
  }
  return d;
}

void create_where_asked() noexcept {
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    Processor* p = &g_runtime.processor[i];
    if (!p->wants_activation.exchange(0, acq_rel)) continue;
    Owner state = p->owner_word().state();
    if (p->has_work() && (state == Owner::in_kernel || state == Owner::vacant))
      wake_successor(p, true);
    else if (!p->pool && !p->standby.load(relaxed))
      make_standby(p);
  }
}

// What the monitor has taken. The kernel writes it before the call returns, and so before the monitor may lose its CPU
// there; the number, which comes first, is 0 again when the signal has been posted.
alignas(8) unsigned char g_taken[128];

uint32_t* number_taken() noexcept { return reinterpret_cast<uint32_t*>(g_taken); }

// False: none has come within the time.
bool take_signal(uint64_t set, const __kernel_timespec* time) noexcept {
  long r = kernel::sys(__NR_rt_sigtimedwait, &set, static_cast<void*>(g_taken), time, 8);
  if (r <= 0) return false;
  constexpr int si_timer = -2;
  int code;
  __builtin_memcpy(&code, g_taken + 8, sizeof code);
  // The reserved signal from the kernel (a timer, a file): one of the program's that is for a single thread.
  if (r != preempt_signal || code == si_timer || code > 0) g_process_signal(static_cast<int>(r), g_taken);
  __atomic_store_n(number_taken(), 0, __ATOMIC_RELEASE);  // pairs with signal_in_hand: it is in its queue
  return true;
}

void wait_for_signal(uint64_t deadline) noexcept {
  uint64_t now = kernel::now();
  uint64_t left = deadline == sched::never ? 0 : deadline > now ? deadline - now : 0;
  __kernel_timespec ts = {static_cast<long long>(left / 1000000000u),
                          static_cast<long long>(left % 1000000000u)};
  take_signal(g_monitor_signals.load(relaxed) | bit(preempt_signal),
              deadline == sched::never ? nullptr : &ts);
}

atomic<uint32_t> g_asked{0}, g_answered{0};

// Not the reserved signal: a poke that comes now is to end the next wait.
void answer_askers() noexcept {
  uint32_t asked = g_asked.load(acquire);  // pairs with ask_monitor
  if (asked == g_answered.load(relaxed)) return;
  constexpr int most = 4096;  // somebody may send without end
  constexpr __kernel_timespec zero = {0, 0};
  for (int i = 0; i < most && take_signal(g_monitor_signals.load(relaxed), &zero); ++i) {
  }
  g_answered.store(asked, release);  // pairs with ask_monitor
}

void monitor_main(void* argument) noexcept {
  arch::write_gs(reinterpret_cast<uint64_t>(argument));
  follow_at_first(g_monitor);
  uint64_t blocked = ~(fault_signals | bit(credentials_signal));
  kernel::sys(__NR_rt_sigprocmask, 2, &blocked, nullptr, 8);
  take_monitor_class();
  uint64_t tick_ns = longest_tick_ns;
  if (g_runtime.quantum && g_runtime.quantum / 2 < tick_ns) tick_ns = g_runtime.quantum / 2;
  g_ticks_of_slice = g_runtime.quantum ? static_cast<uint32_t>(g_runtime.quantum / tick_ns) - 1 : 5;
  auto ticks_of_10ms = static_cast<uint32_t>(10'000'000 / tick_ns);
  g_ticks_of_stall = ticks_of_10ms > g_ticks_of_slice + 1 ? ticks_of_10ms - 1 : g_ticks_of_slice;
  uint64_t next_tick = kernel::now() + tick_ns;
  int quiet = 0;
  bool one_more =
      false;  // the last look after the ticks have ended: what began beside their end is seen by it
  for (;;) {
    uint64_t deadline = next_deadline(next_tick, one_more);
    g_monitor_deadline.store(deadline,
                             fenced);  // pairs with poke_monitor's readers: stored before we look again
    uint64_t again = next_deadline(next_tick, one_more);
    if (again < deadline) g_monitor_deadline.store(again, relaxed);
    wait_for_signal(again < deadline ? again : deadline);
    g_poked.store(0, fenced);  // pairs with poke_monitor: what was asked for before is looked at below
    take_handed();
    answer_askers();
    create_where_asked();
    if (lost_count()) poll_lost();
    uint64_t now = kernel::now();
    finish_probes(now);
    expire_all(now);
    bool bound_waiting = first_bound_processor() && watch_bound();
    g_rounds.fetch_add(1, release);  // pairs with wait_for_monitor
    bool ticking = one_more || g_monitor_ticking.load(relaxed);
    if (!ticking || now < next_tick) {
      if (!ticking) next_tick = now + tick_ns;
      if (next_tick > now + tick_ns) next_tick = now + tick_ns;
      continue;
    }
    watch_switch_events(g_monitor);
    bool waiting = bound_waiting | mind_events(now);
    for (uint32_t i = 0; i < g_runtime.processors; ++i) waiting |= tick(&g_runtime.processor[i], now);
    if (waiting && g_runtime.processors > 1) balance();
    next_tick = now + tick_ns;
    quiet = waiting ? 0 : quiet + 1;
    if (waiting) {
      g_monitor_ticking.store(1, relaxed);
      one_more = false;
    } else if (quiet >= quiet_ticks_before_sleep) {
      // One step: a poke between a load and a store of 0 would be lost. fenced: pairs with poke_monitor
      one_more = g_monitor_ticking.exchange(0, fenced) != 0;
      if (!one_more) quiet = 0;
    }
  }
}

}  // namespace

void allowed_cpus(uint64_t (&mask)[16]) noexcept {
  __builtin_memcpy(mask, g_runtime.affinity, sizeof mask);
  if (!g_runtime.started) return;
  uint64_t now[16] = {};
  if (!kernel::is_error(
          kernel::sys(__NR_sched_getaffinity, g_monitor->tid, sizeof now, static_cast<void*>(now))))
    __builtin_memcpy(mask, now, sizeof mask);
}

bool start_monitor() noexcept {
  if (!g_monitor) {
    g_monitor = static_cast<Activation*>(kernel::map_pages(4096));
    if (!g_monitor) return false;
    g_monitor->self = g_monitor;
    g_monitor->is_monitor = g_monitor->outside = true;
    g_monitor->in_runtime.store(1, relaxed);
  }
  for (auto& slot : g_handed) slot.state.store(slot_free, relaxed);
  g_any_handed.store(0, relaxed);
  *number_taken() = 0;
  g_asked.store(0, relaxed);
  g_answered.store(0, relaxed);
  forget_task_state();
  g_poked.store(0, relaxed);
  g_monitor_ticking.store(0, relaxed);
  g_monitor_deadline.store(sched::never, relaxed);
  g_monitor->switches.store(nullptr, relaxed);
  return start_helper(monitor_main, g_monitor, 64 * 1024, &g_monitor->tid, &g_monitor->kernel) > 0;
}

int32_t monitor_tid() noexcept { return g_monitor->tid; }

void poke_monitor() noexcept {
  if (!g_monitor_ticking.load(relaxed))
    g_monitor_ticking.store(1, fenced);  // pairs with monitor_main's quiet end
  renew_monitor();
}

void wait_for_monitor() noexcept {
  uint32_t round = g_rounds.load(acquire);
  renew_monitor();
  for (uint32_t i = 200; g_rounds.load(acquire) == round; ++i) wait_step(i);  // pairs with monitor_main
}

// pairs with take_signal
uint32_t signal_in_hand() noexcept { return __atomic_load_n(number_taken(), __ATOMIC_ACQUIRE); }

void ask_monitor() noexcept {
  uint32_t ask = g_asked.fetch_add(1, fenced) + 1;  // pairs with answer_askers; before the poke
  renew_monitor();
  for (uint32_t i = 200; static_cast<int32_t>(g_answered.load(acquire) - ask) < 0; ++i) wait_step(i);
}

void renew_monitor() noexcept {
  // Always the exchange: a load could find an earlier poke, of which the monitor already looks at what it finds, while what
  // the caller has just stored is not visible yet.
  if (g_poked.exchange(1, fenced)) return;
  if (kernel::is_error(kernel::sys(__NR_tgkill, g_runtime.pid, g_monitor->tid, preempt_signal)))
    g_poked.store(0, relaxed);  // see send_signal
}

void hand_to_monitor(int signal, const void* siginfo) noexcept {
  auto& slot = g_handed[signal];
  uint32_t state = slot_free;
  if (!slot.state.compare_exchange_strong(state, slot_filling, acq_rel, relaxed)) return;
  __builtin_memcpy(slot.info, siginfo, sizeof slot.info);
  slot.state.store(slot_full, release);  // pairs with take_handed
  g_any_handed.store(1, release);        // same
  poke_monitor();
}

void want_activation(Processor* p) noexcept {
  p->wants_activation.store(
      1, fenced);  // pairs with create_where_asked; with the end of the ticks, as in detach.cc
  if (!g_monitor_ticking.load(fenced)) poke_monitor();
}

void poke_monitor_to_create(Processor* p) noexcept {
  p->wants_activation.store(1, release);  // pairs with create_where_asked
  poke_monitor();
}

}  // namespace upcall::activation

// Who looks for events when. Idle processors wait for them, one at a time (the watcher); processors that switch look every
// few tens of microseconds; where a thread computes for long, the monitor looks at its ticks and sends an outpost. Idle
// processor and outpost may both be in the kernel's wait: it wakes the one that came last (fs/eventpoll.c), and the outpost
// waits for long.
#include "activation/event_source.h"

#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "kernel/futex.h"

namespace upcall::activation {

atomic<const EventSource*> g_event_source{nullptr};
atomic<uint32_t> g_event_waits{0};
atomic<uint64_t> g_event_releases{0};
atomic<uint32_t> g_hooked{0};
uint32_t (*g_run_hooks)(Activation*) = nullptr;

namespace {

// Between two looks of a processor that has threads to run: some 200 us, so that a look brings many events.
constexpr uint64_t cycles_between_looks = 500'000;
// The index, plus one, of the activation that waits for events. 0: none.
atomic<uint32_t> g_watcher{0};
// Same, of the outpost.
atomic<uint32_t> g_outpost{0};
// A processor one of whose threads would wait alone, were there an outpost.
atomic<Processor*> g_lone_request{nullptr};
// TSC of the last event that an outpost has told a waiting thread of.
atomic<uint64_t> g_outpost_of_use{0};
// Processors that have switched more often than so since the last event look themselves: an outpost is of no use.
constexpr uint64_t switches_between_events = 8;
// So many events in a row for which nobody waited: who finds its data at the first try leaves one behind.
constexpr uint32_t most_in_vain = 8;

// What the processors have done, as far as an outpost has to know.
struct Activity {
  uint64_t switches = 0, sleeps = 0;
  static Activity now() noexcept {
    Activity all;
    for (uint32_t i = 0; i < g_runtime.processors; ++i) {
      all.switches += g_runtime.processor[i].dispatches.load(relaxed);
      all.sleeps += g_runtime.processor[i].counters.event_sleeps;
    }
    return all;
  }
};

void watch(Activation* a, uint64_t deadline, Found* found) noexcept {
  a->interrupt.store(0, relaxed);
  // fenced: pairs with wake_sleeper, which sets `wake` and then looks here.
  a->watches.store(1, fenced);
  if (!a->wake.load(fenced)) g_event_source.load(acquire)->wait(a, found, deadline);
  a->watches.store(0, relaxed);
}

}  // namespace

bool events_watched() noexcept { return g_watcher.load(relaxed) != 0; }

void deliver_events(Activation* a, const Found& found) noexcept {
  if (found.count) g_event_source.load(acquire)->deliver(a, found);
}

void deliver_as_guest(Activation* a, const Found& found) noexcept {
  if (!found.count) return;
  a->outside = true;  // what it makes ready goes through inboxes, locks are taken as by the monitor
  deliver_events(a, found);
  a->outside = false;
  for (uint32_t i = 0; i < g_runtime.processors; ++i)
    if (g_runtime.processor[i].inbox.load(relaxed)) preempt_for_woken(&g_runtime.processor[i]);
}

uint32_t look_for_events(Activation* a) noexcept {
  uint32_t hooked = hooks_wanted() ? g_run_hooks(a) : 0;
  if (!events_awaited()) return hooked;
  const EventSource* source =
      g_event_source.load(acquire);  // pairs with the store when the first thread waits
  if (!source) return hooked;
  Found found;
  source->look(&found);
  if (!a->is_monitor) ++a->processor->counters.event_looks;
  deliver_events(a, found);
  return found.count + hooked;
}

void look_in_turn(Activation* a) noexcept {
  uint64_t now = arch::tsc();
  if (now - a->processor->last_event_look < cycles_between_looks) return;
  a->processor->last_event_look = now;
  a->processor->looked_at = kernel::now();
  look_for_events(a);
}

void sleep_or_watch(Activation* a, uint64_t deadline, Found* found) noexcept {
  uint32_t nobody = 0;
  // acq_rel: pairs with the store below; what the last watcher has found it delivers itself.
  if (!events_awaited() || !g_watcher.compare_exchange_strong(nobody, a->index + 1, acq_rel, relaxed)) {
    kernel::futex_wait(&a->wake, 0, deadline);
    return;
  }
  ++a->processor->counters.event_sleeps;
  watch(a, deadline, found);
  g_watcher.store(0, release);  // pairs with the next watcher's exchange
}

bool may_wait_alone(const Processor* p, const void* what) noexcept {
  if (p->lone_wait != what || p->lone_waits < lone_after || p->has_work() || hooks_wanted()) return false;
  return !events_awaited() || events_watched() || has_outpost();
}

void note_wait(Processor* p, const void* what) noexcept {
  bool again = p->lone_wait == what;
  p->lone_wait = what;
  p->lone_waits = p->has_work() ? 0 : again ? p->lone_waits + 1 : 1;
  if (p->lone_waits < lone_after || p->lone_waits % lone_after || !events_awaited() || has_outpost()) return;
  g_lone_request.store(p, relaxed);
  poke_monitor();
}

Processor* takes_lone_request() noexcept {
  return g_lone_request.load(relaxed) ? g_lone_request.exchange(nullptr, relaxed) : nullptr;
}

bool wants_outpost(const Processor* p) noexcept {
  // Some 10 ms.
  constexpr uint64_t lately = 25'000'000;
  return p->same_ticks || arch::tsc() - g_outpost_of_use.load(relaxed) < lately;
}

bool has_outpost() noexcept { return g_outpost.load(relaxed) != 0; }

void watch_as_outpost(Activation* a) noexcept {
  uint32_t nobody = 0;
  if (g_outpost.compare_exchange_strong(nobody, a->index + 1, acq_rel, relaxed)) {
    take_monitor_class();  // when an event comes it has the CPU at once
    Activity last = Activity::now();
    uint32_t in_vain = 0;
    // Also while nobody waits: whoever has just been told of an event is about to wait for the next one.
    while (!a->wake.load(relaxed)) {
      Found found;
      watch(a, sched::never, &found);
      if (!found.count) continue;
      g_counters.outpost_events.fetch_add(found.count, relaxed);
      uint64_t released = g_event_releases.load(relaxed);
      deliver_as_guest(a, found);
      Activity now = Activity::now();
      // Of use while somebody computes: nobody else has looked, and somebody has waited.
      in_vain = g_event_releases.load(relaxed) == released ? in_vain + 1 : 0;
      bool of_use = now.switches - last.switches <= switches_between_events && now.sleeps == last.sleeps &&
                    in_vain <= most_in_vain;
      g_outpost_of_use.store(of_use ? arch::tsc() : 0, relaxed);
      if (!of_use) break;
      last = now;
    }
    take_activation_class();
    g_outpost.store(0, release);  // pairs with the next one's exchange
    pass_watch_on();
  }
  a->outpost.store(0, relaxed);
}

void pass_watch_on() noexcept {
  if (events_awaited() && !events_watched() && !has_outpost()) poke_monitor();  // mind_events
}

void wake_sleeper(Activation* a) noexcept {
  // fenced: pairs with sleep_or_watch, and with park_wait's exchange.
  a->wake.store(1, fenced);
  if (a->watches.load(fenced))
    send_signal(a);  // ends its call, or has it not begun: upcall_blocking_syscall
  else
    kernel::futex_wake(&a->wake, 1);
}

void forget_events() noexcept {
  g_event_waits.store(0, relaxed);
  g_hooked.store(0, relaxed);
  g_watcher.store(0, relaxed);
  g_outpost.store(0, relaxed);
  g_lone_request.store(nullptr, relaxed);
}

}  // namespace upcall::activation

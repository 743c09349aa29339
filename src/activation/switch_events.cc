#include "activation/switch_events.h"

#include <fcntl.h>
#include <linux/close_range.h>

#include "arch/x86_64/cpu.h"
#include "base/log.h"
#include "kernel/bpf/switches.h"
#include "kernel/futex.h"
#include "kernel/memory.h"

namespace upcall::activation {

namespace {

atomic<switch_table*> g_table{nullptr};

enum : uint32_t { not_started, loading, decided };
atomic<uint32_t> g_phase{not_started};  // futex
atomic<uint32_t> g_for_ever{0};         // futex

// An entry as one word: the runtime writes it once, whole.
constexpr uint64_t word_of(int32_t tid, uint32_t state) noexcept {
  return static_cast<uint64_t>(state) << 32 | static_cast<uint32_t>(tid);
}

// No entry to be had, or one is being looked for: reads as unknown.
atomic<uint64_t> g_no_entry{0};

void take_entry(Activation* a, switch_table* table, uint32_t state) noexcept {
  atomic<uint64_t>* none = nullptr;
  if (!a->switches.compare_exchange_strong(none, &g_no_entry, acq_rel, relaxed)) return;
  auto* bucket =
      reinterpret_cast<atomic<uint64_t>*>(table->bucket[static_cast<uint32_t>(a->tid) % SWITCH_BUCKETS]);
  for (int i = 0; i < SWITCH_WAYS; ++i) {
    uint64_t free = 0;
    if (!bucket[i].compare_exchange_strong(free, word_of(a->tid, state), acq_rel, relaxed)) continue;
    a->switches.store(&bucket[i], release);  // pairs with kernel_state
    return;
  }
}

void decide() noexcept {
  g_phase.store(decided, release);  // pairs with start_switch_events
  kernel::futex_wake(&g_phase, 1 << 30);
}

bool load() noexcept {
  // A table of its own, empty: what keeps the programs attached is out of the program's sight and reach.
  switch_table* table = nullptr;
  const char* refused = "a descriptor table of its own";
  long r = kernel::sys(__NR_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
  if (r == 0) r = kernel::sys(__NR_open, "/", O_PATH, 0);  // is 0, which bpf(2) would take for none
  if (r == 0) r = upcall_load_switches(&table, &refused);
  if (r == 0) {
    constexpr int dont_fork = 10;  // madvise
    kernel::sys(__NR_madvise, table, sizeof *table, dont_fork);
    g_counters.bpf_loaded.store(1, relaxed);
    g_table.store(table, release);  // pairs with kernel_state
    return true;
  }
  g_runtime.bpf_refusal = {refused, static_cast<int32_t>(-r)};
  return false;
}

// A kernel thread only to hold the descriptors: it sleeps until the process ends.
void keeper_main(void*) noexcept {
  begin_helper();
  bool loaded = load();
  decide();
  while (loaded) kernel::futex_wait(&g_for_ever, 0);
  g_counters.kernel_threads_live.fetch_sub(1, relaxed);
  kernel::sys(__NR_exit, 0);
}

void start_keeper() noexcept {
  int tid;
  if (start_helper(keeper_main, nullptr, 32 * 1024, &tid) < 0) decide();
}

}  // namespace

KernelState kernel_state(Activation* a) noexcept {
  switch_table* table = g_table.load(acquire);  // pairs with load
  if (!table || !a) return KernelState::unknown;
  atomic<uint64_t>* entry = a->switches.load(acquire);  // pairs with take_entry
  if (!entry) {
    if (a->tid) take_entry(a, table, 0);  // made before the programs were there: known from its next event on
    return KernelState::unknown;
  }
  auto state = static_cast<uint32_t>(entry->load(relaxed) >> 32);  // a hint; the owner word decides
  return !state                   ? KernelState::unknown
         : state & SWITCH_BLOCKED ? KernelState::blocked
                                  : KernelState::runnable;
}

void note_own_switches(Activation* a) noexcept {
  if (switch_table* table = g_table.load(acquire)) take_entry(a, table, SWITCH_EVENT);
}

void forget_own_switches(Activation* a) noexcept {
  atomic<uint64_t>* entry = a->switches.exchange(nullptr, relaxed);
  if (entry && entry != &g_no_entry)
    entry->store(0, relaxed);  // free; a wake-up noted meanwhile would cost one entry
}

void start_switch_events() noexcept {
  g_phase.store(loading, relaxed);
  start_keeper();
  while (g_phase.load(acquire) != decided) kernel::futex_wait(&g_phase, loading);  // pairs with decide
}

void watch_switch_events(Activation* monitor) noexcept {
  switch_table* table = g_table.load(acquire);  // pairs with load
  if (!table) return;
  if (!monitor->switches.load(relaxed)) take_entry(monitor, table, SWITCH_EVENT);
  atomic<uint64_t>* entry = monitor->switches.load(relaxed);
  if (entry == &g_no_entry) return;
  // Nearly always it has slept since its last look.
  for (int i = 0; entry->load(relaxed) == monitor->switches_seen; ++i) {
    if (i == 20) {
      g_counters.bpf_lost.fetch_add(1, relaxed);
      g_table.store(nullptr, relaxed);
      return;
    }
    constexpr __kernel_timespec moment = {0, 100'000};
    kernel::sys(__NR_nanosleep, &moment, nullptr);
  }
  monitor->switches_seen = entry->load(relaxed);
}

void forget_switch_events(Activation* survivor) noexcept {
  g_table.store(nullptr, relaxed);
  g_phase.store(not_started, relaxed);
  survivor->switches.store(nullptr, relaxed);
}

}  // namespace upcall::activation

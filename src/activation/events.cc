#include "activation/events.h"

#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"

namespace upcall::activation {

namespace {

constexpr uint32_t event_words = sizeof(Event) / 8;
static_assert(sizeof(Event) % 8 == 0);

struct Slot {
  atomic<uint64_t> sequence;  // of the event in it; 0: none yet
  atomic<uint64_t> word[event_words];
};
constexpr uint64_t being_written = ~0ull;
Slot g_events[ring_events];
atomic<uint64_t> g_last{0};
atomic<uint64_t> g_upcalls[upcall_kinds];
uint64_t g_began_ns = 0, g_began_tsc = 0;

// The time stamp counter's rate: ns in 2^20 cycles, from what has passed since the start. Reading the clock costs several
// times what reading the counter does, so the rate is renewed now and then only.
constexpr uint64_t renew_cycles = 1ull << 27;
atomic<uint64_t> g_rate{0}, g_rate_of{0};

struct Moment {
  uint64_t ns, tsc;
};

// Both clocks at one moment: of a few tries the one least interrupted between them.
Moment this_moment() noexcept {
  Moment best = {};
  uint64_t least = ~0ull;
  for (int i = 0; i < 4; ++i) {
    uint64_t before = arch::tsc(), ns = kernel::now(), took = arch::tsc() - before;
    if (took < least) best = {ns, before + took / 2}, least = took;
  }
  return best;
}

uint64_t rate(uint64_t now) noexcept {
  // relaxed: two words, each good by itself.
  if (uint64_t r = g_rate.load(relaxed); r && now - g_rate_of.load(relaxed) < renew_cycles) return r;
  // 2^40 cycles, some minutes, leave room for the product.
  Moment m = this_moment();
  uint64_t cycles = m.tsc - g_began_tsc, ns = m.ns - g_began_ns;
  while (cycles >> 40) cycles >>= 1, ns >>= 1;
  uint64_t r = cycles ? (ns << 20) / cycles : 0;
  if (cycles >> 20) {  // long enough to be exact
    g_rate.store(r, relaxed);
    g_rate_of.store(now, relaxed);
  }
  return r;
}

uint64_t to_ns(uint64_t cycles, uint64_t now) noexcept {
  if (cycles >> 40) return (cycles >> 20) * rate(now);
  return cycles * rate(now) >> 20;
}

Slot& slot_of(uint64_t sequence) noexcept { return g_events[sequence % ring_events]; }

}  // namespace

bool g_measuring = true;

Event new_event(Upcall kind, uint32_t processor, uint32_t activation, int32_t thread) noexcept {
  if (!g_measuring) return {0, 0, processor, activation, thread, kind};
  // relaxed: one word; who has seen an earlier event's step on the owner word gets a later number.
  return {g_last.fetch_add(1, relaxed) + 1, arch::tsc(), processor, activation, thread, kind};
}

void deliver(const Event& e) noexcept {
  if (!g_measuring) return;
  g_upcalls[static_cast<uint32_t>(e.kind)].fetch_add(1, relaxed);
  if (!e.sequence) return;
  Slot& slot = slot_of(e.sequence);
  uint64_t before = slot.sequence.load(relaxed);
  // Late by a whole ring: the newer one stays.
  if (before == being_written || before > e.sequence) return;
  // acquire: our writes come after those of the event before; pairs with the store below.
  if (!slot.sequence.compare_exchange_strong(before, being_written, acquire, relaxed)) return;
  uint64_t word[event_words];
  __builtin_memcpy(word, &e, sizeof e);
  // release: who reads one of them sees being_written at its second look; pairs with read_event.
  for (uint32_t i = 0; i < event_words; ++i) slot.word[i].store(word[i], release);
  slot.sequence.store(e.sequence, release);  // pairs with read_event
}

uint64_t upcalls(Upcall kind) noexcept { return g_upcalls[static_cast<uint32_t>(kind)].load(relaxed); }
uint64_t last_event() noexcept { return g_last.load(relaxed); }
uint64_t events_began() noexcept { return g_began_ns; }

bool read_event(uint64_t sequence, Event* out) noexcept {
  Slot& slot = slot_of(sequence);
  if (slot.sequence.load(acquire) != sequence) return false;  // pairs with deliver
  uint64_t word[event_words];
  for (uint32_t i = 0; i < event_words; ++i) word[i] = slot.word[i].load(acquire);  // same
  __builtin_memcpy(out, word, sizeof *out);
  uint64_t since = out->time > g_began_tsc ? out->time - g_began_tsc : 0;
  out->time = g_began_ns + to_ns(since, arch::tsc());
  return slot.sequence.load(relaxed) == sequence;
}

void reset_events() noexcept {
  uint64_t last = g_last.load(relaxed);
  for (uint64_t i = 0; i < last && i < ring_events; ++i) slot_of(last - i).sequence.store(0, relaxed);
  g_last.store(0, relaxed);
  for (auto& n : g_upcalls) n.store(0, relaxed);
  Moment m = this_moment();
  g_began_ns = m.ns;
  g_began_tsc = m.tsc;
  g_rate.store(0, relaxed);
}

uint64_t ns_since(uint64_t tsc) noexcept {
  uint64_t now = arch::tsc();
  return now <= tsc ? 0 : to_ns(now - tsc, now);
}

}  // namespace upcall::activation

// Pipes between threads of this process. A reader that finds its pipe empty each time, and waits for a thread that is ready,
// wastes a call: it waits without a try (`untried`), and who writes to the pipe makes it ready. After a while the pipe is not
// watched by the event source either, which costs every write and read something. What makes that safe are looks: where events
// are looked for, and where a processor has nothing to run, readers whose pipe nobody has written to since the last look try.
#include "activation/event_source.h"
#include "arch/x86_64/cpu.h"
#include "linux/descriptors.h"

namespace upcall::linux_abi {

namespace {

// First tries in vain, in a row, after which a reader does not try first; of waits without a try, after which the pipe is not
// watched.
constexpr uint8_t most_vain = 3, unwatched_after = most_vain + 64;

// For so long, some 200 us, nobody has written.
constexpr uint64_t cycles_untried = 500'000;

// Pipes whose readers may wait so.
constexpr uint32_t places = 32;
atomic<Descriptor*> g_place[places];

bool take_place(Descriptor* d) noexcept {
  for (auto& place : g_place)
    if (place.load(relaxed) == d) return true;  // two have found it empty at once
  for (auto& place : g_place) {
    Descriptor* nobody = nullptr;
    if (!place.compare_exchange_strong(nobody, d, acq_rel, relaxed)) continue;  // pairs with try_untried
    activation::g_untried.fetch_add(1, relaxed);
    return true;
  }
  return false;
}

void give_place(Descriptor* d) noexcept {
  for (auto& place : g_place)
    if (Descriptor* mine = d; place.compare_exchange_strong(mine, nullptr, relaxed, relaxed))
      activation::g_untried.fetch_sub(1, relaxed);
}

void count_vain_try(Descriptor* d) noexcept {
  uint8_t vain = d->vain_tries.load(relaxed);
  if (vain + 1 < most_vain) {
    d->vain_tries.store(vain + 1, relaxed);
  } else if (vain + 1 == most_vain) {
    // One step: who forgets it finds either nothing or the place.
    if (take_place(d) && !d->vain_tries.compare_exchange_strong(vain, most_vain, relaxed, relaxed))
      give_place(d);
  }
}

// `all`: the caller has nothing else to do.
uint32_t try_untried(Activation* a, bool all) noexcept {
  uint32_t n = 0;
  for (auto& place : g_place) {
    Descriptor* d = place.load(acquire);  // pairs with take_place
    // Not who has tried, and would try again for ever.
    if (!d || !d->has_untried.load(relaxed) || !d->of(Direction::in).has_waiters()) continue;
    uint32_t now = edges(d, Direction::in);
    uint64_t time = arch::tsc();
    bool same = d->looked_at.load(relaxed) == now;
    if (all || (same && time - d->looked_when.load(relaxed) >= cycles_untried)) {
      d->has_untried.store(false, relaxed);
      d->looked_for.store(now + 1, relaxed);
      release_readers(a, d);
      ++n;
    } else if (!same) {
      d->looked_at.store(now, relaxed);
      d->looked_when.store(time, relaxed);
    }
  }
  return n;
}

}  // namespace

bool waits_untried(const Descriptor* d, const Beginning& now) noexcept {
  return !now.again && !now.after_untried && d->vain_tries.load(relaxed) >= most_vain &&
         !d->unread.load(relaxed) && !d->ends.load(relaxed) && !d->nonblocking.load(relaxed) &&
         activation::self()->processor->has_work();
}

bool waits_unwatched(const Descriptor* d) noexcept { return d->vain_tries.load(relaxed) >= unwatched_after; }

void note_untried(Descriptor* d, int fd) noexcept {
  d->has_untried.store(true, relaxed);
  uint8_t vain = d->vain_tries.load(relaxed);
  // One step: not if it has been forgotten meanwhile.
  if (vain < most_vain || vain >= unwatched_after ||
      !d->vain_tries.compare_exchange_strong(vain, vain + 1, relaxed, relaxed))
    return;
  if (vain + 1 == unwatched_after && d->watched.load(relaxed)) stop_watching(d, fd);
}

void learn_from_try(Descriptor* d, const Beginning& now, uint32_t seen, long r) noexcept {
  uint8_t vain = d->vain_tries.load(relaxed);
  if (r == -e_again) {
    if (vain < most_vain && !d->nonblocking.load(relaxed)) count_vain_try(d);
    // It comes to be watched again, for some waits at least.
    if (vain > most_vain) d->vain_tries.compare_exchange_strong(vain, most_vain, relaxed, relaxed);
    return;
  }
  // What is there nobody has told of: another process writes. A first try that finds something shows nothing where there was
  // no other thread to wait for.
  bool found_by_look = now.after_untried && r > 0 && d->looked_for.load(relaxed) == seen;
  bool first = !now.again && !now.after_untried;
  if (vain && (found_by_look || (first && vain < most_vain))) forget_untried(d);
}

void forget_untried(Descriptor* d) noexcept {
  if (d->vain_tries.exchange(0, relaxed) >= most_vain) give_place(d);
}

bool told_by_writer(Descriptor* d, const Beginning& now) noexcept {
  return now.after_untried && d->told_at.load(relaxed) == edges(d, Direction::in);
}

bool reader_waits_unwatched(Descriptor* d) noexcept {
  return waits_unwatched(d) && d->of(Direction::in).has_waiters();
}

void forget_all_untried() noexcept {
  for (auto& place : g_place) place.store(nullptr, relaxed);
  activation::g_untried.store(0, relaxed);
  activation::g_try_untried = try_untried;
}

}  // namespace upcall::linux_abi

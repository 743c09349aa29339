// Pipes between threads of this process. A reader that finds its pipe empty each time, and waits for a thread that is ready,
// wastes a call: it waits without a try (`untried`), and who writes to the pipe makes it ready. After a while the pipe is not
// watched by the event source either, which costs every write and read something. What nobody here has told of (another process
// has written, or more was there) it finds when its time is over: each such wait has a short one.
#include "linux/descriptors.h"

namespace upcall::linux_abi {

namespace {

// First tries in vain, in a row, after which a reader does not try first; of waits without a try, after which the pipe is not
// watched.
constexpr uint8_t most_vain = 3, unwatched_after = most_vain + 64;
// ns
constexpr uint64_t longest_untried = 1'000'000;

}  // namespace

bool waits_untried(const Descriptor* d, const Beginning& now) noexcept {
  return !now.again && !now.after_untried && d->vain_tries.load(relaxed) >= most_vain &&
         !d->unread.load(relaxed) && !d->ends.load(relaxed) && !d->nonblocking.load(relaxed) &&
         activation::self()->processor->has_work();
}

bool waits_unwatched(const Descriptor* d) noexcept { return d->vain_tries.load(relaxed) >= unwatched_after; }

void note_untried(Descriptor* d, int fd) noexcept {
  uint8_t vain = d->vain_tries.load(relaxed);
  if (vain >= unwatched_after) return;
  d->vain_tries.store(vain + 1, relaxed);
  if (vain + 1 == unwatched_after && d->watched.load(relaxed)) stop_watching(d, fd);
}

uint64_t untried_deadline(Descriptor* d, uint32_t seen) noexcept {
  d->waited_untried_at.store(seen + 1, relaxed);
  // A clock that is 200 us behind where processors switch. Where nobody has looked for longer the time is over at once, and the
  // reader tries: no harm.
  return activation::self()->processor->looked_at + longest_untried;
}

void learn_from_try(Descriptor* d, const Beginning& now, uint32_t seen, long r) noexcept {
  uint8_t vain = d->vain_tries.load(relaxed);
  if (r == -e_again) {
    d->unread.store(false, relaxed);
    if (vain < most_vain && !d->nonblocking.load(relaxed)) d->vain_tries.store(vain + 1, relaxed);
    if (vain > most_vain) d->vain_tries.store(most_vain, relaxed);  // to be watched, for some waits at least
    return;
  }
  // There may be more, unless it was empty before, and that is what has been written since.
  uint64_t told = d->told.load(relaxed);
  bool all = now.again && told && told >> 32 == seen && static_cast<uint32_t>(told) == r;
  if (r > 0) {
    d->unread.store(!all, relaxed);
    d->told.store(0, relaxed);  // whoever else has been told of it does not find it any more
  }
  // Its time was over, and it was there. A first try that finds something shows nothing where there was no other thread to
  // wait for.
  bool missed = now.after_untried && r > 0 && d->waited_untried_at.load(relaxed) == seen + 1;
  bool first = !now.again && !now.after_untried;
  if (missed || (first && vain < most_vain)) d->vain_tries.store(0, relaxed);
}

bool told_by_writer(Descriptor* d, const Beginning& now, uint32_t* bytes) noexcept {
  if (!now.after_untried) return false;
  // One of several readers.
  uint64_t told = d->told.load(relaxed);
  *bytes = static_cast<uint32_t>(told);
  return told && told >> 32 == edges(d, Direction::in) &&
         d->told.compare_exchange_strong(told, 0, relaxed, relaxed);
}

bool reader_waits_unwatched(Descriptor* d) noexcept {
  return waits_unwatched(d) && d->of(Direction::in).waiting.head;
}

}  // namespace upcall::linux_abi

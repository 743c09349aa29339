#include "sched/timers.h"

#include "kernel/memory.h"

namespace upcall::sched {

bool Timers::grow() noexcept {
  uint32_t bigger = capacity_ ? capacity_ * 2 : 4096 / sizeof(Entry);
  auto* fresh = static_cast<Entry*>(kernel::map_pages(bigger * sizeof(Entry)));
  if (!fresh) return false;
  for (uint32_t i = 0; i < size_; ++i) fresh[i] = heap_[i];
  if (heap_) kernel::unmap_pages(heap_, capacity_ * sizeof(Entry));
  heap_ = fresh;
  capacity_ = bigger;
  return true;
}

void Timers::sift_up(uint32_t i, const Entry& e) noexcept {
  while (i) {
    uint32_t parent = (i - 1) / 4;
    if (heap_[parent].deadline <= e.deadline) break;
    place(i, heap_[parent]);
    i = parent;
  }
  place(i, e);
}

void Timers::sift_down(uint32_t i, const Entry& e) noexcept {
  for (;;) {
    uint32_t best = i * 4 + 1;
    if (best >= size_) break;
    uint32_t end = best + 4 < size_ ? best + 4 : size_;
    for (uint32_t c = best + 1; c < end; ++c)
      if (heap_[c].deadline < heap_[best].deadline) best = c;
    if (heap_[best].deadline >= e.deadline) break;
    place(i, heap_[best]);
    i = best;
  }
  place(i, e);
}

void Timers::remove_at(uint32_t i) noexcept {
  heap_[i].thread->timer_index.store(no_timer, relaxed);
  Entry last = heap_[--size_];
  if (i < size_) {
    if (i && heap_[(i - 1) / 4].deadline > last.deadline)
      sift_up(i, last);
    else
      sift_down(i, last);
  }
  next_.store(size_ ? heap_[0].deadline : never, relaxed);
}

bool Timers::add(Thread* t, uint64_t deadline, uint64_t wait_word) noexcept {
  LockGuard guard(lock_);
  if (size_ == capacity_ && !grow()) return false;
  sift_up(size_++, Entry{deadline, wait_word, t});
  // fenced: pairs with the monitor, which says when it will look next (g_monitor_deadline) and then looks once more;
  // whoever has armed a timer compares the two before it leaves the processor to a thread or to the kernel.
  if (heap_[0].deadline != next()) next_.store(heap_[0].deadline, fenced);
  return true;
}

void Timers::cancel(Thread* t) noexcept {
  LockGuard guard(lock_);
  uint32_t i = t->timer_index.load(relaxed);
  if (i != no_timer) remove_at(i);
}

Thread* Timers::pop_due(uint64_t now, uint64_t* wait_word) noexcept {
  if (next() > now) return nullptr;
  LockGuard guard(lock_);
  if (!size_ || heap_[0].deadline > now) return nullptr;
  Thread* t = heap_[0].thread;
  *wait_word = heap_[0].wait_word;
  remove_at(0);
  return t;
}

}  // namespace upcall::sched

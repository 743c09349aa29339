// Waits with a deadline: a 4-ary heap per processor behind a lock. Any kernel thread may add, cancel or expire.
// An entry carries the wait word it was armed for; an expiry that comes too late claims nothing.
//
// From the moment a wait word is published anybody may end the wait, and the thread go on elsewhere, end, and have its
// descriptor used for another one. So the time-out is armed before (begin_wait_until), unless a lock that whoever ends
// the wait must take first is held (a futex bucket's). An expiry that comes between the two finds nothing to end; the
// waiter then finds no entry (came_early).
#pragma once

#include <cstdint>

#include "base/spinlock.h"
#include "sched/thread.h"

namespace upcall::sched {

inline constexpr uint64_t never = ~0ull;

class Timers {
 public:
  // False: no memory.
  bool add(Thread* t, uint64_t deadline, uint64_t wait_word) noexcept;
  // Removes the thread's entry if it is still there.
  void cancel(Thread* t) noexcept;
  // Pops one entry that is due: its thread and the word to claim. Null: none.
  Thread* pop_due(uint64_t now, uint64_t* wait_word) noexcept;
  // Nanoseconds of CLOCK_MONOTONIC; `never` when empty. May be read without the lock.
  uint64_t next() const noexcept { return next_.load(relaxed); }
  void reset() noexcept {
    size_ = 0;
    next_.store(never, relaxed);
    lock_.unlock();
  }

 private:
  struct Entry {
    uint64_t deadline;
    uint64_t wait_word;
    Thread* thread;
  };
  void place(uint32_t i, const Entry& e) noexcept {
    heap_[i] = e;
    e.thread->timer_index.store(i, relaxed);
  }
  void sift_up(uint32_t i, const Entry& e) noexcept;
  void sift_down(uint32_t i, const Entry& e) noexcept;
  void remove_at(uint32_t i) noexcept;
  bool grow() noexcept;

  SpinLock lock_{Rank::timers};
  Entry* heap_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
  atomic<uint64_t> next_{never};
};

// No more to cancel? Of a thread whose wait the caller has claimed, or its own.
inline bool is_armed(const Thread* t) noexcept { return t->timer_index.load(relaxed) != no_timer; }

// begin_wait with a time-out, or `never`. 0: no memory, and no wait has begun.
inline uint64_t begin_wait_until(Thread* t, Timers* timers, uint64_t deadline) noexcept {
  if (deadline != never) {
    t->timers = timers;
    t->deadline = deadline;
    if (!timers->add(t, deadline, next_wait_word(t))) return 0;
  }
  return begin_wait(t);
}
// After begin_wait_until: the time was over before the wait word was out, or somebody has ended the wait already; who
// claims the word knows which.
inline bool came_early(const Thread* t, uint64_t deadline) noexcept {
  // fenced: after begin_wait's store; pairs with pop_due, which takes the entry out before the word is claimed.
  return deadline != never && t->timer_index.load(fenced) == no_timer;
}

}  // namespace upcall::sched

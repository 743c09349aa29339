// Waits with a deadline: a 4-ary heap per processor behind a lock. Any kernel thread may add, cancel or expire.
// An entry carries the wait word it was armed for; an expiry that comes too late claims nothing.
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
    e.thread->timer_index = i;
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

}  // namespace upcall::sched

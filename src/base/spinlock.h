// Spin locks of the runtime. A holder is inside the runtime and is never preempted by the runtime itself; the
// kernel may still deschedule it, so waiters give their CPU away after a while.
//
// Ranks: a lock may be taken only while every lock held has a lower rank. docs/HACKING.md has the table.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/check.h"
#include "base/syscall.h"

namespace upcall {

enum class Rank : uint8_t {
  futex_bucket = 10,
  timers = 20,
  from_kernel = 25,
  thread_table = 30,
  terminal = 35,
  signals = 40,
  pool = 50,
  steal = 60,
  memory = 70,
  hulls = 80
};

// Step `i` of waiting for another kernel thread. Yielding is enough among equals; but in a program with a real-time class
// a monitor or an activation may wait for one below it, which gets the CPU only while we sleep.
inline void wait_step(uint32_t i) noexcept {
  pause_cpu();
  if (i < 200) return;
  if (i < 400) {
    kernel::sys(__NR_sched_yield);
    return;
  }
  constexpr struct { long seconds, nanoseconds; } shortly = {0, 50'000};
  kernel::sys(__NR_nanosleep, &shortly, nullptr);
}

class SpinLock {
 public:
  explicit constexpr SpinLock(Rank rank) noexcept : rank_(rank) {}
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() noexcept {
    // acquire: pairs with unlock's release.
    while (word_.exchange(1, acquire) != 0) {
      for (uint32_t i = 0; word_.load(relaxed) != 0; ++i) wait_step(i);
    }
  }
  bool try_lock() noexcept { return word_.load(relaxed) == 0 && word_.exchange(1, acquire) == 0; }
  void unlock() noexcept { word_.store(0, release); }
  Rank rank() const noexcept { return rank_; }

 private:
  atomic<uint32_t> word_{0};
  Rank rank_;
};

template <typename Lock>
class LockGuard {
 public:
  explicit LockGuard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace upcall

// Thread descriptors: type-stable memory (a late reader finds a descriptor, if not the same thread), virtual ids,
// and the list of live threads.
#pragma once

#include <cstdint>

#include "base/spinlock.h"
#include "sched/thread.h"

namespace upcall::sched {

// Ids lie above the kernel's largest (pid_max <= 2^22) and below 2^28 (clock ids encode them in 29 bits).
inline constexpr int32_t first_virtual_tid = (1 << 22) + 1;
inline constexpr uint32_t max_slots = 1u << 20;

class ThreadTable {
 public:
  // A descriptor in state exited, zeroed but for wait_word, with a fresh id. Null: none left, or no memory.
  Thread* allocate() noexcept;
  // Another id for a thread that ends and begins again. Nobody may look for it meanwhile.
  void renew_id(Thread* t) noexcept;
  void free(Thread* t) noexcept;
  void add_live(Thread* t) noexcept;
  // Returns how many are left.
  uint32_t remove_live(Thread* t) noexcept;
  // Null if there is no live thread of that id, as the program sees it.
  Thread* find(int32_t tid) noexcept {
    Thread* t = find_any(tid);
    return t && !t->parked.load(relaxed) ? t : nullptr;
  }
  // Those kept for reuse too.
  Thread* find_any(int32_t tid) noexcept;
  uint32_t live() const noexcept { return live_.load(relaxed); }
  // Calls f(thread) for each live thread until it returns true; that thread is the answer. The lock is held.
  template <typename F>
  Thread* find_if(F f) noexcept {
    LockGuard guard(lock_);
    for (Thread* t = all_; t; t = t->all_next)
      if (f(t)) return t;
    return nullptr;
  }
  // The thread that will clear `word` when it ends has this id: it lives, or has not come to that yet.
  bool will_clear(int32_t tid, const uint32_t* word) noexcept;
  // fork: only `survivor` lives on.
  void keep_only(Thread* survivor) noexcept;
  // The first part of it, without touching the others: nobody asks for them before keep_only.
  void leave_others() noexcept;
  // fork: held across it, so that the child finds the table in order.
  void lock_for_fork() noexcept { lock_.lock(); }
  void unlock_after_fork() noexcept { lock_.unlock(); }
  void set_main(Thread* t, int32_t tid) noexcept;

 private:
  static constexpr uint32_t chunk_threads = 64;
  Thread* at(uint32_t slot) noexcept;

  SpinLock lock_{Rank::thread_table};
  Thread* free_ = nullptr;
  Thread* all_ = nullptr;
  Thread* main_ = nullptr;
  atomic<uint32_t> live_{0};
  uint32_t slots_ = 0;
  uint32_t fresh_ = 0;  // from here on they have never been used
  atomic<char*> chunks_[max_slots / chunk_threads] = {};
};

extern ThreadTable g_threads;

}  // namespace upcall::sched

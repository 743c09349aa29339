// Where threads wait for something in the program's memory: a list per hash of its address. Nothing in that memory
// points at a thread, so it may be unmapped, or inherited by a fork's child, at any time.
#pragma once

#include "base/fence.h"
#include "linux/linux.h"

namespace upcall::linux_abi {

// A spin lock, but on one processor biased to its owner: then only the monitor and bound threads come from outside, seldom,
// and the owner does without a locked instruction (5 ns). As the ready queue's:
//   owner: busy = 1; light fence; revoked set? then step back and wait
//   outside: the spin lock; revoked = 1; heavy fence; wait until busy == 0
class BucketLock {
 public:
  void lock() noexcept {
    if (activation::g_runtime.processors != 1) {
      spin_.lock();
    } else if (activation::self()->outside) {
      spin_.lock();
      // relaxed: the heavy fence orders it before the load of busy_; pairs with the owner's side.
      revoked_.store(1, relaxed);
      heavy_fence();
      // acquire: pairs with unlock.
      for (uint32_t i = 0; busy_.load(acquire); ++i) wait_step(i);
    } else {
      for (;;) {
        busy_.store(1, relaxed);
        light_fence();  // pairs with the heavy fence from outside
        // acquire: pairs with unlock from outside
        if (__builtin_expect(!revoked_.load(acquire), 1)) return;
        busy_.store(0, release);  // pairs with the load from outside
        for (uint32_t i = 0; revoked_.load(relaxed); ++i) wait_step(i);
      }
    }
  }
  void unlock() noexcept {
    if (activation::g_runtime.processors != 1)
      spin_.unlock();
    else if (activation::self()->outside) {
      revoked_.store(0, release);  // pairs with the owner's load
      spin_.unlock();
    } else
      busy_.store(0, release);  // pairs with the load from outside
  }
  // fork's child: nobody holds it.
  void reset() noexcept {
    spin_.unlock();
    busy_.store(0, relaxed);
    revoked_.store(0, relaxed);
  }

 private:
  SpinLock spin_{Rank::futex_bucket};
  atomic<uint32_t> busy_{0}, revoked_{0};
};

struct alignas(64) Bucket {
  BucketLock lock;
  Thread* head = nullptr;
  Thread* tail = nullptr;
};

inline constexpr uint32_t bucket_bits = 12;
extern Bucket g_buckets[1u << bucket_bits];

inline Bucket& bucket_of(uint64_t key) noexcept {
  return g_buckets[(key >> 2) * 0x9E3779B97F4A7C15ull >> (64 - bucket_bits)];
}

inline KeyKind key_kind(uint64_t key) noexcept { return static_cast<KeyKind>(key & 3); }

inline void link_last(Bucket& b, Thread* t) noexcept {
  t->wait_next = nullptr;
  t->wait_prev = b.tail;
  if (b.tail)
    b.tail->wait_next = t;
  else
    b.head = t;
  b.tail = t;
  t->wait_bucket.store(&b, relaxed);
}

void link_by_priority(Bucket& b, Thread* t) noexcept;
inline void link(Bucket& b, Thread* t) noexcept {
  if (__builtin_expect(t->sched_priority != 0, 0))
    link_by_priority(b, t);
  else
    link_last(b, t);
}

// Out of the list, wait_bucket left as it is: a waiter on its way to another bucket must never look unlinked to the
// one who has claimed it (unlink_waiter).
inline void detach(Bucket& b, Thread* t) noexcept {
  if (t->wait_prev)
    t->wait_prev->wait_next = t->wait_next;
  else
    b.head = t->wait_next;
  if (t->wait_next)
    t->wait_next->wait_prev = t->wait_prev;
  else
    b.tail = t->wait_prev;
}

inline void unlink(Bucket& b, Thread* t) noexcept {
  detach(b, t);
  t->wait_bucket.store(nullptr, release);  // pairs with the loads of unlink_waiter and finish_wait
}

// Threads whose wait has been claimed, to be made ready once the locks are released.
struct WakeList {
  Thread* head = nullptr;
  Thread* tail = nullptr;
  uint32_t n = 0;
  void add(Thread* t) noexcept {
    t->wait_next = nullptr;
    if (tail)
      tail->wait_next = t;
    else
      head = t;
    tail = t;
    ++n;
  }
};
void make_ready(const WakeList& list) noexcept;

// Under b's lock: `t`, whose context is complete and whose key and answers are set, waits there until `deadline`. The word of
// the wait; 0: no memory, and it does not. Begin: sched::begin_wait, or begin_wait_light where wakers make up for it.
template <uint64_t (*Begin)(Thread*) noexcept>
inline __attribute__((always_inline)) uint64_t begin_bucket_wait(Bucket& b, Thread* t,
                                                                 uint64_t deadline) noexcept {
  // In this order: nobody can claim the wait before Begin, and whoever does finds the link to undo.
  link(b, t);
  uint64_t word = Begin(t);
  if (deadline == sched::never) return word;
  t->timers = &activation::self()->processor->timers;
  t->deadline = deadline;
  if (t->timers->add(t, deadline, word) || !sched::claim_wait(t, word)) return word;
  unlink(b, t);
  t->state.store(sched::State::running, relaxed);
  return 0;
}
// Without locks, after that: the thread to run.
Thread* wait_in_bucket(Activation* a, Thread* t, uint64_t word) noexcept;

// Takes a claimed waiter out of its bucket, if nobody else has: g_unlink_waiter.
void unlink_waiter(Thread* t) noexcept;

// --- native_wait.cc
// Of threads that wait for a hook.
uint64_t hook_key() noexcept;
uint32_t run_hooks(Activation* a) noexcept;
// Under the bucket's lock: a timer, a signal or a cancellation has taken t out of a condition's
// queue; t->rax says which.
void condition_left(Thread* t) noexcept;

}  // namespace upcall::linux_abi

// The ready queue of a processor: a slot for the thread woken last (LIFO: its data is warm, and what woke it is
// about to wait), then new threads, newest first (a tree of threads is then walked depth-first: few are alive at
// once, and their stacks are used again), then a FIFO list of the rest.
//
// The owner's operations use no locked instruction. Mutual exclusion with thieves is a lock biased to the owner:
//   owner: busy = 1; light fence; revoked set? then step back and wait; work; busy = 0
//   thief: take the thieves' lock; revoked = 1; heavy fence; wait until busy == 0; work; revoked = 0
// Either the owner's load sees `revoked`, or the heavy fence makes its `busy` visible to the thief (Dekker with an
// asymmetric fence). "Owner" is a role: it passes with the processor, whose owner word orders the hand-over.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/fence.h"
#include "base/spinlock.h"
#include "sched/thread.h"

namespace upcall::sched {

class ReadyQueue {
 public:
  // Owner. The thread becomes the next to run; the one that was next moves to the end of the list.
  void push_lifo(Thread* t) noexcept {
    Section section(*this);
    if (lifo_) append(lifo_);
    lifo_ = t;
    publish_count();
  }
  // Owner.
  void push(Thread* t) noexcept {
    Section section(*this);
    append(t);
    publish_count();
  }
  // Owner: a thread that has not run yet.
  void push_new(Thread* t) noexcept {
    Section section(*this);
    t->next = fresh_;
    fresh_ = t;
    ++fresh_count_;
    publish_count();
  }
  // Owner: `first` ... `last` linked by next, oldest first.
  void push_all(Thread* first, Thread* last, uint32_t n) noexcept {
    Section section(*this);
    last->next = nullptr;
    if (tail_)
      tail_->next = first;
    else
      head_ = first;
    tail_ = last;
    listed_ += n;
    publish_count();
  }
  // Owner. After max_lifo_run threads that were not the oldest, the oldest has its turn: two threads that wake each
  // other, or a stream of new ones, must not starve the rest.
  Thread* pop() noexcept {
    if (empty()) return nullptr;
    Section section(*this);
    Thread* t;
    bool turn_of_oldest = (head_ || fresh_) && ++lifo_run_ >= max_lifo_run;
    if (turn_of_oldest) age_fresh();
    if (lifo_ && !turn_of_oldest) {
      t = lifo_;
      lifo_ = nullptr;
    } else if (fresh_ && !turn_of_oldest) {
      t = fresh_;
      fresh_ = t->next;
      --fresh_count_;
    } else {
      lifo_run_ = 0;
      t = head_;
      if (!t) return nullptr;
      head_ = t->next;
      if (!head_) tail_ = nullptr;
      --listed_;
    }
    publish_count();
    return t;
  }
  // Any kernel thread: takes half of what is ready, at least one, oldest first. Returns a list linked by next.
  Thread* steal_half(uint32_t* taken) noexcept {
    *taken = 0;
    if (!thieves_.try_lock()) return nullptr;
    // relaxed: the heavy fence orders it before the load of busy_; pairs with Section's constructor.
    revoked_.store(1, relaxed);
    heavy_fence();
    // acquire: pairs with Section's destructor; the owner's changes are visible.
    for (int i = 0; busy_.load(acquire); ++i) {
      pause_cpu();
      if (i > 200) kernel::sys(__NR_sched_yield);
    }
    Thread* first = take_half(taken);
    revoked_.store(0, release);  // pairs with Section's wait
    thieves_.unlock();
    return first;
  }
  // Owner: `t` to the end, the next one out. As push and pop, in one section.
  Thread* rotate(Thread* t) noexcept {
    Section section(*this);
    age_fresh();
    Thread* first = lifo_ ? lifo_ : head_;
    if (first == nullptr) return t;
    append(t);
    if (first == lifo_) {
      lifo_ = nullptr;
    } else {
      head_ = first->next;
      --listed_;
    }
    publish_count();
    return first;
  }
  bool empty() const noexcept { return count_.load(relaxed) == 0; }
  uint32_t count() const noexcept { return count_.load(relaxed); }
  // fork: the child starts with an empty queue.
  void reset() noexcept {
    lifo_ = head_ = tail_ = fresh_ = nullptr;
    listed_ = fresh_count_ = 0;
    count_.store(0, relaxed);
    busy_.store(0, relaxed);
    revoked_.store(0, relaxed);
    thieves_.unlock();
  }

 private:
  static constexpr uint32_t max_lifo_run = 32;

  class Section {
   public:
    explicit Section(ReadyQueue& q) noexcept : q_(q) {
      for (;;) {
        q_.busy_.store(1, relaxed);
        light_fence();  // pairs with steal_half's heavy fence
        // acquire: pairs with steal_half's release of revoked_
        if (__builtin_expect(!q_.revoked_.load(acquire), 1)) return;
        q_.busy_.store(0, release);
        for (int i = 0; q_.revoked_.load(relaxed); ++i) {
          pause_cpu();
          if (i > 200) kernel::sys(__NR_sched_yield);
        }
      }
    }
    ~Section() { q_.busy_.store(0, release); }  // pairs with steal_half's load

   private:
    ReadyQueue& q_;
  };

  void append(Thread* t) noexcept {
    t->next = nullptr;
    if (tail_)
      tail_->next = t;
    else
      head_ = t;
    tail_ = t;
    ++listed_;
  }
  // New threads join the list, oldest first.
  void age_fresh() noexcept {
    if (!fresh_) return;
    Thread* first = nullptr;
    Thread* last = fresh_;
    while (fresh_) {
      Thread* next = fresh_->next;
      fresh_->next = first;
      first = fresh_;
      fresh_ = next;
    }
    if (tail_)
      tail_->next = first;
    else
      head_ = first;
    tail_ = last;
    listed_ += fresh_count_;
    fresh_count_ = 0;
  }
  void publish_count() noexcept { count_.store(listed_ + fresh_count_ + (lifo_ ? 1 : 0), relaxed); }

  Thread* take_half(uint32_t* taken) noexcept {
    age_fresh();
    uint32_t n = (listed_ + 1) / 2;
    Thread* first = head_;
    if (!n) {  // only the slot: its thread has waited long enough for the thief to ask
      first = lifo_;
      lifo_ = nullptr;
      if (first) {
        first->next = nullptr;
        *taken = 1;
      }
    } else {
      Thread* last = first;
      for (uint32_t i = 1; i < n; ++i) last = last->next;
      head_ = last->next;
      if (!head_) tail_ = nullptr;
      last->next = nullptr;
      listed_ -= n;
      *taken = n;
    }
    publish_count();
    return first;
  }

  atomic<uint32_t> busy_{0};
  uint32_t listed_ = 0;
  uint32_t lifo_run_ = 0;
  Thread* lifo_ = nullptr;
  Thread* fresh_ = nullptr;
  uint32_t fresh_count_ = 0;
  Thread* head_ = nullptr;
  Thread* tail_ = nullptr;
  // Read by others: their own cache line would cost the owner a second one; thieves look rarely.
  atomic<uint32_t> count_{0};
  alignas(64) atomic<uint32_t> revoked_{0};
  SpinLock thieves_{Rank::steal};
};

}  // namespace upcall::sched

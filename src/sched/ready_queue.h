// The ready queue of a processor: first, strictly, threads with a real-time priority, highest first; then a slot for the
// thread woken last by a thread here (LIFO: its data is warm, and what
// woke it is about to wait), then threads that come back from the kernel or from a sleep (FIFO: they have waited and
// usually ask for little), then new threads, newest first (a tree of threads is then walked depth-first: few are alive at
// once, and their stacks are used again), then a FIFO list of the rest.
//
// The owner's operations use no locked instruction. Mutual exclusion with thieves is a lock biased to the owner:
//   owner: busy = 1; light fence; revoked set? then step back and wait; work; busy = 0
//   thief: take the thieves' lock; revoked = 1; heavy fence; wait until busy == 0; work; revoked = 0
// Either the owner's load sees `revoked`, or the heavy fence makes its `busy` visible to the thief (Dekker with an
// asymmetric fence). "Owner" is a role: it passes with the processor, whose owner word orders the hand-over.
#pragma once

#include <cstdint>

#include "arch/x86_64/cpu.h"
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
    if (put_urgent(t)) return;
    if (lifo_) rest_.append(lifo_);
    lifo_ = t;
    publish_count();
  }
  // Owner.
  void push(Thread* t) noexcept {
    Section section(*this);
    if (put_urgent(t)) return;
    rest_.append(t);
    publish_count();
  }
  // Owner: a thread that was stopped. One with a priority stays the first of its equals, unless its turn among them is over.
  void push_stopped(Thread* t) noexcept {
    Section section(*this);
    bool turn_over = urgent_.head && urgent_.head->sched_priority == t->sched_priority;
    if (put_urgent(t, !turn_over)) return;
    rest_.append(t);
    publish_count();
  }
  // Owner: a thread that comes back.
  void push_woken(Thread* t) noexcept {
    Section section(*this);
    if (put_urgent(t)) return;
    woken_.append(t);
    publish_count();
  }
  // Owner: a thread that has not run yet.
  void push_new(Thread* t) noexcept {
    Section section(*this);
    if (put_urgent(t)) return;
    t->next = fresh_;
    fresh_ = t;
    ++fresh_count_;
    publish_count();
  }
  // Owner: `first` ... `last` linked by next, oldest first; none with a priority.
  void push_all(Thread* first, Thread* last, uint32_t n) noexcept {
    Section section(*this);
    rest_.append_all(first, last, n);
    publish_count();
  }
  // Owner. After lifo_run threads that were not the oldest, the oldest has its turn: two threads that wake each other,
  // or a stream of new or woken ones, must not starve the rest. While they change quickly the run may be longer, up to
  // max_lifo_run: each turn of the oldest starts another branch of a tree of threads.
  Thread* pop() noexcept {
    if (empty()) return nullptr;
    Section section(*this);
    Thread* t;
    if (urgent_.head) {
      t = urgent_.take_first();
      publish_count();
      return t;
    }
    bool turn_of_oldest = (rest_.head || fresh_) && run_is_over();
    if (turn_of_oldest) age_fresh();
    if (lifo_ && !turn_of_oldest) {
      t = lifo_;
      lifo_ = nullptr;
    } else if (woken_.head && !turn_of_oldest) {
      t = woken_.take_first();
    } else if (fresh_ && !turn_of_oldest) {
      t = fresh_;
      fresh_ = t->next;
      --fresh_count_;
    } else {
      lifo_run_ = 0;
      if (!rest_.head) return nullptr;
      t = rest_.take_first();
    }
    publish_count();
    return t;
  }
  // Any kernel thread: takes half of what is ready, at least one, oldest first. Returns a list linked by next.
  Thread* steal_half(uint32_t* taken) noexcept {
    *taken = 0;
    Revoked others(*this);
    return others.held() ? take_half(taken) : nullptr;
  }
  // Owner: `t` to the end, the next one out. As push and pop, in one section.
  Thread* rotate(Thread* t) noexcept {
    Section section(*this);
    age_fresh();
    Thread* first;
    if (t->sched_priority) {
      // Only to its equals.
      if (!urgent_.head || urgent_.head->sched_priority < t->sched_priority) return t;
      first = urgent_.take_first();
      put_urgent(t);
      return first;
    }
    if (urgent_.head) {
      first = urgent_.take_first();
    } else if (lifo_) {
      first = lifo_;
      lifo_ = nullptr;
    } else if (woken_.head) {
      first = woken_.take_first();
    } else if (rest_.head) {
      first = rest_.take_first();
    } else {
      return t;
    }
    rest_.append(t);
    publish_count();
    return first;
  }
  // Owner: the same where only the list has threads, none of them with a priority; else null, and nothing has changed.
  Thread* rotate_list(Thread* t) noexcept {
    Section section(*this);
    if (lifo_ || fresh_ || woken_.head || urgent_.head || !rest_.head) return nullptr;
    Thread* first = rest_.head;
    t->next = nullptr;
    rest_.tail->next = t;
    rest_.tail = t;
    rest_.head = first->next;  // t itself, if `first` was alone
    return first;
  }
  // Owner: may what is ready take the processor from `t`, which runs and whose turn is over?
  bool beats(const Thread* t) noexcept {
    if (empty()) return false;
    if (!t->sched_priority) return true;
    Section section(*this);
    if (!urgent_.head) return false;
    constexpr int32_t round_robin = 2;
    return urgent_.head->sched_priority > t->sched_priority ||
           (t->sched_policy == round_robin && urgent_.head->sched_priority == t->sched_priority);
  }
  // Any kernel thread: takes `t` out, wherever it stands. False: it is not here, or others are at the queue.
  bool take_out(Thread* t) noexcept {
    Revoked others(*this);
    if (!others.held()) return false;
    age_fresh();
    bool found = urgent_.remove(t) || woken_.remove(t) || rest_.remove(t);
    if (!found && lifo_ == t) {
      lifo_ = nullptr;
      found = true;
    }
    publish_count();
    return found;
  }
  bool empty() const noexcept { return count_.load(relaxed) == 0; }
  uint32_t count() const noexcept { return count_.load(relaxed); }
  // fork: the child starts with an empty queue.
  void reset() noexcept {
    lifo_ = fresh_ = nullptr;
    urgent_ = woken_ = rest_ = List{};
    fresh_count_ = 0;
    count_.store(0, relaxed);
    busy_.store(0, relaxed);
    revoked_.store(0, relaxed);
    thieves_.unlock();
  }

 private:
  static constexpr uint32_t lifo_run = 32, max_lifo_run = 256;
  static constexpr uint64_t quick_cycles = 500'000;

  bool run_is_over() noexcept {
    if (++lifo_run_ % lifo_run) return false;
    uint64_t now = arch::tsc();
    if (lifo_run_ < max_lifo_run && now - last_turn_ < quick_cycles) return false;
    last_turn_ = now;
    return true;
  }

  struct List {
    Thread* head = nullptr;
    Thread* tail = nullptr;
    uint32_t n = 0;

    void append(Thread* t) noexcept { append_all(t, t, 1); }
    void append_all(Thread* first, Thread* last, uint32_t count) noexcept {
      last->next = nullptr;
      if (tail)
        tail->next = first;
      else
        head = first;
      tail = last;
      n += count;
    }
    Thread* take_first() noexcept {
      Thread* t = head;
      head = t->next;
      if (!head) tail = nullptr;
      --n;
      return t;
    }
    bool remove(Thread* t) noexcept {
      Thread* before = nullptr;
      for (Thread* at = head; at; before = at, at = at->next) {
        if (at != t) continue;
        (before ? before->next : head) = t->next;
        if (tail == t) tail = before;
        t->next = nullptr;
        --n;
        return true;
      }
      return false;
    }
    // The older half, at least one.
    Thread* take_half(uint32_t* taken) noexcept {
      Thread *first = head, *last = head;
      uint32_t count = (n + 1) / 2;
      for (uint32_t i = 1; i < count; ++i) last = last->next;
      head = last->next;
      if (!head) tail = nullptr;
      last->next = nullptr;
      n -= count;
      *taken = count;
      return first;
    }
  };

  class Section {
   public:
    explicit Section(ReadyQueue& q) noexcept : q_(q) {
      for (;;) {
        q_.busy_.store(1, relaxed);
        light_fence();  // pairs with steal_half's heavy fence
        // acquire: pairs with steal_half's release of revoked_
        if (__builtin_expect(!q_.revoked_.load(acquire), 1)) return;
        q_.busy_.store(0, release);
        for (uint32_t i = 0; q_.revoked_.load(relaxed); ++i) wait_step(i);
      }
    }
    ~Section() { q_.busy_.store(0, release); }  // pairs with steal_half's load

   private:
    ReadyQueue& q_;
  };

  // The thieves' side: while it is held, the owner waits.
  class Revoked {
   public:
    explicit Revoked(ReadyQueue& q) noexcept : q_(q), held_(q.thieves_.try_lock()) {
      if (!held_) return;
      // relaxed: the heavy fence orders it before the load of busy_; pairs with Section's constructor.
      q_.revoked_.store(1, relaxed);
      heavy_fence();
      // acquire: pairs with Section's destructor; the owner's changes are visible.
      for (uint32_t i = 0; q_.busy_.load(acquire); ++i) wait_step(i);
    }
    ~Revoked() {
      if (!held_) return;
      q_.revoked_.store(0, release);  // pairs with Section's wait
      q_.thieves_.unlock();
    }
    bool held() const noexcept { return held_; }

   private:
    ReadyQueue& q_;
    bool held_;
  };

  // True: `t` has a priority and is queued behind its equals.
  bool put_urgent(Thread* t, bool before_equals = false) noexcept {
    if (__builtin_expect(t->sched_priority == 0, 1)) return false;
    Thread** link = &urgent_.head;
    int32_t goes_before = t->sched_priority - (before_equals ? 0 : 1);
    while (*link && (*link)->sched_priority > goes_before) link = &(*link)->next;
    t->next = *link;
    *link = t;
    if (!t->next) urgent_.tail = t;
    ++urgent_.n;
    publish_count();
    return true;
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
    rest_.append_all(first, last, fresh_count_);
    fresh_count_ = 0;
  }
  void publish_count() noexcept {
    count_.store(urgent_.n + rest_.n + woken_.n + fresh_count_ + (lifo_ ? 1 : 0), relaxed);
  }

  Thread* take_half(uint32_t* taken) noexcept {
    age_fresh();
    Thread* first = nullptr;
    if (urgent_.head) {
      first = urgent_.take_first();
      first->next = nullptr;
      *taken = 1;
    } else if (woken_.head) {
      first = woken_.take_half(taken);
    } else if (rest_.head) {
      first = rest_.take_half(taken);
    } else if (lifo_) {  // only the slot: its thread has waited long enough for the thief to ask
      first = lifo_;
      lifo_ = nullptr;
      first->next = nullptr;
      *taken = 1;
    }
    publish_count();
    return first;
  }

  atomic<uint32_t> busy_{0};
  uint32_t lifo_run_ = 0;
  uint64_t last_turn_ = 0;  // TSC
  Thread* lifo_ = nullptr;
  Thread* fresh_ = nullptr;
  uint32_t fresh_count_ = 0;
  List urgent_;
  List woken_;
  List rest_;
  // Read by others: their own cache line would cost the owner a second one; thieves look rarely.
  atomic<uint32_t> count_{0};
  alignas(64) atomic<uint32_t> revoked_{0};
  SpinLock thieves_{Rank::steal};
};

}  // namespace upcall::sched

// Waits of functions that programs call by symbol (src/pthread): condition variables and semaphores.
//
// A condition's waiters are counted in its memory (begun, ended) and queued in the bucket of its address. A waiter
//   1. announces itself: key into its own `prepared`, then begun + 2, with the program's mutex held;
//   2. unlocks the mutex;
//   3. condition_wait: under the bucket's lock, if `prepared` still has the key, enters the queue.
// A waker that finds ended == begun has nobody to wake and does not come here. Else it takes the oldest of the queue,
// or, if that is empty, somebody between 1 and 3, by taking the key out of `prepared`: that one will not wait.
// `ended` is advanced by whoever takes a waiter out, so that a waiter never touches the condition once woken: its
// memory may be gone.
#include "activation/event_source.h"
#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "linux/bucket.h"

namespace upcall::linux_abi {

namespace {

using sched::never;

struct Counts {
  uint64_t begun, ended;
};

// Under the bucket's lock. The memory may have been unmapped under a waiter's feet: then nobody counts.
bool load_counts(uint64_t address, Counts* c) noexcept {
  return !upcall_copy_user(c, reinterpret_cast<void*>(address), sizeof *c);
}

void store_ended(uint64_t address, uint64_t ended) noexcept {
  upcall_copy_user(reinterpret_cast<void*>(address + offsetof(Condition, ended)), &ended, sizeof ended);
}

uint64_t address_of(uint64_t key) noexcept { return key & ~3ul; }

void count_out(uint64_t key, uint64_t waiters = 1) noexcept {
  upcall_add_user64(reinterpret_cast<uint64_t*>(address_of(key) + offsetof(Condition, ended)), 2 * waiters);
}

// Under the bucket's lock: t enters its queue. Returns the wait word, 0 if the timer could not be armed.
inline __attribute__((always_inline)) uint64_t enqueue(Bucket& b, Thread* t, uint64_t key,
                                                       uint64_t deadline) noexcept {
  t->wait_key = key;
  t->wait_bits = 0;
  t->timeout_result = -e_timedout;
  t->interrupted_call = deadline == never ? sched::Interrupted::restarts : sched::Interrupted::ends;
  t->call_deadline = 0;
  t->cancelable_word = sched::next_wait_word(t);
  return begin_bucket_wait<sched::begin_wait_light>(b, t, deadline);
}

// Called without locks, once t has been queued: the last look at what may have been posted before the wait word was
// visible, then another thread.
Thread* wait_or_return(Activation* a, Thread* t, uint64_t word) noexcept {
  ++a->processor->counters.futex_waits;
  // After begin_wait_light's fence; pairs with the heavy fences of notify and post_cancel. acquire: what was posted.
  uint32_t canceled = t->cancel_posted.load(acquire);
  if (__builtin_expect(canceled | t->attention.load(acquire), 0) && sched::claim_wait(t, word)) {
    if (canceled) t->cancel_posted.store(0, relaxed);
    answer(t, canceled ? -e_canceled : -e_intr);
    unlink_waiter(t);
    if (sched::is_armed(t)) t->timers->cancel(t);
    t->state.store(sched::State::running, relaxed);
    return t;
  }
  return activation::schedule(a);
}

bool time_is_over(uint64_t deadline) noexcept { return deadline != never && deadline <= kernel::now(); }

// Under the bucket's lock: takes waiters of `key` out of the queue until one, or all, are woken. One whose wait has
// been claimed by a timer or signal goes too: it is on its way out, and must not find the condition again.
inline __attribute__((always_inline)) uint64_t take_queued(Bucket& b, uint64_t key, bool all,
                                                           WakeList* list) noexcept {
  uint64_t taken = 0;
  for (Thread* t = b.head; t && (all || !list->n);) {
    Thread* next = t->wait_next;
    if (t->wait_key == key) {
      bool ours = sched::claim_wait(t, t->wait_word.load(relaxed));
      unlink(b, t);
      ++taken;
      if (ours) list->add(t);
    }
    t = next;
  }
  return taken;
}

// Under the bucket's lock: threads that have announced a wait for `key` and are not queued will not wait.
bool release_prepared(uint64_t key, bool all) noexcept {
  bool found = false;
  sched::g_threads.find_if([&](Thread* t) {
    // relaxed: the announcement is ordered by `begun`, the rest by the bucket's lock.
    if (t->prepared.load(relaxed) != key) return false;
    t->prepared.store(0, relaxed);
    found = true;
    return !all;
  });
  return found;
}

// Under the bucket's lock, and nobody is queued. Waiters counted and not found have ended in another way (fork's child
// has a copy of the counts, a handler left the wait by longjmp): they are not waited for again.
void wake_prepared(uint64_t key, bool all) noexcept {
  Counts c;
  if (!load_counts(address_of(key), &c) || c.ended == c.begun) return;
  bool found = release_prepared(key, all);
  store_ended(address_of(key), all || !found ? c.begun : c.ended + 2);
}

}  // namespace

void condition_left(Thread* t) noexcept {
  // Interrupted: as before it was queued. It comes back, and a signal in the meantime will find it.
  if (t->rax == static_cast<uint64_t>(-e_intr))
    t->prepared.store(t->wait_key, relaxed);
  else
    count_out(t->wait_key);
}

Thread* condition_wait(Thread* t) noexcept {
  uint64_t key = key_of(t->rdi, KeyKind::condition), deadline = t->rsi;
  Activation* a = activation::self();
  bool late = time_is_over(deadline);
  Bucket& b = bucket_of(key);
  uint64_t word;
  activation::save_for_native_switch(t);
  {
    LockGuard guard(b.lock);
    if (t->prepared.load(relaxed) != key) return answer(t, 0);
    t->prepared.store(0, relaxed);
    word = late ? 0 : enqueue(b, t, key, deadline);
    if (!word) {
      count_out(key);
      return answer(t, late ? -e_timedout : -e_nomem);
    }
  }
  return wait_or_return(a, t, word);
}

Thread* condition_wake(Thread* t) noexcept {
  uint64_t key = key_of(t->rdi, KeyKind::condition);
  bool all = t->rsi != 0;
  Bucket& b = bucket_of(key);
  WakeList list;
  {
    LockGuard guard(b.lock);
    if (uint64_t taken = take_queued(b, key, all, &list)) count_out(key, taken);
    if (all || !list.n) wake_prepared(key, all);
  }
  make_ready(list);
  return answer(t, 0);
}

Thread* condition_leave(Thread* t) noexcept {
  uint64_t key = key_of(t->rdi, KeyKind::condition);
  LockGuard guard(bucket_of(key).lock);
  if (t->prepared.load(relaxed) != key) return answer(t, 1);
  t->prepared.store(0, relaxed);
  count_out(key);
  return answer(t, 0);
}

Thread* semaphore_wait(Thread* t) noexcept {
  auto* value = reinterpret_cast<uint32_t*>(t->rdi);
  uint64_t key = key_of(t->rdi, KeyKind::semaphore), deadline = t->rsi;
  Activation* a = activation::self();
  if (time_is_over(deadline)) return answer(t, -e_timedout);
  Bucket& b = bucket_of(key);
  uint64_t word;
  activation::save_for_native_switch(t);
  {
    LockGuard guard(b.lock);
    uint32_t now;
    // Pairs with sem_post: it adds to the value and sees the count of waiters, or we see the value.
    if (upcall_load_user32(value, &now) || now) return answer(t, 0);
    word = enqueue(b, t, key, deadline);
    if (!word) return answer(t, -e_nomem);
  }
  return wait_or_return(a, t, word);
}

Thread* semaphore_wake(Thread* t) noexcept {
  uint64_t key = key_of(t->rdi, KeyKind::semaphore);
  Bucket& b = bucket_of(key);
  WakeList list;
  {
    LockGuard guard(b.lock);
    take_queued(b, key, false, &list);
  }
  make_ready(list);
  return answer(t, 0);
}

namespace {
uint32_t g_hook_word;
}  // namespace

uint64_t hook_key() noexcept { return key_of(reinterpret_cast<uint64_t>(&g_hook_word), KeyKind::semaphore); }

Thread* hook_wait(Thread* t) noexcept {
  uint64_t deadline = t->rdi;
  Activation* a = activation::self();
  if (time_is_over(deadline)) return answer(t, -e_timedout);
  activation::g_run_hooks = run_hooks;
  Bucket& b = bucket_of(hook_key());
  uint64_t word;
  activation::save_for_native_switch(t);
  {
    LockGuard guard(b.lock);
    word = enqueue(b, t, hook_key(), deadline);
    if (!word) return answer(t, -e_nomem);
    activation::g_hooked.fetch_add(1, relaxed);
  }
  return wait_or_return(a, t, word);
}

uint32_t run_hooks(Activation* a) noexcept {
  Bucket& b = bucket_of(hook_key());
  WakeList list;
  {
    LockGuard guard(b.lock);
    // All that were in the queue, those that a timer has claimed, too.
    activation::g_hooked.fetch_sub(static_cast<uint32_t>(take_queued(b, hook_key(), true, &list)), relaxed);
  }
  for (Thread *t = list.head, *next; t; t = next) {
    next = t->wait_next;
    if (sched::is_armed(t)) t->timers->cancel(t);
    t->rax = 0;
    activation::ready_woken(a, t);
  }
  return list.n;
}

Thread* post_cancel(Thread* t) noexcept {
  uint64_t pointer = t->rdi;
  answer(t, 0);
  Thread* target = nullptr;
  // The id lies in the thread library's descriptor, where it does in our own.
  if (t->clear_child_tid) {
    uint64_t at = pointer + reinterpret_cast<uint64_t>(t->clear_child_tid) - arch::read_fs();
    uint32_t tid;
    if (!upcall_load_user32(reinterpret_cast<uint32_t*>(at), &tid))
      target = sched::g_threads.find(static_cast<int32_t>(tid));
  }
  // t->fs is right while the thread runs, too: nobody changes it after the start.
  if (!target || target->fs != pointer)
    target = sched::g_threads.find_if([&](Thread* other) { return other->fs == pointer; });
  if (!target || target == t) return t;
  target->cancelled.store(1, relaxed);
  target->cancel_posted.store(1, release);  // pairs with wait_or_return
  heavy_fence();  // pairs with begin_wait_light and begin_wait: waits that we do not see find what was stored above
  uint64_t word = target->wait_word.load(acquire);
  if (word == target->join_word.load(relaxed) && sched::claim_wait(target, word)) {
    activation::finish_wait(target, -e_intr);
    return t;
  }
  if (word == target->cancelable_word && sched::claim_wait(target, word)) {
    target->cancel_posted.store(0, relaxed);
    activation::finish_wait(target, -e_canceled);
  }
  return t;
}

}  // namespace upcall::linux_abi

#include "sched/thread_table.h"

#include "kernel/memory.h"

namespace upcall::sched {

ThreadTable g_threads;

namespace {
constexpr uint32_t generations = 250;

void wipe(Thread* t) noexcept {
  uint64_t word = t->wait_word.load(relaxed) & ~1ul;
  uint32_t slot = t->slot;
  uint32_t generation = t->generation;
  void* frame = t->preempt_frame;
  __builtin_memset(static_cast<void*>(t), 0, sizeof(Thread));
  t->preempt_frame = frame;
  t->wait_word.store(word, relaxed);
  t->slot = slot;
  t->generation = (generation + 1) % generations;
  t->timer_index.store(no_timer, relaxed);
  t->altstack_flags = 2;  // SS_DISABLE
}
}  // namespace

Thread* ThreadTable::at(uint32_t slot) noexcept {
  char* chunk = chunks_[slot / chunk_threads].load(acquire);  // pairs with allocate's store
  return chunk ? reinterpret_cast<Thread*>(chunk + (slot % chunk_threads) * size_t{T_SIZE}) : nullptr;
}

Thread* ThreadTable::allocate() noexcept {
  LockGuard guard(lock_);
  if (!free_ && fresh_ == slots_) {
    if (slots_ >= max_slots) return nullptr;
    // Not the first chunk: most programs have few threads. The others are about to be used, all of them.
    auto* chunk =
        static_cast<char*>(kernel::map_pages(chunk_threads * size_t{T_SIZE}, slots_ ? MAP_POPULATE : 0));
    if (!chunk) return nullptr;
    chunks_[slots_ / chunk_threads].store(chunk, release);  // pairs with at()
    slots_ += chunk_threads;
  }
  Thread* t = free_;
  if (t) {
    free_ = t->next;
  } else {  // one by one: a page that nobody has touched is not copied at a fork
    t = at(fresh_);
    t->slot = fresh_++;
  }
  wipe(t);
  t->state.store(State::exited, relaxed);
  t->tid = first_virtual_tid + static_cast<int32_t>(t->slot + t->generation * max_slots);
  return t;
}

void ThreadTable::renew_id(Thread* t) noexcept {
  t->generation = (t->generation + 1) % generations;
  t->tid = first_virtual_tid + static_cast<int32_t>(t->slot + t->generation * max_slots);
}

void ThreadTable::free(Thread* t) noexcept {
  LockGuard guard(lock_);
  t->tid = 0;
  t->next = free_;
  free_ = t;
}

void ThreadTable::add_live(Thread* t) noexcept {
  LockGuard guard(lock_);
  t->all_known = true;
  t->all_prev = nullptr;
  t->all_next = all_;
  if (all_) all_->all_prev = t;
  all_ = t;
  live_.store(live_.load(relaxed) + 1, relaxed);
}

uint32_t ThreadTable::remove_live(Thread* t) noexcept {
  LockGuard guard(lock_);
  if (t->all_prev)
    t->all_prev->all_next = t->all_next;
  else
    all_ = t->all_next;
  if (t->all_next) t->all_next->all_prev = t->all_prev;
  t->all_next = t->all_prev = nullptr;
  t->all_known = false;
  if (main_ == t) main_ = nullptr;
  t->exiting_tid.store(t->tid, release);  // pairs with will_clear
  t->tid = 0;
  uint32_t left = live_.load(relaxed) - 1;
  live_.store(left, relaxed);
  return left;
}

Thread* ThreadTable::find_any(int32_t tid) noexcept {
  if (tid < first_virtual_tid) {
    Thread* m = main_;
    return m && m->tid == tid ? m : nullptr;
  }
  Thread* t = at(static_cast<uint32_t>(tid - first_virtual_tid) % max_slots);
  return t && t->tid == tid && t->all_known ? t : nullptr;
}

bool ThreadTable::will_clear(int32_t tid, const uint32_t* word) noexcept {
  Thread* t =
      tid < first_virtual_tid ? main_ : at(static_cast<uint32_t>(tid - first_virtual_tid) % max_slots);
  if (!t) return false;
  // In this order: remove_live sets exiting_tid before it takes tid away. acquire: pairs with sys_exit, which has
  // cleared the word before exiting_tid.
  bool here = t->tid == tid || t->exiting_tid.load(acquire) == tid;
  return here && t->clear_child_tid == word;
}

void ThreadTable::set_main(Thread* t, int32_t tid) noexcept {
  t->tid = tid;
  main_ = t;
}

void ThreadTable::leave_others() noexcept {
  lock_.unlock();  // whoever held it is not here
  live_.store(1, relaxed);
}

void ThreadTable::keep_only(Thread* survivor) noexcept {
  leave_others();
  for (Thread* t = all_; t;) {
    Thread* next = t->all_next;
    if (t != survivor) {
      t->tid = 0;
      t->all_known = false;
      if (main_ == t) main_ = nullptr;
      t->state.store(State::exited, relaxed);
      t->timer_index.store(no_timer, relaxed);
      t->next = free_;
      free_ = t;
    }
    t = next;
  }
  all_ = survivor;
  survivor->all_next = survivor->all_prev = nullptr;
}

}  // namespace upcall::sched

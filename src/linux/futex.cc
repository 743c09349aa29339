// Private futexes. A bucket's lock orders everything that happens to the words that hash to it; a waiter enters the
// list with its context saved, so a waker may make it ready the moment the lock is released.
#include <linux/futex.h>
#include <linux/time_types.h>

#include "activation/event_source.h"
#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "linux/descriptors.h"

namespace upcall::linux_abi {

Bucket g_buckets[1u << bucket_bits];

// Behind those with the same or a higher priority, as in the kernel.
void link_by_priority(Bucket& b, Thread* t) noexcept {
  Thread* after = b.head;
  while (after && after->sched_priority >= t->sched_priority) after = after->wait_next;
  if (!after) {
    link_last(b, t);
    return;
  }
  t->wait_next = after;
  t->wait_prev = after->wait_prev;
  (after->wait_prev ? after->wait_prev->wait_next : b.head) = t;
  after->wait_prev = t;
  t->wait_bucket.store(&b, relaxed);
}

void make_ready(const WakeList& list) noexcept {
  if (!list.n) return;
  Activation* a = activation::self();
  bool single = list.n == 1;
  if (!a->is_monitor) a->processor->counters.futex_wakes += list.n;
  for (Thread* t = list.head; t;) {
    Thread* next = t->wait_next;
    if (sched::is_armed(t)) t->timers->cancel(t);
    t->rax = 0;
    if (single)
      activation::ready(t);
    else
      activation::ready_last(a, t);
    t = next;
  }
  if (!a->is_monitor) activation::yield_to_woken(a);
}

Thread* wait_in_bucket(Activation* a, Thread* t, uint64_t word) noexcept {
  // From here on the thread may run elsewhere. fenced load: pairs with signal posting, see begin_wait.
  if (t->attention.load(fenced) && sched::claim_wait(t, word)) {
    unlink_waiter(t);
    if (sched::is_armed(t)) t->timers->cancel(t);
    t->state.store(sched::State::running, relaxed);
    return answer(t, -e_intr);
  }
  return activation::schedule(a);
}

// The caller has claimed t's wait, so nobody else makes it ready; only a requeue may still move it.
void unlink_waiter(Thread* t) noexcept {
  while (void* at = t->wait_bucket.load(acquire)) {
    auto& b = *static_cast<Bucket*>(at);
    LockGuard guard(b.lock);
    if (t->wait_bucket.load(relaxed) != &b) continue;
    unlink(b, t);
    KeyKind kind = key_kind(t->wait_key);
    if (kind == KeyKind::condition) condition_left(t);
    if (t->wait_key == hook_key()) activation::g_hooked.fetch_sub(1, relaxed);
    if (kind == KeyKind::descriptor) {
      activation::g_event_waits.fetch_sub(1, relaxed);
      if (t->rax == static_cast<uint64_t>(call_again)) repeat_after_time(t);
    }
  }
}

namespace {

// Two buckets in address order; the same one once.
class TwoLocks {
 public:
  TwoLocks(Bucket& a, Bucket& b) noexcept : first_(&a < &b ? a : b), second_(&a < &b ? b : a) {
    first_.lock.lock();
    if (&first_ != &second_) second_.lock.lock();
  }
  ~TwoLocks() {
    if (&first_ != &second_) second_.lock.unlock();
    first_.lock.unlock();
  }
  TwoLocks(const TwoLocks&) = delete;
  TwoLocks& operator=(const TwoLocks&) = delete;

 private:
  Bucket& first_;
  Bucket& second_;
};

// Under b's lock: claims up to `limit` waiters of `key`.
void collect(Bucket& b, uint64_t key, uint32_t bits, uint32_t limit, WakeList* list) noexcept {
  for (Thread* t = b.head; t && list->n < limit;) {
    Thread* next = t->wait_next;
    if (t->wait_key == key && (t->wait_bits & bits) && sched::claim_wait(t, t->wait_word.load(relaxed))) {
      unlink(b, t);
      list->add(t);
    }
    t = next;
  }
}

long wake(uint64_t key, uint32_t limit, uint32_t bits) noexcept {
  Bucket& b = bucket_of(key);
  WakeList list;
  {
    LockGuard guard(b.lock);
    if (!b.head) return 0;
    collect(b, key, bits, limit, &list);
  }
  make_ready(list);
  return list.n;
}

Thread* wait(Thread* t, uint32_t* address, uint32_t expected, uint64_t deadline, uint32_t bits) noexcept {
  auto key = reinterpret_cast<uint64_t>(address);
  uint32_t value;
  // Outside the lock: brings the page in, answers EFAULT, and is the short way out.
  if (upcall_load_user32(address, &value)) return answer(t, -e_fault);
  if (value != expected) return answer(t, -e_again);
  Activation* a = activation::self();
  activation::save_for_switch(t);
  Bucket& b = bucket_of(key);
  uint64_t word;
  {
    LockGuard guard(b.lock);
    if (upcall_load_user32(address, &value)) return answer(t, -e_fault);
    if (value != expected) return answer(t, -e_again);
    t->wait_key = key;
    t->wait_bits = bits;
    t->timeout_result = -e_timedout;
    // As in the kernel: with a time-out it is not restarted after a handler.
    t->interrupted_call = deadline == sched::never ? sched::Interrupted::restarts : sched::Interrupted::ends;
    word = begin_bucket_wait<sched::begin_wait>(b, t, deadline);
    if (!word) return answer(t, -e_nomem);
  }
  ++a->processor->counters.futex_waits;
  return wait_in_bucket(a, t, word);
}

long requeue(Thread* t, bool compare) noexcept {
  auto* address = reinterpret_cast<uint32_t*>(t->rdi);
  auto to = t->r8;
  auto wake_limit = static_cast<int32_t>(t->rdx), move_limit = static_cast<int32_t>(t->r10);
  if (wake_limit < 0 || move_limit < 0) return -e_inval;
  if (to & 3) return -e_inval;
  uint32_t value;
  if (compare && upcall_load_user32(address, &value)) return -e_fault;
  auto key = reinterpret_cast<uint64_t>(address);
  Bucket &from_bucket = bucket_of(key), &to_bucket = bucket_of(to);
  WakeList list;
  long moved = 0;
  {
    TwoLocks guard(from_bucket, to_bucket);
    if (compare) {
      if (upcall_load_user32(address, &value)) return -e_fault;
      if (value != static_cast<uint32_t>(t->r9)) return -e_again;
    }
    collect(from_bucket, key, ~0u, static_cast<uint32_t>(wake_limit), &list);
    for (Thread* w = from_bucket.head; w && moved < move_limit && key != to;) {
      Thread* next = w->wait_next;
      if (w->wait_key == key) {
        detach(from_bucket, w);
        w->wait_key = to;
        link(to_bucket, w);
        ++moved;
      }
      w = next;
    }
  }
  make_ready(list);
  return list.n + moved;
}

bool compare_op(uint32_t old, uint32_t op, uint32_t operand) noexcept {
  auto a = static_cast<int32_t>(old), b = static_cast<int32_t>(operand);
  switch (op) {
    case FUTEX_OP_CMP_EQ:
      return a == b;
    case FUTEX_OP_CMP_NE:
      return a != b;
    case FUTEX_OP_CMP_LT:
      return a < b;
    case FUTEX_OP_CMP_LE:
      return a <= b;
    case FUTEX_OP_CMP_GT:
      return a > b;
    default:
      return a >= b;
  }
}

long wake_op(Thread* t) noexcept {
  auto* second = reinterpret_cast<uint32_t*>(t->r8);
  auto code = static_cast<uint32_t>(t->r9);
  if (t->r8 & 3) return -e_inval;
  uint32_t op = (code >> 28) & 7, cmp = (code >> 24) & 15;
  auto operand = static_cast<uint32_t>(static_cast<int32_t>(code << 8) >> 20);
  auto cmp_operand = static_cast<uint32_t>(static_cast<int32_t>(code << 20) >> 20);
  if (code & 0x80000000u) operand = 1u << (operand & 31);
  if (op > FUTEX_OP_XOR || cmp > FUTEX_OP_CMP_GE) return -e_nosys;
  Bucket &b1 = bucket_of(t->rdi), &b2 = bucket_of(t->r8);
  WakeList list, list2;
  uint32_t old;
  if (upcall_load_user32(second, &old)) return -e_fault;
  {
    TwoLocks guard(b1, b2);
    for (;;) {
      uint32_t fresh = op == FUTEX_OP_SET    ? operand
                       : op == FUTEX_OP_ADD  ? old + operand
                       : op == FUTEX_OP_OR   ? (old | operand)
                       : op == FUTEX_OP_ANDN ? (old & ~operand)
                                             : (old ^ operand);
      int r = upcall_cas_user32(second, &old, fresh);
      if (r < 0) return -e_fault;
      if (r == 1) break;
    }
    collect(b1, t->rdi, ~0u, static_cast<uint32_t>(t->rdx), &list);
    if (compare_op(old, cmp, cmp_operand)) collect(b2, t->r8, ~0u, static_cast<uint32_t>(t->r10), &list2);
  }
  make_ready(list);
  make_ready(list2);
  return list.n + list2.n;
}

constexpr uint64_t address_limit = 0x7ffffffff000;  // of programs, with four levels of page tables

// pthread_join waits for the kernel's clear-child-tid on a shared word; for our own threads we are that kernel.
bool waits_for_thread(Thread* t) noexcept {
  return sched::g_threads.will_clear(static_cast<int32_t>(t->rdx), reinterpret_cast<uint32_t*>(t->rdi));
}

atomic<uint32_t> g_kernel_waits{0};  // calls that wait for a shared word in the kernel

// A time from now on becomes the moment at which it ends: a call that is repeated waits for the rest.
Thread* wait_in_kernel(Thread* t, int cmd) noexcept {
  long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi), static_cast<long>(t->rdx),
                  static_cast<long>(t->r10), static_cast<long>(t->r8),  static_cast<long>(t->r9)};
  uint64_t ns, known = sched::take_restart_deadline(t);
  __kernel_timespec until;
  t->call_deadline = 0;
  if (cmd == FUTEX_WAIT && t->r10 && !read_timespec(reinterpret_cast<void*>(t->r10), &ns)) {
    t->call_deadline = known ? known : kernel::now() + ns;
    until = {static_cast<int64_t>(t->call_deadline / 1'000'000'000u),
             static_cast<long long>(t->call_deadline % 1'000'000'000u)};
    args[1] = (args[1] & ~static_cast<long>(FUTEX_CMD_MASK)) | FUTEX_WAIT_BITSET;
    args[3] = reinterpret_cast<long>(&until);
    args[5] = FUTEX_BITSET_MATCH_ANY;
  }
  // fenced: pairs with wake_after_exit; the kernel looks at the word after this.
  g_kernel_waits.fetch_add(1, fenced);
  Thread* next = activation::blocking_call(t, t->nr, args);
  g_kernel_waits.fetch_sub(1, relaxed);
  return next;
}

Thread* wait_call(Thread* t, int op, int cmd) noexcept {
  uint64_t deadline = sched::never;
  t->call_deadline = 0;
  if (t->r10) {
    uint64_t ns;
    if (long r = read_timespec(reinterpret_cast<void*>(t->r10), &ns)) return answer(t, r);
    if (uint64_t known = sched::take_restart_deadline(t))
      deadline = t->call_deadline = known;
    else if (cmd == FUTEX_WAIT)
      deadline = t->call_deadline = kernel::now() + ns;
    else
      deadline = to_monotonic(op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, ns);
  }
  uint32_t bits = cmd == FUTEX_WAIT ? ~0u : static_cast<uint32_t>(t->r9);
  if (!bits) return answer(t, -e_inval);
  return wait(t, reinterpret_cast<uint32_t*>(t->rdi), static_cast<uint32_t>(t->rdx), deadline, bits);
}

}  // namespace

Thread* sys_futex(Thread* t) noexcept {
  auto op = static_cast<int>(t->rsi);
  int cmd = op & FUTEX_CMD_MASK;
  bool waits = cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET;
  bool priority_inheritance = cmd == FUTEX_LOCK_PI || cmd == FUTEX_UNLOCK_PI || cmd == FUTEX_TRYLOCK_PI ||
                              cmd == FUTEX_WAIT_REQUEUE_PI || cmd == FUTEX_CMP_REQUEUE_PI ||
                              cmd == 13;  // FUTEX_LOCK_PI2, which headers before 5.14 lack
  // The kernel would look for the owner's id among its own: refused as on kernels without PI, so that
  // pthread_mutexattr_setprotocol's mutexes say ENOTSUP at initialisation.
  if (priority_inheritance) return answer(t, -e_nosys);
  if ((op & FUTEX_CLOCK_REALTIME) && cmd != FUTEX_WAIT_BITSET) return answer(t, -e_nosys);
  if (!(op & FUTEX_PRIVATE_FLAG) && !(waits && waits_for_thread(t)))
    return waits ? wait_in_kernel(t, cmd) : activation::uninterrupted_call(t);
  if (t->rdi & 3) return answer(t, -e_inval);
  if (t->rdi >= address_limit) return answer(t, -e_fault);
  switch (cmd) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      return wait_call(t, op, cmd);
    case FUTEX_WAKE:
      return answer(t,
                    wake(t->rdi, static_cast<int32_t>(t->rdx) < 1 ? 1 : static_cast<uint32_t>(t->rdx), ~0u));
    case FUTEX_WAKE_BITSET:
      if (!static_cast<uint32_t>(t->r9)) return answer(t, -e_inval);
      return answer(t, wake(t->rdi, static_cast<uint32_t>(t->rdx), static_cast<uint32_t>(t->r9)));
    case FUTEX_REQUEUE:
      return answer(t, requeue(t, false));
    case FUTEX_CMP_REQUEUE:
      return answer(t, requeue(t, true));
    case FUTEX_WAKE_OP:
      return answer(t, wake_op(t));
    default:
      return answer(t, -e_nosys);
  }
}

// A thread's word has been cleared: as the kernel does, waiters that share the word are woken, wherever they wait.
void wake_after_exit(uint32_t* address) noexcept {
  futex_wake_all(address);
  if (g_kernel_waits.fetch_add(0, fenced))  // pairs with wait_in_kernel
    kernel::sys(__NR_futex, address, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}
void futex_wake_all(uint32_t* address) noexcept { wake(reinterpret_cast<uint64_t>(address), ~0u, ~0u); }
void futex_wake_one(uint32_t* address) noexcept { wake(reinterpret_cast<uint64_t>(address), 1, ~0u); }

namespace {
bool g_inherited = false;  // the buckets are those of the parent
}

void init_futexes() noexcept {
  activation::g_unlink_waiter = unlink_waiter;
  if (!g_inherited) return;
  g_inherited = false;
  for (Bucket& b : g_buckets) {
    b.head = b.tail = nullptr;
    b.lock.reset();
  }
}

// Not before they are needed: most children call exec, and each page written here would be copied for them.
void reset_futexes() noexcept { g_inherited = true; }

}  // namespace upcall::linux_abi

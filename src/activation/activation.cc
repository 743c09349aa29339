// Making, parking and waking the kernel threads that run threads.
#include "activation/activation.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>

#include "activation/credentials.h"
#include "activation/event_source.h"
#include "activation/signal_frame.h"
#include "activation/switch_events.h"
#include "arch/x86_64/cpu.h"
#include "base/log.h"
#include "kernel/futex.h"
#include "kernel/memory.h"

namespace upcall {
GlobalCounters g_counters;
}

namespace upcall::activation {

Runtime g_runtime;
void (*g_unlink_waiter)(Thread*) = nullptr;

namespace {

constexpr size_t page = 4096;
constexpr size_t runtime_stack_bytes = 64 * 1024;
constexpr size_t altstack_bytes = 64 * 1024;
constexpr uint32_t max_activations = 1u << 18;

// Reserved once, touched as activations appear.
atomic<Activation*>* g_table = nullptr;
atomic<uint32_t> g_count{0};

constexpr unsigned long kernel_thread_flags =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID;

// A new kernel thread inherits GS and could mistake its creator's activation for its own: no signal may reach it
// before it has said who it is.
// *alive is cleared when it has ended.
template <typename T>
long clone_quietly(void* stack, void (*f)(void*), void* argument, int* tid, atomic<T>* alive,
                   KernelThread* child, unsigned long more_flags = 0) noexcept {
  uint64_t all = ~0ull, before;
  kernel::sys(__NR_rt_sigprocmask, 2, &all, &before, 8);
  pass_credentials_on(child);
  unsigned long flags = kernel_thread_flags | CLONE_CHILD_CLEARTID | more_flags;
  long r = upcall_clone(flags, stack, f, argument, tid, reinterpret_cast<int*>(alive));
  kernel::sys(__NR_rt_sigprocmask, 2, &before, nullptr, 8);
  return r;
}

// Records whose kernel thread was refused, or has ended, or is about to.
atomic<Activation*> g_retired{nullptr};
}  // namespace

void keep_retired(Activation* a) noexcept {
  Activation* head = g_retired.load(relaxed);
  do {
    a->retired_next = head;
  } while (!g_retired.compare_exchange_weak(head, a, release, relaxed));  // pairs with take_retired
}

namespace {

Activation* take_retired() noexcept {
  if (!g_retired.load(relaxed)) return nullptr;
  Activation* found = nullptr;
  for (Activation *a = g_retired.exchange(nullptr, acquire), *next; a; a = next) {  // pairs with keep_retired
    next = a->retired_next;
    // acquire: pairs with the kernel's store when the last instruction on its stack has been executed.
    if (!found && !a->alive.load(acquire))
      found = a;
    else
      keep_retired(a);
  }
  return found;
}

void install_altstack(Activation* a) noexcept {
  struct {
    void* sp;
    int32_t flags;
    uint64_t size;
  } ss = {a->altstack.sp, 0, a->altstack.size};
  kernel::sys(__NR_sigaltstack, &ss, nullptr);
}

void pool_push(Activation* a) noexcept {
  Activation* none = nullptr;
  // acq_rel: pairs with wake_standby and pool_remove.
  if (a->processor->standby.compare_exchange_strong(none, a, acq_rel, relaxed)) return;
  LockGuard guard(a->processor->pool_lock);
  a->in_pool = true;
  a->pool_next = a->processor->pool;
  a->processor->pool = a;
}

// Under the pool's lock.
void unlink_from_pool(Activation* a) noexcept {
  Activation** link = &a->processor->pool;
  while (*link != a) link = &(*link)->pool_next;
  *link = a->pool_next;
  a->in_pool = false;
}

void pool_remove(Activation* a) noexcept {
  LockGuard guard(a->processor->pool_lock);
  // Under the lock, since refill_standby moves activations from the list to the slot.
  Activation* me = a;
  if (a->processor->standby.compare_exchange_strong(me, nullptr, acq_rel, relaxed)) return;
  if (a->in_pool) unlink_from_pool(a);
}

}  // namespace

bool take_parked(Activation* a, Processor* own) noexcept {
  Processor* p = a->processor;  // for life, as long as it is parked
  LockGuard guard(p->pool_lock);
  Activation* me = a;
  if (!p->standby.compare_exchange_strong(me, nullptr, acq_rel, relaxed)) {
    if (!a->in_pool) return false;
    unlink_from_pool(a);
  }
  a->bind_to = own;
  return true;
}

namespace {

void refill_standby(Processor* p) noexcept {
  if (p->standby.load(relaxed) || !p->pool) return;
  LockGuard guard(p->pool_lock);
  Activation *a = p->pool, *none = nullptr;
  if (!a || !p->standby.compare_exchange_strong(none, a, acq_rel, relaxed)) return;
  p->pool = a->pool_next;
  a->in_pool = false;
}

Activation* pool_pop(Processor* p) noexcept {
  if (Activation* a = p->standby.exchange(nullptr, acq_rel)) return a;
  LockGuard guard(p->pool_lock);
  Activation* a = p->pool;
  if (a) {
    p->pool = a->pool_next;
    a->in_pool = false;
  }
  return a;
}

void activation_main(void* argument) {
  auto* a = static_cast<Activation*>(argument);
  arch::write_gs(reinterpret_cast<uint64_t>(a));
  install_altstack(a);
  follow_at_first(a);
  uint64_t mask = activation_mask;
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
  upcall_reset_control();
  if (!a->outside) {  // else as who made us
    pin_self(a->processor->cpu);
    take_activation_class();  // the monitor, which may have made us, has another one
  }
  note_own_switches(a);
  bool owner = try_claim(a);
  // After the claim: who finds the flag set and goes away has put its thread where we look next.
  a->processor->spawning.store(0, fenced);
  if (!owner) park(a);
  upcall_resume(schedule_first(a));
}

}  // namespace

namespace {

// `blocked` is about to lose `p`. Its thread stays what it is as long as the owner word does.
Event blocked_event(Processor* p, Activation* blocked) noexcept {
  Thread* t = __atomic_load_n(&blocked->current, __ATOMIC_RELAXED);
  return new_event(Upcall::activation_blocked, p->index, blocked->index, t ? t->tid : 0);
}

// Somebody is to take `p` over. Where other threads are ready already, what counts is when its owner blocked.
uint64_t woken_now(const Processor* p) noexcept { return g_measuring && p->ready.empty() ? arch::tsc() : 0; }

}  // namespace

// True: `a` owns its processor now. Only what nobody runs may be claimed.
bool try_claim(Activation* a) noexcept {
  Processor* p = a->processor;
  OwnerWord w = p->owner_word();
  if (w.state() != Owner::in_kernel && w.state() != Owner::vacant) return false;
  Activation* blocked = w.state() == Owner::in_kernel ? activation_at(w.activation()) : nullptr;
  Event e = blocked ? blocked_event(p, blocked) : new_event(Upcall::add_processor, p->index, a->index, 0);
  uint64_t since = blocked ? blocked->blocked_at.load(relaxed) : 0;
  // acq_rel: pairs with enter_kernel's exchange; the processor's private data is ours from here.
  if (!p->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel, relaxed))
    return false;
  count_awake(p);
  uint64_t woken = a->woken_at.load(relaxed);
  if (woken > since) since = woken;
  if (blocked && g_measuring) p->taken_over = since ? since : arch::tsc();
  a->woken_at.store(0, relaxed);
  deliver(e);
  return true;
}

void unblocked(Activation* a) noexcept {
  Thread* t = a->current;
  deliver(new_event(Upcall::activation_unblocked, a->processor->index, a->index, t ? t->tid : 0));
}

Activation* activation_at(uint32_t index) noexcept { return g_table[index].load(acquire); }
uint32_t activation_count() noexcept { return g_count.load(acquire); }

Activation* new_activation_record() noexcept {
  if (!g_table) {
    g_table =
        static_cast<atomic<Activation*>*>(kernel::map_pages(max_activations * sizeof(void*), MAP_NORESERVE));
    if (!g_table) return nullptr;
  }
  // guard, runtime stack, guard, alternate signal stack; the record sits at the end.
  size_t total = page + runtime_stack_bytes + page + altstack_bytes;
  auto* base = static_cast<char*>(kernel::map_pages(total, MAP_NORESERVE | MAP_STACK));
  if (!base) return nullptr;
  kernel::sys(__NR_mprotect, base, page, PROT_NONE);
  kernel::sys(__NR_mprotect, base + page + runtime_stack_bytes, page, PROT_NONE);
  char* alt = base + page + runtime_stack_bytes + page;
  size_t record = (sizeof(Activation) + 63) & ~63ul;
  auto* a = reinterpret_cast<Activation*>(alt + altstack_bytes - record);
  a->self = a;
  a->in_runtime.store(1, relaxed);
  a->stack_top = base + page + runtime_stack_bytes;
  a->altstack = {alt, 0, altstack_bytes - record};
  uint32_t index = g_count.load(relaxed);
  do {
    if (index >= max_activations) {
      kernel::unmap_pages(base, total);
      return nullptr;
    }
  } while (!g_count.compare_exchange_weak(index, index + 1, relaxed, relaxed));
  a->index = index;
  g_table[index].store(a, release);  // pairs with activation_at
  return a;
}

void adopt_first_activation(Activation* a) noexcept { install_altstack(a); }

void pin_self(uint32_t cpu) noexcept {
  uint64_t mask[16] = {};
  mask[cpu / 64 % 16] = 1ul << (cpu % 64);
  kernel::sys(__NR_sched_setaffinity, 0, sizeof mask, static_cast<void*>(mask));
}

namespace {

// As new, for another kernel thread; what others still hold of the one before (a mark, a word in a table) is not its own.
void start_over(Activation* a) noexcept {
  a->in_runtime.store(1, relaxed);
  a->resched.store(0, relaxed);
  a->interrupt.store(0, relaxed);
  a->lost.store(0, relaxed);
  a->wake.store(0, relaxed);
  a->watches.store(0, relaxed);
  a->outpost.store(0, relaxed);
  a->signal_sent.store(0, relaxed);
  a->adopted.store(0, relaxed);
  a->weight.store(0, relaxed);
  a->weight_held.store(0, relaxed);
  a->switches.store(nullptr, relaxed);
  a->blocked_at.store(0, relaxed);
  a->current = nullptr;
  a->bind_to = nullptr;
}

atomic<uint32_t> g_warned_cap{0}, g_warned_refused{0};

void count_beyond_cap() noexcept {
  // Added, not subtracted: a helper is counted as such a moment before it is counted at all.
  uint64_t most = g_counters.helpers.load(relaxed) + g_runtime.activation_cap;
  if (g_counters.kernel_threads_live.load(relaxed) < most) return;
  g_counters.beyond_cap.fetch_add(1, relaxed);
  if (g_warned_cap.exchange(1, relaxed)) return;
  (Line() << g_runtime.activation_cap
          << " kernel threads are blocked with threads of this program; more are made while ready threads "
             "would wait "
             "for ever (--activations sets where this is said)")
      .write();
}

}  // namespace

long spawn_activation(Processor* p) noexcept {
  Activation* a = take_retired();
  if (!a) a = new_activation_record();
  if (!a) return -12;
  start_over(a);
  a->processor = p;
  a->outside = p->bound;
  if (p->bound) p->sole = a;
  a->alive.store(1, relaxed);
  a->woken_at.store(woken_now(p), relaxed);
  long r = clone_quietly(a->stack_top, activation_main, a, &a->tid, &a->alive, &a->kernel);
  if (kernel::is_error(r)) {
    a->alive.store(0, relaxed);
    keep_retired(a);
    if (p->bound) return r;  // its thread's creator is told
    g_counters.activations_refused.fetch_add(1, relaxed);
    if (!g_warned_refused.exchange(1, relaxed))
      (Line() << "the system gives no more kernel threads (error " << -r
              << "): ready threads wait until one that is blocked "
                 "in the kernel comes back")
          .write();
    return r;
  }
  if (!p->bound) count_beyond_cap();
  g_counters.activations_created.fetch_add(1, relaxed);
  raise_peak(g_counters.kernel_threads_peak, g_counters.kernel_threads_live.fetch_add(1, relaxed) + 1);
  return 0;
}

long start_helper(void (*f)(void*), void* argument, size_t stack_bytes, int* tid,
                  KernelThread* record) noexcept {
  auto* stack = static_cast<char*>(kernel::map_pages(stack_bytes, MAP_NORESERVE | MAP_STACK));
  if (!stack) return -12;
  // A fork would make its pages copy-on-write: a sentinel that faults there, and then has no CPU for long, keeps others
  // waiting for the memory's lock. The child starts helpers of its own.
  constexpr int dont_fork = 10;  // madvise
  kernel::sys(__NR_madvise, static_cast<void*>(stack), stack_bytes, dont_fork);
  char* top = stack + stack_bytes;
  if (!record) {
    top -= (sizeof(KernelThread) + 63) & ~63ul;
    record = reinterpret_cast<KernelThread*>(top);
  }
  record->helper_tid.store(-1, relaxed);
  add_helper(record);
  long r = clone_quietly(top, f, argument, tid, &record->helper_tid, record, CLONE_CHILD_SETTID);
  if (kernel::is_error(r)) {
    record->helper_tid.store(0, relaxed);  // it stays in the list, and its memory
    return r;
  }
  g_counters.helpers.fetch_add(1, relaxed);
  raise_peak(g_counters.kernel_threads_peak, g_counters.kernel_threads_live.fetch_add(1, relaxed) + 1);
  return r;
}

void begin_helper() noexcept {
  arch::write_gs(0);
  follow_at_first(nullptr);
  uint64_t mask = ~bit(credentials_signal);
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
  kernel::sys(__NR_sched_setaffinity, 0, sizeof g_runtime.affinity, static_cast<void*>(g_runtime.affinity));
}

uint64_t cpu_time(int32_t tid) noexcept {
  // clock_getcpuclockid's encoding: the thread's scheduled time.
  int32_t clock = static_cast<int32_t>(~static_cast<uint32_t>(tid) << 3) | 6;
  __kernel_timespec ts = {};
  kernel::sys(__NR_clock_gettime, clock, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(ts.tv_nsec);
}

bool wake_successor(Processor* p, bool may_create) noexcept {
  if (p->bound) return false;  // its activation is on its way
  if (Activation* a = pool_pop(p)) {
    a->woken_at.store(woken_now(p), relaxed);
    wake_sleeper(a);
    return true;
  }
  if (!may_create) return false;
  // What a bound thread makes would inherit from it.
  if (const Activation* me = self(); me->outside && !me->is_monitor) {
    poke_monitor_to_create(p);
    return false;
  }
  // One new activation at a time: more wishes than it can serve are found by it in the queue.
  if (p->spawning.exchange(1, acq_rel)) return false;
  bool made = spawn_activation(p) == 0;
  if (!made) p->spawning.store(0, relaxed);
  return made;
}

bool send_outpost(Processor* p) noexcept {
  Activation* a = pool_pop(p);
  if (!a) {
    make_standby(p);  // for the next time
    return false;
  }
  a->outpost.store(1, relaxed);
  wake_sleeper(a);  // finds nothing to run, and parks again
  return true;
}

bool wake_standby(Processor* p) noexcept {
  Activation* a = p->standby.exchange(nullptr, acq_rel);  // pairs with pool_push
  if (!a) return false;
  a->woken_at.store(woken_now(p), relaxed);
  wake_sleeper(a);
  return true;
}

bool make_standby(Processor* p) noexcept {
  if (p->spawning.exchange(1, acq_rel)) return true;
  if (spawn_activation(p) == 0) return true;
  p->spawning.store(0, relaxed);
  return false;
}

namespace {

void enter_pool(Activation* a) noexcept {
  pool_push(a);
  // The processor may have become claimable before: whoever made it so looked for us in the pool, or left it to us while
  // we were being made.
  OwnerWord w = a->processor->owner_word();
  bool claimable = w.state() == Owner::in_kernel || w.state() == Owner::vacant;
  if (claimable && a->processor->has_work()) a->wake.store(1, relaxed);
}

}  // namespace

void park_wait(Activation* a) noexcept {
  for (;;) {
    if (!a->wake.exchange(0, acquire)) {
      if (a->outpost.load(relaxed))
        watch_as_outpost(a);
      else
        kernel::futex_wait(&a->wake, 0);
      continue;
    }
    pool_remove(a);
    Processor* p = a->processor;
    if (a->bind_to) settle_in(a);  // after pool_remove, under whose lock it is set
    if (try_claim(a)) {
      refill_standby(p);
      return;
    }
    enter_pool(a);
  }
}

void park(Activation* a) noexcept {
  enter_pool(a);
  park_wait(a);
}

void pool_adopt(Activation* sleeper) noexcept {
  pool_push(sleeper);
  sleeper->adopted.store(1, release);  // pairs with idle
}

void forget_others(Activation* survivor) noexcept {
  forget_lost();
  forget_events();
  forget_switch_events(survivor);
  survivor->lost.store(0, relaxed);
  survivor->weight_held.store(0, relaxed);
  survivor->lost_listed.store(0, relaxed);
  survivor->woken_at.store(0, relaxed);
  uint32_t n = g_count.load(relaxed);
  for (uint32_t i = 0; i < n; ++i)
    if (g_table[i].load(relaxed) != survivor) g_table[i].store(nullptr, relaxed);
  g_retired.store(nullptr, relaxed);  // it is not in the table any more
}

}  // namespace upcall::activation

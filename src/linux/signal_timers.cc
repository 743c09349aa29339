// Timers of the kernel. Those that signal the process do so in the kernel; the kernel cannot signal a virtual id, so a timer
// for one thread sends the reserved signal to the monitor, which posts the program's. A timer's signal is pending once;
// expirations while it is are the overrun, which only the one who takes it knows (timer_getoverrun).
#include "arch/x86_64/cpu.h"
#include "kernel/memory.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using namespace signals;

namespace {

struct Timer {
  Timer* next;
  int32_t id;
  int32_t tid;     // the thread it signals, 0: the process
  int32_t signal;  // to that thread
  int32_t overrun;
  bool delivered;  // since it was set: the overrun is ours to tell
};

constexpr uint32_t buckets = 64;
Timer* g_timers[buckets];  // g_lock guards all of this
Timer* g_free = nullptr;

Timer** find(int32_t id) noexcept {
  Timer** link = &g_timers[static_cast<uint32_t>(id) % buckets];
  while (*link && (*link)->id != id) link = &(*link)->next;
  return link;
}

Timer* find_or_make(int32_t id) noexcept {
  Timer** link = find(id);
  if (*link) return *link;
  if (!g_free) {
    constexpr size_t bytes = 4096;
    auto* block = static_cast<Timer*>(kernel::map_pages(bytes));
    if (!block) return nullptr;
    for (size_t i = 0; i < bytes / sizeof(Timer); ++i) {
      block[i].next = g_free;
      g_free = &block[i];
    }
  }
  Timer* timer = g_free;
  g_free = timer->next;
  *timer = {nullptr, id, 0, 0, 0, false};
  return *link = timer;
}

void forget(int32_t id) noexcept {
  Timer** link = find(id);
  Timer* timer = *link;
  if (!timer) return;
  *link = timer->next;
  timer->next = g_free;
  g_free = timer;
}

// Set anew or deleted: signals of before go, as in the kernel (6.13). Its own, too, are not delivered any more.
void drop_signals_of(int32_t id) noexcept {
  int32_t tid;
  {
    LockGuard guard(g_lock);
    const Timer* timer = *find(id);
    tid = timer ? timer->tid : 0;
    if (!tid) drop_timer(&g_process, id);
  }
  Thread* target = tid ? sched::g_threads.find(tid) : nullptr;
  if (!target) return;
  LockGuard guard(g_lock);
  drop_timer(&target->signals, id);
}

}  // namespace

void signals::timer_delivered(int32_t timer_id, int32_t overrun) noexcept {
  Timer* timer = find_or_make(timer_id);
  if (!timer) return;
  timer->overrun = overrun;
  timer->delivered = true;
}

bool signals::post_thread_timer(const Info& info) noexcept {
  int32_t tid, signal;
  {
    LockGuard guard(g_lock);
    const Timer* timer = *find(info.timer.timer_id);
    tid = timer ? timer->tid : 0;
    signal = timer ? timer->signal : 0;
  }
  const bool own = info.signo == activation::preempt_signal;  // deleted meanwhile, if it is not known
  if (!tid) return own;
  // Like the kernel: a timer of a thread that has ended goes on for nothing.
  if (Thread* target = sched::g_threads.find(tid)) {
    Info shown = info;
    shown.signo = signal;
    post_thread(target, signal, shown);
  }
  return true;
}

// fork's child has no timers.
void signals::forget_timers() noexcept {
  for (Timer*& list : g_timers) list = nullptr;
}

namespace {

// struct sigevent.
struct Event {
  uint64_t value;
  int32_t signal, notify, tid;
  uint32_t rest[11];
};
static_assert(sizeof(Event) == 64);

Thread* create_for_thread(Thread* t, const Event& wanted) noexcept {
  if (wanted.signal <= 0 || wanted.signal > signal_count) return answer(t, -e_inval);
  Event event = wanted;
  event.signal = activation::preempt_signal;
  event.tid = activation::monitor_tid();
  int32_t id;
  long r = kernel::sys(__NR_timer_create, t->rdi, &event, &id);
  if (kernel::is_error(r)) return answer(t, r);
  bool known = false;
  {
    LockGuard guard(g_lock);
    if (Timer* timer = find_or_make(id)) {
      *timer = {timer->next, id, wanted.tid, wanted.signal, 0, false};
      known = true;
    }
  }
  if (known && !upcall_copy_user(reinterpret_cast<void*>(t->rdx), &id, sizeof id)) return answer(t, 0);
  kernel::sys(__NR_timer_delete, id);
  LockGuard guard(g_lock);
  forget(id);
  return answer(t, known ? -e_fault : -e_again);
}

}  // namespace

Thread* sys_timer_create(Thread* t) noexcept {
  constexpr int32_t sigev_thread_id = 4;
  Event event;
  if (!t->rsi) return pass(t);
  if (upcall_copy_user(&event, reinterpret_cast<void*>(t->rsi), sizeof event)) return answer(t, -e_fault);
  if (event.signal >= 1 && event.signal <= signal_count) expect_from_kernel(bit(event.signal));
  if (event.notify != sigev_thread_id) return pass(t);
  if (!sched::g_threads.find(event.tid)) return answer(t, -e_inval);
  return create_for_thread(t, event);
}

Thread* sys_timer_settime(Thread* t) noexcept {
  auto id = static_cast<int32_t>(t->rdi);
  // Before the call: afterwards the first signal of the new time may be there. What the kernel refuses leaves all as it was.
  struct {
    int64_t seconds, nanoseconds;
  } times[2];  // interval, value
  bool valid = !upcall_copy_user(times, reinterpret_cast<void*>(t->rdx), sizeof times);
  for (auto& time : times)
    if (valid) valid = time.seconds >= 0 && static_cast<uint64_t>(time.nanoseconds) < 1'000'000'000u;
  if (!valid) return pass(t);
  drop_signals_of(id);
  {
    LockGuard guard(g_lock);
    if (Timer* timer = *find(id)) timer->overrun = 0;
  }
  return pass(t);
}

Thread* sys_timer_getoverrun(Thread* t) noexcept {
  long r = raw_call(t);
  if (kernel::is_error(r)) return answer(t, r);
  LockGuard guard(g_lock);
  const Timer* timer = *find(static_cast<int32_t>(t->rdi));
  return answer(t, timer && (timer->delivered || timer->tid) ? timer->overrun : r);
}

Thread* sys_timer_delete(Thread* t) noexcept {
  auto id = static_cast<int32_t>(t->rdi);
  long r = raw_call(t);
  if (r) return answer(t, r);
  drop_signals_of(id);
  LockGuard guard(g_lock);
  forget(id);
  return answer(t, 0);
}

}  // namespace upcall::linux_abi

// Posting: who gets a signal, and how it is told.
#include "linux/signal.h"

#include <initializer_list>

#include "arch/x86_64/cpu.h"
#include "base/log.h"
#include "kernel/futex.h"
#include "kernel/memory.h"

namespace upcall::linux_abi::signals {

SpinLock g_lock{Rank::signals};

namespace {

using sched::QueuedSignal;

Action g_actions[signal_count + 1];
QueuedSignal* g_process_queue = nullptr;
uint64_t g_process_pending = 0;
QueuedSignal* g_free = nullptr;
uint64_t g_left_to_kernel = 0;
constexpr int timer_slots = 256;
struct {
  int32_t timer_id, tid;
} g_timers[timer_slots];

QueuedSignal* new_queued() noexcept {
  if (!g_free) {
    constexpr size_t n = 64;
    auto* block = static_cast<QueuedSignal*>(kernel::map_pages(n * sizeof(QueuedSignal)));
    if (!block) return nullptr;
    for (size_t i = 0; i < n; ++i) {
      block[i].next = g_free;
      g_free = &block[i];
    }
  }
  QueuedSignal* q = g_free;
  g_free = q->next;
  q->next = nullptr;
  return q;
}

// Under g_lock. Standard signals are pending once, real-time signals as often as they were sent.
bool enqueue(uint64_t* pending, QueuedSignal** queue, int signal, const Info& info) noexcept {
  if (signal < 32 && (*pending & bit(signal))) return true;
  QueuedSignal* q = new_queued();
  if (!q) return false;
  q->signal = signal;
  __builtin_memcpy(q->info, &info, sizeof info);
  *pending |= bit(signal);
  while (*queue) queue = &(*queue)->next;
  *queue = q;
  return true;
}

// Under g_lock: the lowest-numbered signal of `set`, the oldest of its kind.
int dequeue(uint64_t* pending, QueuedSignal** queue, uint64_t set, Info* info) noexcept {
  uint64_t wanted = *pending & set;
  if (!wanted) return 0;
  // Faults first, then by number, as the kernel does.
  uint64_t first = wanted & activation::fault_signals ? wanted & activation::fault_signals : wanted;
  int signal = __builtin_ctzl(first) + 1;
  QueuedSignal** link = queue;
  while ((*link)->signal != signal) link = &(*link)->next;
  QueuedSignal* q = *link;
  *link = q->next;
  __builtin_memcpy(info, q->info, sizeof *info);
  q->next = g_free;
  g_free = q;
  for (q = *queue; q && q->signal != signal; q = q->next) {
  }
  if (!q) *pending &= ~bit(signal);
  return signal;
}

void drop(uint64_t* pending, QueuedSignal** queue, uint64_t set) noexcept {
  Info ignored;
  while (dequeue(pending, queue, set, &ignored)) {
  }
}

bool ignored(int signal, uint64_t mask) noexcept {
  if (mask & bit(signal)) return false;
  const Action& a = g_actions[signal];
  return a.handler == 1 || (a.handler == 0 && (default_ignored & bit(signal)));
}

bool wants(const Thread* t, int signal) noexcept {
  return !(t->signals.mask.load(relaxed) & bit(signal)) || (t->sigwait_set & bit(signal));
}

bool end_wait(Thread* t, uint64_t word) noexcept {
  if (!sched::claim_wait(t, word)) return false;
  // It may have looked already and have begun to wait again: it finds nothing then, and repeats the call.
  t->attention.store(1, relaxed);
  activation::finish_wait(t, -e_intr);
  return true;
}

// The thread has something to look at. Whatever it does, it must come to look soon.
void notify(Thread* t) noexcept {
  t->attention.store(1, fenced);  // pairs with begin_wait, enter_kernel: see there
  if (end_wait(t, t->wait_word.load(fenced))) return;
  if (activation::self()->current == t) return;  // it looks on its way out
  // Waits that begin with a light fence: either we see the wait now, or it sees attention.
  heavy_fence();
  uint64_t word = t->wait_word.load(acquire);
  if (word == t->cancelable_word && end_wait(t, word)) return;
  // The thread may be on its way from one activation or state to another. Whatever of that is missed here, the
  // monitor's ticks see attention on a running thread.
  if (!activation::g_monitor_ticking.load(relaxed)) activation::poke_monitor();
  Activation* a;
  sched::State state;
  do {  // acquire: pair with dispatch, which stores the activation before the state; the two belong together
    a = t->activation.load(acquire);
    state = t->state.load(acquire);
  } while (a != t->activation.load(acquire));
  if (!a || a == activation::self()) return;
  switch (state) {
    case sched::State::running:
      if (a->lost.load(relaxed))
        activation::send_signal(a);
      else
        activation::preempt_activation(a);
      break;
    case sched::State::in_kernel:
      activation::send_signal(a);
      break;
    default:
      break;
  }
}

}  // namespace

Action action_of(int signal) noexcept {
  LockGuard guard(g_lock);
  return g_actions[signal];
}

void kernel_action(int signal, const Action& a) noexcept {
  kernel::sys(__NR_rt_sigaction, signal, &a, nullptr, 8);
}

constexpr uint64_t child_flags = flag_nocldstop | 2 /* SA_NOCLDWAIT */;

void catch_in_kernel(int signal, uint64_t more_flags = 0) noexcept {
  // No mask: faults inside our own handlers must reach us too. But the reserved signal is blocked in its own: the monitor
  // sends the next one while the handler waits for its CPU, and again in that one's, until the alternate stack is full.
  uint64_t again = signal == activation::preempt_signal ? 0 : flag_nodefer;
  Action ours = {reinterpret_cast<uint64_t>(&upcall_on_signal),
                 flag_siginfo | flag_onstack | flag_restart | flag_restorer | again | more_flags,
                 reinterpret_cast<uint64_t>(upcall_kernel_restorer), 0};
  kernel_action(signal, ours);
}

// The kernel keeps "ignore" and the child flags; handlers are ours to call.
void mirror_in_kernel(int signal, const Action& a) noexcept {
  if (signal == activation::preempt_signal || (bit(signal) & (activation::fault_signals | unblockable)))
    return;
  Action k = a;
  if (k.handler > 1) {
    k.handler = 0;
    k.flags &= child_flags;
    k.restorer = 0;
  }
  kernel_action(signal, k);
}

void set_action(int signal, const Action& a) noexcept {
  {
    LockGuard guard(g_lock);
    g_actions[signal] = a;
    if (a.handler == 1 || (a.handler == 0 && (default_ignored & bit(signal))))
      drop(&g_process_pending, &g_process_queue, bit(signal));
  }
  mirror_in_kernel(signal, a);
}

void leave_to_kernel(uint64_t set) noexcept {
  g_left_to_kernel |= set;
  activation::g_monitor_signals.store(activation::activation_mask & ~unblockable & ~g_left_to_kernel,
                                      relaxed);
  if (activation::g_runtime.started) activation::poke_monitor();
}

uint64_t left_to_kernel() noexcept { return g_left_to_kernel; }

bool post_thread(Thread* t, int signal, const Info& info) noexcept {
  {
    LockGuard guard(g_lock);
    if (!t->tid) return true;  // it has just ended
    if (t->parked.load(relaxed) && signal != setxid_signal) return true;
    if (ignored(signal, t->signals.mask.load(relaxed)) && !(t->sigwait_set & bit(signal))) return true;
    if (!enqueue(&t->signals.pending, &t->signals.queue, signal, info)) return false;
  }
  if (wants(t, signal)) notify(t);
  return true;
}

bool post_process(int signal, const Info& info) noexcept {
  Thread* main_or_first = sched::g_threads.find(activation::g_runtime.pid);
  Thread* target = nullptr;
  // sigwait first, then the main thread, then anyone who does not block it.
  target = sched::g_threads.find_if([&](Thread* t) { return (t->sigwait_set & bit(signal)) != 0; });
  if (!target && main_or_first && wants(main_or_first, signal)) target = main_or_first;
  if (!target) target = sched::g_threads.find_if([&](Thread* t) { return wants(t, signal); });
  {
    LockGuard guard(g_lock);
    if (ignored(signal, target && !(target->sigwait_set & bit(signal)) ? 0 : bit(signal))) return true;
    if (!enqueue(&g_process_pending, &g_process_queue, signal, info)) return false;
  }
  if (target) notify(target);
  return true;
}

int take(Thread* t, uint64_t set, Info* info) noexcept {
  LockGuard guard(g_lock);
  if (int s = dequeue(&t->signals.pending, &t->signals.queue, set, info)) return s;
  return dequeue(&g_process_pending, &g_process_queue, set, info);
}

uint64_t pending_for(const Thread* t) noexcept {
  LockGuard guard(g_lock);
  return t->signals.pending | g_process_pending;
}

void recheck(Thread* t) noexcept {
  if (pending_for(t) & ~t->signals.mask.load(relaxed)) t->attention.store(1, relaxed);
}

void note_timer(int32_t timer_id, int32_t tid) noexcept {
  LockGuard guard(g_lock);
  for (auto& slot : g_timers)
    if (!slot.tid || slot.timer_id == timer_id) {
      slot = {timer_id, tid};
      return;
    }
}

// On the monitor.
void on_process_signal(int signal, void* raw) noexcept {
  Info info;
  __builtin_memcpy(&info, raw, sizeof info);
  if (log_on(Topic::signal))
    (Line() << "signal " << signal << " for the process, code " << info.code).write();
  constexpr int32_t si_timer = -2;
  if (info.code == si_timer) {
    Thread* target = nullptr;
    {
      LockGuard guard(g_lock);
      for (auto& slot : g_timers)
        if (slot.tid && slot.timer_id == info.timer.timer_id) target = sched::g_threads.find(slot.tid);
    }
    if (target) {
      post_thread(target, signal, info);
      return;
    }
  }
  post_process(signal, info);
}

// SIGPIPE and SIGXFSZ go to the kernel thread that made the call; nobody else would take them.
bool after_blocking(Thread* t, long result) noexcept {
  if (t->restore_mask && result != -e_intr) t->attention.store(1, relaxed);  // before_resume restores it
  constexpr long e_fbig = 27;
  if (result == -e_pipe || result == -e_fbig) {
    uint64_t set = bit(result == -e_pipe ? 13 : 25);
    Info info;
    __kernel_timespec zero = {0, 0};
    int s = static_cast<int>(kernel::sys(__NR_rt_sigtimedwait, &set, &info, &zero, 8));
    if (s > 0) post_thread(t, s, info);
    return true;
  }
  if (result != -e_intr) return true;
  t->interrupted_call = true;
  if (pending_for(t) & ~t->signals.mask.load(relaxed)) {
    t->attention.store(1, relaxed);
    return true;
  }
  // Our own signal, for nothing: call again, unless the thread was told of something since.
  if (t->attention.exchange(0, acq_rel) && (pending_for(t) & ~t->signals.mask.load(relaxed))) {
    t->attention.store(1, relaxed);
    return true;
  }
  return false;
}

Thread* wait_for_signal(Thread* t, uint64_t sigwait_set, uint64_t deadline) noexcept {
  Activation* a = activation::self();
  activation::Processor* p = a->processor;
  activation::save_for_switch(t);
  t->timeout_result = -e_again;
  {
    LockGuard guard(g_lock);
    t->sigwait_set = sigwait_set;
  }
  uint64_t word = sched::begin_wait_until(t, &p->timers, deadline);
  if (!word) {
    t->attention.store(1, relaxed);  // before_resume ends the wait for signals
    return answer(t, -e_nomem);
  }
  // fenced: pairs with notify
  bool something =
      t->attention.load(fenced) || (pending_for(t) & (sigwait_set | ~t->signals.mask.load(relaxed)));
  bool over = sched::came_early(t, deadline);
  if ((something || over) && sched::claim_wait(t, word)) {
    if (sched::is_armed(t)) t->timers->cancel(t);
    t->attention.store(1, relaxed);
    t->state.store(sched::State::running, relaxed);
    return answer(t, something ? -e_intr : t->timeout_result);
  }
  return activation::schedule(a);
}

}  // namespace upcall::linux_abi::signals

namespace upcall::linux_abi {

using namespace signals;

void discard_signals(Thread* t, uint64_t set) noexcept {
  LockGuard guard(g_lock);
  drop(&t->signals.pending, &t->signals.queue, set);
}

void pass_signals_on(Thread* t) noexcept {
  uint64_t pending;
  {
    LockGuard guard(g_lock);
    pending = g_process_pending;
  }
  if (!pending) return;
  Thread* other = sched::g_threads.find_if(
      [&](Thread* w) { return w != t && (pending & (~w->signals.mask.load(relaxed) | w->sigwait_set)); });
  if (other) notify(other);
}

void reset_signals(Thread* t) noexcept {
  // POSIX: pending signals are not inherited.
  t->signals.pending = 0;
  t->signals.queue = nullptr;
  g_process_pending = 0;
  g_process_queue = nullptr;
  g_left_to_kernel = 0;
  for (auto& slot : g_timers) slot = {0, 0};
}

namespace {
constexpr int kept_signals[] = {4, 5, 7, 8, 11, 31, activation::preempt_signal};

// A signal that the kernel is told nothing of but how children are reported.
bool caught_by_program(int s) noexcept {
  return g_actions[s].handler > 1 &&
         !(bit(s) & (activation::fault_signals | unblockable | bit(activation::preempt_signal)));
}
}  // namespace

void take_over_signals(Thread* t) noexcept {
  uint64_t mask = activation::activation_mask, before = 0;
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, &before, 8);
  t->signals.mask.store(before, relaxed);
  for (int s = 1; s <= signal_count; ++s) {
    if (bit(s) & unblockable) continue;
    Action a;
    if (kernel::sys(__NR_rt_sigaction, s, nullptr, &a, 8) == 0) {
      LockGuard guard(g_lock);
      g_actions[s] = a;
    }
    if (a.handler > 1) mirror_in_kernel(s, a);
  }
  for (int s : kept_signals) catch_in_kernel(s);
  activation::AltStack ours = activation::self()->altstack, theirs;
  kernel::sys(__NR_sigaltstack, &ours, &theirs);
  t->altstack_sp = theirs.sp, t->altstack_size = theirs.size, t->altstack_flags = theirs.flags & ~1;
  activation::g_monitor_signals.store(activation::activation_mask & ~unblockable & ~g_left_to_kernel,
                                      relaxed);
  activation::g_process_signal = on_process_signal;
  activation::g_before_resume = before_resume;
  activation::g_after_blocking = after_blocking;
}

void let_exec_inherit(Thread* t) noexcept {
  for (int s : kept_signals)
    if (s != activation::preempt_signal && g_actions[s].handler == 1) kernel_action(s, g_actions[s]);
  // The kernel's mask is the program's now, its dispositions are not: a signal with a handler would kill the process,
  // although the exec may fail. exec itself sets what is caught to the default.
  for (int s = 1; s <= signal_count; ++s)
    if (caught_by_program(s)) catch_in_kernel(s, g_actions[s].flags & child_flags);
  uint64_t mask = t->signals.mask.load(relaxed);
  // What is blocked and pending stays pending in the new program. Still blocked here: to this kernel thread alone, where
  // the monitor does not take it.
  uint64_t all = ~0ul;
  kernel::sys(__NR_rt_sigprocmask, 2, &all, nullptr, 8);
  auto tid = static_cast<int32_t>(kernel::sys(__NR_gettid));
  {
    LockGuard guard(g_lock);
    for (auto* queue : {t->signals.queue, g_process_queue})
      for (auto* q = queue; q; q = q->next)
        if (mask & bit(q->signal))
          kernel::sys(__NR_rt_tgsigqueueinfo, activation::g_runtime.pid, tid, q->signal,
                      static_cast<void*>(q->info));
  }
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
}

void keep_after_failed_exec() noexcept {
  uint64_t mask = activation::activation_mask;
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
  // let_exec_inherit's copies; ours are in their queues still.
  uint64_t own = 0;
  {
    LockGuard guard(g_lock);
    Thread* t = activation::self()->current;
    for (auto* queue : {t->signals.queue, g_process_queue})
      for (auto* q = queue; q; q = q->next) own |= bit(q->signal);
  }
  own &= mask;
  __kernel_timespec zero = {0, 0};
  for (Info info; own && kernel::sys(__NR_rt_sigtimedwait, &own, &info, &zero, 8) > 0;) {
  }
  for (int s = 1; s <= signal_count; ++s)
    if (caught_by_program(s)) mirror_in_kernel(s, g_actions[s]);
  for (int s : kept_signals) catch_in_kernel(s);
}

void give_back_signals(Thread* t) noexcept {
  activation::AltStack theirs = {t->altstack_sp, t->altstack_flags & 2, t->altstack_size};
  kernel::sys(__NR_sigaltstack, &theirs, nullptr);
  for (int s = 1; s <= signal_count; ++s) {
    const Action& a = g_actions[s];
    bool ours = (bit(s) & activation::fault_signals) || s == activation::preempt_signal;
    if (!(bit(s) & unblockable) && (a.handler > 1 || ours)) kernel_action(s, a);
  }
  uint64_t mask = t->signals.mask.load(relaxed);
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
}

}  // namespace upcall::linux_abi

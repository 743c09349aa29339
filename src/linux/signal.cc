// Posting: who gets a signal, and how it is told.
#include "linux/signal.h"

#include <initializer_list>

#include "arch/x86_64/cpu.h"
#include "base/log.h"
#include "kernel/futex.h"
#include "kernel/memory.h"
#include "linux/descriptors.h"

namespace upcall::linux_abi::signals {

namespace {

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

namespace {

void kernel_action(int signal, const Action& a) noexcept {
  kernel::sys(__NR_rt_sigaction, signal, &a, nullptr, 8);
}

bool reserved(int signal) noexcept {
  return signal == activation::preempt_signal || signal == activation::credentials_signal;
}

constexpr uint64_t child_flags = flag_nocldstop | flag_nocldwait;

void catch_in_kernel(int signal, uint64_t more_flags = 0, uint64_t restart = flag_restart) noexcept {
  // No mask: faults inside our own handlers must reach us too. But the reserved signal is blocked in its own: the monitor
  // sends the next one while the handler waits for its CPU, and again in that one's, until the alternate stack is full.
  // That of credentials is over before anything else. One that interrupts a call posts a signal: not twice at a time.
  uint64_t again = reserved(signal) || !restart ? 0 : flag_nodefer;
  uint64_t mask = signal == activation::credentials_signal ? ~activation::fault_signals : 0;
  Action ours = {reinterpret_cast<uint64_t>(&upcall_on_signal),
                 flag_siginfo | flag_onstack | restart | flag_restorer | again | more_flags,
                 reinterpret_cast<uint64_t>(upcall_kernel_restorer), mask};
  kernel_action(signal, ours);
}

// The kernel keeps "ignore" and the child flags; handlers are ours to call.
Action as_in_kernel(const Action& a) noexcept {
  if (a.handler <= 1) return a;
  return {0, a.flags & child_flags, 0, a.mask};
}

}  // namespace

void interrupt_in_kernel(int signal) noexcept { catch_in_kernel(signal, 0, 0); }

void mirror_in_kernel(int signal, const Action& a) noexcept {
  if (reserved(signal) || (bit(signal) & (activation::fault_signals | unblockable))) return;
  kernel_action(signal, as_in_kernel(a));
}

void set_action(int signal, const Action& a) noexcept {
  Action old = exchange_action(signal, a), before = as_in_kernel(old), now = as_in_kernel(a);
  if (is_ignored(signal, a))
    discard_everywhere(bit(signal));
  else if (before.handler == now.handler && !((before.flags ^ now.flags) & child_flags))
    return;  // the kernel would throw away what it holds of a signal that its default action ignores
  mirror_in_kernel(signal, a);
}

namespace {

// Who takes a signal of the process: who waits for it, the main thread as in the kernel, the sender.
Thread* taker_of(int signal) noexcept {
  Thread* t = sched::g_threads.find_if([&](Thread* w) { return (w->sigwait_set & bit(signal)) != 0; });
  if (t) return t;
  t = sched::g_threads.find(activation::g_runtime.pid);
  if (t && wants(t, signal)) return t;
  t = activation::self()->current;
  if (t && !t->parked.load(relaxed) && wants(t, signal)) return t;
  return sched::g_threads.find_if([&](Thread* w) { return wants(w, signal); });
}

void pass_on(Thread* t, uint64_t set) noexcept {
  set &= pending_for_process();
  if (!set) return;
  Thread* other = sched::g_threads.find_if(
      [&](Thread* w) { return w != t && (set & (~w->signals.mask.load(relaxed) | w->sigwait_set)); });
  if (other) notify(other);
}

}  // namespace

bool post_thread(Thread* t, int signal, const Info& info) noexcept {
  discard_opposite(signal);
  {
    LockGuard guard(g_lock);
    if (!t->tid) return true;  // it has just ended
    if (t->parked.load(relaxed) && signal != setxid_signal) return true;
    if (ignored_now(signal) && !(t->signals.mask.load(relaxed) & bit(signal))) return true;
    if (!enqueue(&t->signals, signal, info)) return false;
  }
  // One that it may read from a signalfd: it shows it to the kernel, if it is in a call there.
  if (wants(t, signal) || (left_to_kernel() & bit(signal))) notify(t);
  return true;
}

Queued queue_for_process(int signal, const Info& info) noexcept {
  discard_opposite(signal);
  const Thread* main = sched::g_threads.find(activation::g_runtime.pid);
  LockGuard guard(g_lock);
  // As the kernel, which asks the first thread.
  if (ignored_now(signal) && !(main && (main->signals.mask.load(relaxed) & bit(signal))))
    return Queued::thrown_away;
  return enqueue(&g_process, signal, info) ? Queued::yes : Queued::no_memory;
}

void tell_process(int signal) noexcept {
  if (Thread* target = taker_of(signal))
    notify(target);
  else
    nobody_wants(signal);
}

bool post_process(int signal, const Info& info) noexcept {
  Queued queued = queue_for_process(signal, info);
  // Now that it is there: a thread whose mask opens later finds it.
  if (queued == Queued::yes) tell_process(signal);
  return queued != Queued::no_memory;
}

void set_mask(Thread* t, uint64_t mask) noexcept {
  uint64_t old = t->signals.mask.load(relaxed);
  mask &= ~unblockable;
  if (mask == old) return;
  t->signals.mask.store(mask, fenced);  // pairs with close_in_kernel
  if (old & ~mask) {
    open_in_kernel(~mask);
    recheck(t);
  }
  // A signal of the process may have been left to this thread, which blocks it now. Plain: one that is posted this moment
  // is offered to whoever wants it by now.
  uint64_t closed = mask & ~old;
  if (__atomic_load_n(&g_process.pending, __ATOMIC_RELAXED) & closed) pass_on(t, closed);
}

void recheck(Thread* t) noexcept {
  if (pending_for(t) & ~t->signals.mask.load(relaxed)) t->attention.store(1, relaxed);
}

void on_process_signal(int signal, void* raw) noexcept {
  Info info;
  __builtin_memcpy(&info, raw, sizeof info);
  if (log_on(Topic::signal))
    (Line() << "signal " << signal << " for the process, code " << info.code).write();
  expect_from_kernel(bit(signal));
  if (info.code == si_timer && post_thread_timer(info)) return;
  if (signal == activation::preempt_signal) {
    post_file(info);
    return;
  }
  post_process(signal, info);
}

long borrow_mask(Thread* t, uint64_t user_mask, uint64_t size) noexcept {
  uint64_t mask;
  if (t->restore_mask) return 0;  // it has it: the call is made again
  if (size != mask_bytes) return -e_inval;
  if (upcall_load_user64(reinterpret_cast<uint64_t*>(user_mask), &mask)) return -e_fault;
  t->saved_mask = t->signals.mask.load(relaxed);
  t->restore_mask = true;
  set_mask(t, mask);
  post_pending(t->saved_mask & ~mask);
  return 0;
}

// What a call under a borrowed mask has answered stands: the thread's own is back before a signal is looked at.
void return_mask(Thread* t) noexcept {
  if (!t->restore_mask) return;
  t->restore_mask = false;
  set_mask(t, t->saved_mask);
}

bool lets_something_through(const Thread* t) noexcept {
  return t->restore_mask && (pending_for(t) & ~t->signals.mask.load(relaxed));
}

namespace {

// SIGPIPE and SIGXFSZ go to the kernel thread that made the call; nobody else would take them.
bool settle_call(Thread* t, long result) noexcept {
  if (t->lent) take_back_signals(t);
  bool interrupted = result == -e_intr || result == -e_restart;
  if (!interrupted) return_mask(t);
  constexpr long e_fbig = 27;
  if (result == -e_pipe || result == -e_fbig) {
    uint64_t set = bit(result == -e_pipe ? 13 : 25);
    Info info;
    __kernel_timespec zero = {0, 0};
    int s = static_cast<int>(kernel::sys(__NR_rt_sigtimedwait, &set, &info, &zero, 8));
    if (s > 0) post_thread(t, s, info);
    return true;
  }
  constexpr long e_io = 5;
  if (result == -e_io && read_in_background(t)) return false;
  if (!interrupted) return true;
  // The kernel's own: after a stop some calls end so without any handler (signal(7)).
  if (result == -e_intr && !activation::self()->interrupt.load(relaxed)) {
    t->interrupted_call = sched::Interrupted::no;
    if (t->restore_mask) t->attention.store(1, relaxed);  // before_resume gives it back
    return true;
  }
  t->interrupted_call =
      result == -e_restart && restartable(t->nr) ? sched::Interrupted::restarts : sched::Interrupted::ends;
  if (pending_for(t) & ~t->signals.mask.load(relaxed)) {
    t->attention.store(1, relaxed);
    return true;
  }
  if (t->call_deadline) {  // before_resume repeats it, for the rest of its time
    t->attention.store(1, relaxed);
    return true;
  }
  // Our own signal, for nothing: call again, unless the thread was told of something since.
  if (t->attention.exchange(0, acq_rel) && (pending_for(t) & ~t->signals.mask.load(relaxed))) {
    t->attention.store(1, relaxed);
    return true;
  }
  lend_signals(t);
  return false;
}

}  // namespace

bool after_blocking(Thread* t, long result) noexcept {
  bool over = settle_call(t, result);
  if (over && t->handed_call) end_handed_call(t);
  return over;
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
  if (sigwait_set) open_in_kernel(sigwait_set);
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

void pass_signals_on(Thread* t) noexcept { pass_on(t, ~0ul); }

void reset_signals(Thread* t) noexcept {
  forget_queues(t);
  forget_timers();
  forget_files();
  forget_taking();
  t->lent = nullptr;
}

namespace {
constexpr int kept_signals[] = {
    4, 5, 7, 8, 11, 31, activation::preempt_signal, activation::credentials_signal};

// A signal that the kernel is told nothing of but how children are reported.
bool caught_by_program(int s) noexcept {
  return action_of(s).handler > 1 && !reserved(s) && !(bit(s) & (activation::fault_signals | unblockable));
}

// What is blocked and pending for the first thread alone (raise) would stay with its kernel thread. Only the code tells
// which those are.
void take_pending(Thread* t, uint64_t blocked) noexcept {
  uint64_t set = blocked & takeable & ~left_to_kernel();
  __kernel_timespec zero = {0, 0};
  for (Info info; set;) {
    long s = kernel::sys(__NR_rt_sigtimedwait, &set, &info, &zero, 8);
    if (s <= 0) return;
    LockGuard guard(g_lock);
    enqueue(info.code == si_tkill ? &t->signals : &g_process, static_cast<int>(s), info);
  }
}

}  // namespace

void take_over_signals(Thread* t) noexcept {
  note_left_to_kernel(read_by_signalfds());
  uint64_t mask = activation::activation_mask, before = 0;
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, &before, 8);
  t->signals.mask.store(before, relaxed);
  take_pending(t, before);  // the kernel throws away what its default action ignores when it is told of that
  for (int s = 1; s <= signal_count; ++s) {
    if (bit(s) & unblockable) continue;
    Action a;
    if (kernel::sys(__NR_rt_sigaction, s, nullptr, &a, 8) == 0) exchange_action(s, a);
    if (a.handler > 1) mirror_in_kernel(s, a);
  }
  for (int s : kept_signals) catch_in_kernel(s);
  activation::AltStack ours = activation::self()->altstack, theirs;
  kernel::sys(__NR_sigaltstack, &ours, &theirs);
  t->altstack_sp = theirs.sp, t->altstack_size = theirs.size, t->altstack_flags = theirs.flags & ~1;
  activation::g_monitor_signals.store(takeable & ~(left_to_kernel() & before), relaxed);
  activation::g_process_signal = on_process_signal;
  activation::g_before_resume = before_resume;
  activation::g_after_blocking = after_blocking;
}

void let_exec_inherit(Thread* t) noexcept {
  for (int s : kept_signals)
    if (!reserved(s) && action_of(s).handler == 1) kernel_action(s, action_of(s));
  // The kernel's mask is the program's now, its dispositions are not: a signal with a handler would kill the process,
  // although the exec may fail. exec itself sets what is caught to the default.
  for (int s = 1; s <= signal_count; ++s)
    if (caught_by_program(s)) catch_in_kernel(s, action_of(s).flags & child_flags);
  uint64_t mask = t->signals.mask.load(relaxed);
  // What is blocked and pending stays pending in the new program. Still blocked here: to this kernel thread alone, where
  // the monitor does not take it.
  uint64_t all = ~0ul;
  kernel::sys(__NR_rt_sigprocmask, 2, &all, nullptr, 8);
  auto tid = static_cast<int32_t>(kernel::sys(__NR_gettid));
  {
    LockGuard guard(g_lock);
    t->exec_copies = 0;
    for (auto* queue : {t->signals.queue, g_process.queue})
      for (auto* q = queue; q; q = q->next)
        if ((mask & bit(q->signal)) && kernel::sys(__NR_rt_tgsigqueueinfo, activation::g_runtime.pid, tid,
                                                   q->signal, static_cast<void*>(q->info)) == 0)
          ++t->exec_copies;
  }
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
}

void keep_after_failed_exec() noexcept {
  uint64_t mask = activation::activation_mask;
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
  // let_exec_inherit's copies; ours are in their queues still. What the kernel holds for the process comes after them.
  Thread* t = activation::self()->current;
  __kernel_timespec zero = {0, 0};
  for (Info info; t->exec_copies; --t->exec_copies) kernel::sys(__NR_rt_sigtimedwait, &mask, &info, &zero, 8);
  for (int s = 1; s <= signal_count; ++s)
    if (caught_by_program(s)) mirror_in_kernel(s, action_of(s));
  for (int s : kept_signals) catch_in_kernel(s);
}

void tell_child(arch::ChildState* state) noexcept {
  state->caught = 0;
  for (int s = 1; s <= signal_count; ++s) {
    if (!caught_by_program(s)) continue;
    Action a = action_of(s);
    auto& to = state->actions[state->caught++];
    to.signal = static_cast<uint64_t>(s);
    static_assert(sizeof to.action == sizeof a);
    __builtin_memcpy(to.action, &a, sizeof to.action);
  }
}

void clear_handlers() noexcept {
  for (int s = 1; s <= signal_count; ++s)
    if (action_of(s).handler > 1) exchange_action(s, Action{});
}

void give_back_signals(Thread* t) noexcept {
  activation::AltStack theirs = {t->altstack_sp, t->altstack_size ? t->altstack_flags : ss_disable,
                                 t->altstack_size};
  kernel::sys(__NR_sigaltstack, &theirs, nullptr);
  for (int s = 1; s <= signal_count; ++s) {
    const Action& a = action_of(s);
    bool ours = (bit(s) & activation::fault_signals) || reserved(s);
    if (!(bit(s) & unblockable) && (a.handler > 1 || ours)) kernel_action(s, a);
  }
  uint64_t mask = t->signals.mask.load(relaxed);
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
}

}  // namespace upcall::linux_abi

// signalfd and signals for one thread. The kernel reads what is pending for the kernel thread that calls read or poll, but a
// thread's own signals are queued here. For the time of a call that may look at a signalfd they are shown to the kernel
// thread that makes it; what has not been read is taken back.
#include "kernel/futex.h"
#include "linux/signal.h"

namespace upcall::linux_abi::signals {

using sched::QueuedSignal;

void lend_signals(Thread* t) noexcept {
  if (!may_lend(t)) return;
  uint64_t set = t->signals.mask.load(relaxed) & left_to_kernel();
  LockGuard guard(g_lock);
  QueuedSignal** link = &t->signals.queue;
  QueuedSignal** end = &t->lent;
  while (*end) end = &(*end)->next;
  uint64_t left = 0;
  while (QueuedSignal* q = *link) {
    if ((set & bit(q->signal)) &&
        kernel::sys(__NR_rt_tgsigqueueinfo, activation::g_runtime.pid, activation::self()->tid, q->signal,
                    static_cast<void*>(q->info)) == 0) {
      *link = q->next;
      q->next = nullptr;
      *end = q;
      end = &q->next;
    } else {
      left |= bit(q->signal);
      link = &q->next;
    }
  }
  t->signals.pending = left;
}

void take_back_signals(Thread* t) noexcept {
  constexpr size_t told = 32;  // bytes of siginfo that say who sent what
  uint64_t set = 0;
  QueuedSignal* back = nullptr;
  QueuedSignal** back_end = &back;
  LockGuard guard(g_lock);
  for (const QueuedSignal* q = t->lent; q; q = q->next) set |= bit(q->signal);
  __kernel_timespec zero = {0, 0};
  while (t->lent) {
    Info info;
    long s = kernel::sys(__NR_rt_sigtimedwait, &set, &info, &zero, 8);
    if (s <= 0) break;
    QueuedSignal** link = &t->lent;
    while (*link && ((*link)->signal != s || __builtin_memcmp((*link)->info, &info, told) != 0))
      link = &(*link)->next;
    if (!*link) {  // all that was ours has been read; this one waits for the process
      send_again(static_cast<int>(s), info);
      break;
    }
    *back_end = *link;
    *link = (*link)->next;
    back_end = &(*back_end)->next;
    t->signals.pending |= bit(static_cast<int>(s));
  }
  *back_end = t->signals.queue;  // older than what has come since
  t->signals.queue = back;
  while (QueuedSignal* q = t->lent) {
    t->lent = q->next;
    free_queued(q);
  }
}

}  // namespace upcall::linux_abi::signals

// The queues of pending signals: what is kept, what is taken first, and the actions that decide about it.
#include <initializer_list>

#include "kernel/memory.h"
#include "linux/signal.h"

namespace upcall::linux_abi::signals {

SpinLock g_lock{Rank::signals};
sched::SignalState g_process{};

namespace {

using sched::QueuedSignal;
using sched::SignalState;

Action g_actions[signal_count + 1];
QueuedSignal* g_free = nullptr;
atomic<uint64_t> g_queued{0};  // changed under g_lock

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
  g_queued.store(g_queued.load(relaxed) + 1, relaxed);
  return q;
}

Info* info_of(QueuedSignal* q) noexcept { return reinterpret_cast<Info*>(q->info); }

// A timer has one signal pending at most: those that follow are its overrun.
bool add_overrun(QueuedSignal* queue, int signal, const Info& info) noexcept {
  for (QueuedSignal* q = queue; q; q = q->next) {
    Info* old = info_of(q);
    if (q->signal != signal || old->code != si_timer || old->timer.timer_id != info.timer.timer_id) continue;
    constexpr int64_t most = 0x7fffffff;
    int64_t sum = int64_t{old->timer.overrun} + info.timer.overrun + 1;
    old->timer.overrun = static_cast<int32_t>(sum < most ? sum : most);
    return true;
  }
  return false;
}

void drop(SignalState* of, uint64_t set) noexcept {
  QueuedSignal** link = &of->queue;
  while (QueuedSignal* q = *link) {
    if (set & bit(q->signal)) {
      *link = q->next;
      free_queued(q);
    } else {
      link = &q->next;
    }
  }
  of->pending &= ~set;
}

}  // namespace

void free_queued(QueuedSignal* q) noexcept {
  q->next = g_free;
  g_free = q;
  g_queued.store(g_queued.load(relaxed) - 1, relaxed);
}

Action action_of(int signal) noexcept {
  LockGuard guard(g_lock);
  return g_actions[signal];
}

Action claim_action(int signal) noexcept {
  LockGuard guard(g_lock);
  Action a = g_actions[signal];
  if (a.handler > 1 && (a.flags & flag_resethand)) g_actions[signal].handler = 0;
  return a;
}

Action exchange_action(int signal, const Action& a) noexcept {
  LockGuard guard(g_lock);
  Action old = g_actions[signal];
  g_actions[signal] = a;
  return old;
}

bool ignored_now(int signal) noexcept { return is_ignored(signal, g_actions[signal]); }

// Standard signals are pending once, real-time signals as often as they were sent.
bool enqueue(SignalState* of, int signal, const Info& info) noexcept {
  if (info.code == si_timer) {
    if ((of->pending & bit(signal)) && add_overrun(of->queue, signal, info)) return true;
  } else if (signal < 32 && (of->pending & bit(signal))) {
    return true;
  }
  QueuedSignal* q = new_queued();
  if (!q) return false;
  q->signal = signal;
  __builtin_memcpy(q->info, &info, sizeof info);
  of->pending |= bit(signal);
  QueuedSignal** end = &of->queue;
  while (*end) end = &(*end)->next;
  *end = q;
  return true;
}

// The lowest-numbered signal of `set`, the oldest of its kind.
int dequeue(SignalState* of, uint64_t set, Info* info) noexcept {
  uint64_t wanted = of->pending & set;
  if (!wanted) return 0;
  // Faults first, then by number, as the kernel does.
  uint64_t first = wanted & activation::fault_signals ? wanted & activation::fault_signals : wanted;
  int signal = __builtin_ctzl(first) + 1;
  QueuedSignal** link = &of->queue;
  while ((*link)->signal != signal) link = &(*link)->next;
  QueuedSignal* q = *link;
  *link = q->next;
  __builtin_memcpy(info, q->info, sizeof *info);
  QueuedSignal* more = q->next;
  free_queued(q);
  while (more && more->signal != signal) more = more->next;
  if (!more) of->pending &= ~bit(signal);
  if (info->code == si_timer) timer_delivered(info->timer.timer_id, info->timer.overrun);
  return signal;
}

bool may_queue(int signal, Info* info) noexcept {
  const bool standard = signal < 32;
  constexpr uint32_t few = 64;  // what may be lost of a standard signal is not worth a call
  if (standard && (info->code >= 0 || g_queued.load(relaxed) < few)) return true;
  constexpr int rlimit_sigpending = 11;
  uint64_t limit[2];
  if (kernel::sys(__NR_prlimit64, 0, rlimit_sigpending, nullptr, static_cast<uint64_t*>(limit))) return true;
  if (g_queued.load(relaxed) < limit[0]) return true;
  if (!standard && info->code != si_user) return false;
  // What a handler sees of a signal that the kernel had no room for.
  *info = {};
  info->signo = signal;
  return true;
}

void drop_timer(SignalState* of, int32_t timer_id) noexcept {
  QueuedSignal** link = &of->queue;
  uint64_t left = 0;
  while (QueuedSignal* q = *link) {
    if (info_of(q)->code == si_timer && info_of(q)->timer.timer_id == timer_id) {
      *link = q->next;
      free_queued(q);
    } else {
      left |= bit(q->signal);
      link = &q->next;
    }
  }
  of->pending = left;
}

void discard_everywhere(uint64_t set) noexcept {
  {
    LockGuard guard(g_lock);
    drop(&g_process, set);
  }
  sched::g_threads.find_if([&](Thread* t) {
    // Racy: what comes now may as well have come a moment later.
    if (__atomic_load_n(&t->signals.pending, __ATOMIC_RELAXED) & set) {
      LockGuard guard(g_lock);
      drop(&t->signals, set);
    }
    return false;
  });
}

void discard_opposite(int signal) noexcept {
  constexpr int sigcont = 18;
  if (bit(signal) & default_stop)
    discard_everywhere(bit(sigcont));
  else if (signal == sigcont)
    discard_everywhere(default_stop);
}

int take(Thread* t, uint64_t set, Info* info) noexcept {
  LockGuard guard(g_lock);
  if (int s = dequeue(&t->signals, set, info)) return s;
  return dequeue(&g_process, set, info);
}

uint64_t pending_for(const Thread* t) noexcept {
  LockGuard guard(g_lock);
  return t->signals.pending | g_process.pending;
}

uint64_t pending_for_process() noexcept {
  LockGuard guard(g_lock);
  return g_process.pending;
}

void forget_queues(Thread* survivor) noexcept {
  // POSIX: pending signals are not inherited. Their memory, a few entries, is not looked for.
  for (SignalState* s : {&survivor->signals, &g_process}) s->pending = 0, s->queue = nullptr;
  g_queued.store(0, relaxed);
}

}  // namespace upcall::linux_abi::signals

namespace upcall::linux_abi {

void discard_signals(Thread* t, uint64_t set) noexcept {
  LockGuard guard(signals::g_lock);
  signals::drop(&t->signals, set);
}

}  // namespace upcall::linux_abi

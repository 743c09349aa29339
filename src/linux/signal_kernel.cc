// What the kernel holds for the process: who takes it, so that signals come in the order in which they were sent.
//
// A signal is open or closed. Open ones, which some thread wants, are in g_monitor_signals, and the monitor alone takes them.
// Closed ones stay pending in the kernel, with their overruns and limits, and for a signalfd; threads take them, one at a time,
// under g_taking. So nobody takes a signal while somebody else has an older one in hand that is not in a queue yet. Open ones
// become closed only when the monitor has none of them in hand: by itself, or while a thread that holds g_taking waits for it.
// It never waits for a thread: what it wants to open while a thread takes, that thread opens.
//
// Who must find what has come before (sigpending, a mask that opens, sigtimedwait) waits until the monitor has posted it. That the
// monitor has one in hand is told by the kernel, which writes the signal's number when it has taken it from its queue. Only
// on kernels that preempt themselves may the monitor lose its CPU between these two.
#include "base/log.h"
#include "kernel/futex.h"
#include "linux/signal.h"

namespace upcall::linux_abi::signals {

namespace {

atomic<uint64_t> g_left_to_kernel{0};
SpinLock g_taking{Rank::from_kernel};
atomic<uint64_t> g_to_open{0};  // by the monitor, while a thread takes

uint64_t closed_of(uint64_t set) noexcept {
  return set & takeable & ~activation::g_monitor_signals.load(fenced);  // pairs with close_in_kernel
}

void open_put_aside() noexcept {
  // fenced, both steps: what was put aside before a try_lock that has failed is seen after that lock's release.
  while (g_to_open.fetch_or(0, fenced)) {
    if (!g_taking.try_lock()) return;  // who has it comes here
    activation::g_monitor_signals.fetch_or(g_to_open.exchange(0, fenced),
                                           fenced);  // pairs with close_in_kernel
    g_taking.unlock();
    activation::renew_monitor();
  }
}

class Taking {
 public:
  Taking() noexcept { g_taking.lock(); }
  ~Taking() {
    g_taking.unlock();
    open_put_aside();
  }
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;
};

int take_from_kernel(uint64_t set, Info* info) noexcept {
  __kernel_timespec zero = {0, 0};
  long s = set ? kernel::sys(__NR_rt_sigtimedwait, &set, info, &zero, mask_bytes) : 0;
  return s > 0 ? static_cast<int>(s) : 0;
}

uint64_t wanted_by_threads(uint64_t set) noexcept {
  uint64_t wanted = 0;
  sched::g_threads.find_if([&](Thread* t) {
    wanted |= ~t->signals.mask.load(fenced) | t->sigwait_set;  // pairs with set_mask
    return (set & ~wanted) == 0;
  });
  return set & wanted;
}

// Afterwards the monitor takes none of them any more, but for those that somebody wants by then.
void close_in_kernel(uint64_t set) noexcept {
  set &= takeable;
  if (activation::self()->is_monitor) {
    set &= activation::g_monitor_signals.fetch_and(~set, fenced);  // pairs with set_mask
    if (uint64_t open = wanted_by_threads(set)) {
      g_to_open.fetch_or(open, fenced);  // pairs with open_put_aside
      open_put_aside();
    }
    return;
  }
  Taking guard;
  set &= activation::g_monitor_signals.fetch_and(~set, fenced);  // pairs with set_mask
  if (!set) return;
  activation::wait_for_monitor();
  if (uint64_t open = wanted_by_threads(set)) {
    activation::g_monitor_signals.fetch_or(open, fenced);  // same
    activation::renew_monitor();
  }
}

// For a signalfd: what had been taken before it was known that nobody wants it.
void give_to_kernel(uint64_t set) noexcept {
  for (;;) {
    Info info;
    int s;
    {
      LockGuard guard(g_lock);
      s = dequeue(&g_process, set, &info);
    }
    if (!s) return;
    send_again(s, info);
  }
}

// Timers and children, and what people and supervisors send.
constexpr uint64_t likely =
    bit(1) | bit(2) | bit(3) | bit(14) | bit(15) | bit(17) | bit(18) | bit(26) | bit(27) | bit(28) | bit(29);
atomic<uint64_t> g_from_kernel{likely};

bool in_hand(uint64_t set) noexcept {
  uint32_t s = activation::signal_in_hand();
  return s && (bit(static_cast<int>(s)) & set);
}

// Some microseconds: the monitor is running. The next one that it takes may keep us, no more: it came after our call.
void await_hand(uint64_t set) noexcept {
  constexpr uint32_t first = 150, most = 1000;
  for (uint32_t i = first; i < most && in_hand(set); ++i) wait_step(i);
}

}  // namespace

// Codes that say "from the kernel" or "by kill" are refused from any kernel thread but the first (EPERM): the sender is lost
// then, which is this process most of the time.
void send_again(int signal, Info& info) noexcept {
  if (kernel::is_error(kernel::sys(__NR_rt_sigqueueinfo, activation::g_runtime.pid, signal, &info)))
    kernel::sys(__NR_kill, activation::g_runtime.pid, signal);
}

void nobody_wants(int signal) noexcept {
  bool for_signalfd = left_to_kernel() & bit(signal);
  // Otherwise only what comes from the kernel: to close and to open again costs the monitor's waking.
  if (!for_signalfd && !activation::self()->is_monitor) return;
  close_in_kernel(bit(signal));
  if (for_signalfd && closed_of(bit(signal))) give_to_kernel(bit(signal));
}

void leave_to_kernel(uint64_t set) noexcept {
  set &= takeable;
  note_left_to_kernel(set);
  if (!activation::g_runtime.started) return;
  close_in_kernel(set & ~wanted_by_threads(set));
  give_to_kernel(closed_of(set));
}

// Added: some may be known already.
void note_left_to_kernel(uint64_t set) noexcept { g_left_to_kernel.fetch_or(set, relaxed); }

uint64_t left_to_kernel() noexcept { return g_left_to_kernel.load(relaxed); }

void open_in_kernel(uint64_t set) noexcept {
  if (!closed_of(set)) return;
  uint64_t queued = 0;
  {
    Taking guard;
    const uint64_t closed = closed_of(set);
    if (!closed) return;
    Info info;
    while (int s = take_from_kernel(closed, &info)) {
      expect_from_kernel(bit(s));
      if (queue_for_process(s, info) == Queued::yes) queued |= bit(s);
    }
    activation::g_monitor_signals.fetch_or(closed, fenced);  // pairs with close_in_kernel
  }
  activation::renew_monitor();
  // One of each kind: who takes it sees to it that others are told of the rest (pass_signals_on).
  for (; queued; queued &= queued - 1) tell_process(__builtin_ctzl(queued) + 1);
}

int take_in_order(Thread* t, uint64_t set, Info* info) noexcept {
  if (!closed_of(set)) return take(t, set, info);
  Taking guard;
  // First what is closed, then the queues: of what is closed by now the monitor has posted all that it had taken.
  const uint64_t closed = closed_of(set);
  const uint64_t behind = closed & pending_for_process();  // what the kernel has of it, or a timer's overrun
  while (int s = take_from_kernel(behind, info)) {
    LockGuard queues(g_lock);
    enqueue(&g_process, s, *info);
  }
  int s = take(t, set, info);
  if (!s && (s = take_from_kernel(closed, info)) && info->code == si_timer) {
    LockGuard queues(g_lock);
    timer_delivered(info->timer.timer_id, info->timer.overrun);
  }
  return s;
}

void expect_from_kernel(uint64_t set) noexcept {
  // relaxed: a hint
  if (set & ~g_from_kernel.load(relaxed)) g_from_kernel.fetch_or(set, relaxed);
}

bool await_posting(uint64_t set) noexcept {
  set &= takeable;
  // First: what it has in hand it may close, and open again, before it lets go of it.
  const bool was_in_hand = in_hand(set);
  if (was_in_hand) await_hand(set);
  uint64_t there = 0;
  kernel::sys(__NR_rt_sigpending, &there, mask_bytes);
  there &= set;
  if (there & ~closed_of(there)) {
    activation::ask_monitor();
  } else if (in_hand(set)) {
    await_hand(set);
    return true;
  }
  return there || was_in_hand;
}

void post_pending(uint64_t opened) noexcept {
  if (!in_hand(opened) && !(opened & takeable & g_from_kernel.load(relaxed))) return;
  if (await_posting(opened)) open_in_kernel(opened);  // closed since
}

uint64_t pending_in_kernel(uint64_t set) noexcept {
  uint64_t there = 0;
  kernel::sys(__NR_rt_sigpending, &there, mask_bytes);
  expect_from_kernel(there);
  await_hand(set);
  Taking nobody_else;  // who moves some from there to our queues has done so now
  return there & takeable;
}

void lock_taking_for_fork() noexcept { g_taking.lock(); }

void unlock_taking_after_fork(bool in_child) noexcept {
  g_taking.unlock();
  if (!in_child) open_put_aside();
}

void forget_taking() noexcept { g_to_open.store(0, relaxed); }

}  // namespace upcall::linux_abi::signals

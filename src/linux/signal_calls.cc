// System calls about signals.
#include "arch/x86_64/cpu.h"
#include "base/log.h"
#include "kernel/clock.h"
#include "kernel/futex.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using namespace signals;

namespace {

constexpr uint64_t mask_bytes = 8;

bool valid(int64_t signal) noexcept { return signal >= 1 && signal <= signal_count; }

Info sent_by_us(int signal, int32_t code) noexcept {
  Info info = {};
  info.signo = signal;
  info.code = code;
  info.sender.pid = activation::g_runtime.pid;
  info.sender.uid = static_cast<uint32_t>(kernel::sys(__NR_getuid));
  return info;
}

constexpr int32_t si_user = 0, si_tkill = -6;

Thread* send_to_thread(Thread* t, int32_t tid, int64_t signal, const Info* given) noexcept {
  Thread* target = signal == setxid_signal ? sched::g_threads.find_any(tid) : sched::g_threads.find(tid);
  if (!target) return answer(t, -e_srch);
  if (signal == 0) return answer(t, 0);
  if (!valid(signal)) return answer(t, -e_inval);
  Info info = given ? *given : sent_by_us(static_cast<int>(signal), si_tkill);
  info.signo = static_cast<int32_t>(signal);
  return answer(t, post_thread(target, static_cast<int>(signal), info) ? 0 : -e_again);
}

// For the calls that change the mask for their own duration: true, or false with the answer in t.
bool borrow_mask(Thread* t, uint64_t user_mask, uint64_t size) noexcept {
  uint64_t mask;
  if (size != mask_bytes) {
    answer(t, -e_inval);
    return false;
  }
  if (upcall_load_user64(reinterpret_cast<uint64_t*>(user_mask), &mask)) {
    answer(t, -e_fault);
    return false;
  }
  t->saved_mask = t->signals.mask.load(relaxed);
  t->restore_mask = true;
  t->signals.mask.store(mask & ~unblockable, relaxed);
  recheck(t);
  return true;
}

// A blocking call under a borrowed mask. The kernel must not see the mask: it would unblock its own signals on this
// kernel thread. before_resume puts the thread's mask back, after a handler or without one.
Thread* call_with_mask(Thread* t, const long args[6]) noexcept {
  return activation::blocking_call(t, t->nr, args);
}

}  // namespace

Thread* sys_rt_sigaction(Thread* t) noexcept {
  auto signal = static_cast<int64_t>(static_cast<int32_t>(t->rdi));
  if (t->r10 != mask_bytes || !valid(signal)) return answer(t, -e_inval);
  auto s = static_cast<int>(signal);
  Action fresh;
  if (t->rsi) {
    if (bit(s) & unblockable) return answer(t, -e_inval);
    if (upcall_copy_user(&fresh, reinterpret_cast<void*>(t->rsi), sizeof fresh)) return answer(t, -e_fault);
    fresh.mask &= ~unblockable;
  }
  Action old = action_of(s);
  if (t->rsi) set_action(s, fresh);
  if (t->rdx && upcall_copy_user(reinterpret_cast<void*>(t->rdx), &old, sizeof old))
    return answer(t, -e_fault);
  return answer(t, 0);
}

Thread* sys_rt_sigprocmask(Thread* t) noexcept {
  uint64_t old = t->signals.mask.load(relaxed), set = 0, mask = old;
  if (t->r10 != mask_bytes) return answer(t, -e_inval);
  if (t->rsi) {
    if (upcall_load_user64(reinterpret_cast<uint64_t*>(t->rsi), &set)) return answer(t, -e_fault);
    switch (static_cast<int>(t->rdi)) {
      case 0:
        mask = old | set;
        break;
      case 1:
        mask = old & ~set;
        break;
      case 2:
        mask = set;
        break;
      default:
        return answer(t, -e_inval);
    }
    mask &= ~unblockable;
    t->signals.mask.store(mask, fenced);  // pairs with post_thread's look at the mask
    if (old & ~mask) recheck(t);
    // A signal of the process may have been left to this thread, which blocks it now.
    if ((mask & ~old) && t->attention.load(relaxed)) pass_signals_on(t);
  }
  if (t->rdx && upcall_copy_user(reinterpret_cast<void*>(t->rdx), &old, sizeof old))
    return answer(t, -e_fault);
  return answer(t, 0);
}

Thread* sys_rt_sigpending(Thread* t) noexcept {
  if (t->rsi > mask_bytes) return answer(t, -e_inval);
  uint64_t set = 0;
  kernel::sys(__NR_rt_sigpending, &set, mask_bytes);
  set = (set | pending_for(t)) & t->signals.mask.load(relaxed);
  return answer(t, upcall_copy_user(reinterpret_cast<void*>(t->rdi), &set, t->rsi) ? -e_fault : 0);
}

Thread* sys_rt_sigtimedwait(Thread* t) noexcept {
  uint64_t set;
  if (t->r10 != mask_bytes) return answer(t, -e_inval);
  if (upcall_load_user64(reinterpret_cast<uint64_t*>(t->rdi), &set)) return answer(t, -e_fault);
  set &= ~unblockable;
  uint64_t deadline = sched::never;
  if (t->rdx) {
    uint64_t ns;
    if (long r = read_timespec(reinterpret_cast<void*>(t->rdx), &ns)) return answer(t, r);
    deadline = kernel::now() + ns;
  }
  Info info;
  if (int s = take(t, set, &info)) {
    if (t->rsi && upcall_copy_user(reinterpret_cast<void*>(t->rsi), &info, sizeof info))
      return answer(t, -e_fault);
    return answer(t, s);
  }
  // What signalfd has left to the kernel is pending there.
  __kernel_timespec zero = {0, 0};
  long r = kernel::sys(__NR_rt_sigtimedwait, &set, t->rsi, &zero, mask_bytes);
  if (r > 0) return answer(t, r);
  t->interrupted_call = false;
  return wait_for_signal(t, set, deadline);
}

// The thread was woken: by one of its signals, by another one, or by time. False: the answer stands.
bool signals::finish_sigwait(Thread* t) noexcept {
  uint64_t set = t->sigwait_set;
  {
    LockGuard guard(g_lock);
    t->sigwait_set = 0;
  }
  Info info;
  int s = take(t, set, &info);
  // What was posted to the process since was left to this thread, which takes but one.
  pass_signals_on(t);
  if (!s) {
    if (static_cast<int64_t>(t->rax) == -e_intr && !(pending_for(t) & ~t->signals.mask.load(relaxed))) {
      // Woken for a signal that another thread has taken: wait again.
      t->rip -= STUB_RESTART_OFFSET;
      t->rax = static_cast<uint64_t>(t->nr);
    }
    return true;
  }
  t->rax = static_cast<uint64_t>(s);
  if (t->rsi && upcall_copy_user(reinterpret_cast<void*>(t->rsi), &info, sizeof info))
    t->rax = static_cast<uint64_t>(-e_fault);
  recheck(t);
  return false;
}

Thread* sys_rt_sigsuspend(Thread* t) noexcept {
  if (!borrow_mask(t, t->rdi, t->rsi)) return t;
  t->rax = static_cast<uint64_t>(-e_intr);
  t->interrupted_call = false;
  return wait_for_signal(t, 0, sched::never);
}

Thread* sys_pause(Thread* t) noexcept {
  t->interrupted_call = false;
  return wait_for_signal(t, 0, sched::never);
}

Thread* sys_sigaltstack(Thread* t) noexcept {
  constexpr int32_t on_stack = 1, disable = 2;
  activation::AltStack fresh, old = {t->altstack_sp, t->altstack_flags, t->altstack_size};
  auto base = reinterpret_cast<uint64_t>(t->altstack_sp);
  bool on_it = !(t->altstack_flags & disable) && t->rsp > base && t->rsp - base <= t->altstack_size;
  if (on_it) old.flags |= on_stack;
  if (t->rdi) {
    if (upcall_copy_user(&fresh, reinterpret_cast<void*>(t->rdi), sizeof fresh)) return answer(t, -e_fault);
    if (on_it) return answer(t, -e_perm);
    int32_t mode = fresh.flags & ~static_cast<int32_t>(0x80000000);
    if (mode != 0 && mode != on_stack && mode != disable) return answer(t, -e_inval);
    if (mode == disable)
      fresh = {nullptr, disable, 0};
    else if (fresh.size < 2048)
      return answer(t, -e_nomem);
    t->altstack_sp = fresh.sp, t->altstack_size = fresh.size,
    t->altstack_flags = mode == disable ? disable : 0;
  }
  if (t->rsi && upcall_copy_user(reinterpret_cast<void*>(t->rsi), &old, sizeof old))
    return answer(t, -e_fault);
  return answer(t, 0);
}

Thread* sys_kill(Thread* t) noexcept {
  auto signal = static_cast<int64_t>(static_cast<int32_t>(t->rsi));
  if (static_cast<int32_t>(t->rdi) != activation::g_runtime.pid || !valid(signal) ||
      (bit(static_cast<int>(signal)) & unblockable))
    return pass(t);
  // To ourselves: one signal must be delivered before kill returns, if this thread does not block it.
  auto s = static_cast<int>(signal);
  Info info = sent_by_us(s, si_user);
  bool here = !(t->signals.mask.load(relaxed) & bit(s));
  if (!here && (left_to_kernel() & bit(s))) return pass(t);  // for a signalfd
  return answer(t, (here ? post_thread(t, s, info) : post_process(s, info)) ? 0 : -e_again);
}

Thread* sys_tkill(Thread* t) noexcept {
  return sched::g_threads.find_any(static_cast<int32_t>(t->rdi))
             ? send_to_thread(t, static_cast<int32_t>(t->rdi), static_cast<int32_t>(t->rsi), nullptr)
             : pass(t);
}

Thread* sys_tgkill(Thread* t) noexcept {
  if (static_cast<int32_t>(t->rdi) != activation::g_runtime.pid) return pass(t);
  if (static_cast<int32_t>(t->rsi) <= 0) return answer(t, -e_inval);
  return send_to_thread(t, static_cast<int32_t>(t->rsi), static_cast<int32_t>(t->rdx), nullptr);
}

Thread* sys_tgsigqueueinfo(Thread* t) noexcept {
  if (static_cast<int32_t>(t->rdi) != activation::g_runtime.pid) return pass(t);
  Info info;
  if (upcall_copy_user(&info, reinterpret_cast<void*>(t->r10), sizeof info)) return answer(t, -e_fault);
  return send_to_thread(t, static_cast<int32_t>(t->rsi), static_cast<int32_t>(t->rdx), &info);
}

// Signals that a signalfd reads stay in the kernel, pending for the process.
Thread* sys_signalfd(Thread* t) noexcept {
  uint64_t mask;
  if (!upcall_load_user64(reinterpret_cast<uint64_t*>(t->rsi), &mask)) leave_to_kernel(mask);
  return pass(t);
}

// The kernel cannot signal a virtual id: the timer signals the process, and the monitor finds the thread.
Thread* sys_timer_create(Thread* t) noexcept {
  constexpr int32_t sigev_signal = 0, sigev_thread_id = 4;
  struct {
    uint64_t value;
    int32_t signal, notify, tid;
    uint32_t rest[11];
  } event;
  static_assert(sizeof event == 64);
  if (!t->rsi) return pass(t);
  if (upcall_copy_user(&event, reinterpret_cast<void*>(t->rsi), sizeof event)) return answer(t, -e_fault);
  if (!(event.notify & sigev_thread_id) || !sched::g_threads.find(event.tid)) return pass(t);
  int32_t tid = event.tid, id;
  event.notify = sigev_signal;
  long r = kernel::sys(__NR_timer_create, t->rdi, &event, &id);
  if (kernel::is_error(r)) return answer(t, r);
  note_timer(id, tid);
  return answer(t, upcall_copy_user(reinterpret_cast<void*>(t->rdx), &id, sizeof id) ? -e_fault : 0);
}

Thread* sys_ppoll(Thread* t) noexcept {
  if (!t->r10) return activation::blocking_call(t);
  if (!borrow_mask(t, t->r10, t->r8)) return t;
  long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi), static_cast<long>(t->rdx), 0, 0, 0};
  return call_with_mask(t, args);
}

Thread* sys_pselect6(Thread* t) noexcept {
  uint64_t pair[2] = {};
  if (t->r9 && upcall_copy_user(pair, reinterpret_cast<void*>(t->r9), sizeof pair))
    return answer(t, -e_fault);
  if (!pair[0]) return activation::blocking_call(t);
  if (!borrow_mask(t, pair[0], pair[1])) return t;
  long args[6] = {static_cast<long>(t->rdi), static_cast<long>(t->rsi), static_cast<long>(t->rdx),
                  static_cast<long>(t->r10), static_cast<long>(t->r8),  0};
  return call_with_mask(t, args);
}

// epoll_pwait and epoll_pwait2: the same places for mask and size.
Thread* sys_epoll_pwait(Thread* t) noexcept {
  if (!t->r8) return activation::blocking_call(t);
  if (!borrow_mask(t, t->r8, t->r9)) return t;
  long args[6] = {static_cast<long>(t->rdi),
                  static_cast<long>(t->rsi),
                  static_cast<long>(t->rdx),
                  static_cast<long>(t->r10),
                  0,
                  0};
  return call_with_mask(t, args);
}

}  // namespace upcall::linux_abi

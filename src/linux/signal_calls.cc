// System calls about signals.
#include "arch/x86_64/cpu.h"
#include "base/log.h"
#include "kernel/clock.h"
#include "kernel/futex.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using namespace signals;

namespace {

bool valid(int64_t signal) noexcept { return signal >= 1 && signal <= signal_count; }

Info sent_by_us(int signal, int32_t code) noexcept {
  Info info = {};
  info.signo = signal;
  info.code = code;
  info.sender.pid = activation::g_runtime.pid;
  info.sender.uid = static_cast<uint32_t>(kernel::sys(__NR_getuid));
  return info;
}

// SIGKILL and SIGSTOP are for the process, whoever they are sent to. To this kernel thread, so that the caller goes no step
// further: one to the process may be taken by another one, while this returns to the program.
Thread* kill_process(Thread* t, int64_t signal) noexcept {
  return answer(t, kernel::sys(__NR_tgkill, activation::g_runtime.pid, activation::self()->tid, signal));
}

Thread* send_to_thread(Thread* t, int32_t tid, int64_t signal, const Info* given) noexcept {
  Thread* target = signal == setxid_signal ? sched::g_threads.find_any(tid) : sched::g_threads.find(tid);
  if (!target) return answer(t, -e_srch);
  if (signal == 0) return answer(t, 0);
  if (!valid(signal)) return answer(t, -e_inval);
  auto s = static_cast<int>(signal);
  if (bit(s) & unblockable) return kill_process(t, signal);
  Info info = given ? *given : sent_by_us(s, si_tkill);
  info.signo = s;
  return answer(t, may_queue(s, &info) && post_thread(target, s, info) ? 0 : -e_again);
}

// To this process. One signal must be delivered before the call returns, if this thread does not block it and no other
// thread takes it.
Thread* send_to_process(Thread* t, int64_t signal, const Info* given) noexcept {
  if (signal == 0) return answer(t, 0);
  if (!valid(signal)) return answer(t, -e_inval);
  auto s = static_cast<int>(signal);
  if (bit(s) & unblockable) return kill_process(t, signal);
  Info info = given ? *given : sent_by_us(s, si_user);
  info.signo = s;
  return answer(t, may_queue(s, &info) && post_process(s, info) ? 0 : -e_again);
}

// Any id of a thread of ours names the process.
bool is_ours(int32_t pid) noexcept {
  return pid > 0 && (pid == activation::g_runtime.pid || sched::g_threads.find(pid));
}

// Only to itself may a thread say that a signal comes from kill or from the kernel.
bool is_forged(const Thread* t, int32_t target, const Info& info) noexcept {
  return (info.code >= 0 || info.code == si_tkill) && target != t->tid;
}

// The kernel has been asked to signal processes of which this one may be one: what is for us is delivered before the call
// returns.
Thread* sent_by_kernel(Thread* t, int64_t signal) noexcept {
  long r = raw_call(t);
  if (r == 0 && valid(signal) &&
      (bit(static_cast<int>(signal)) & activation::g_monitor_signals.load(relaxed)))
    activation::ask_monitor();
  return answer(t, r);
}

}  // namespace

Thread* sys_rt_sigaction(Thread* t) noexcept {
  auto signal = static_cast<int64_t>(static_cast<int32_t>(t->rdi));
  if (t->r10 != mask_bytes) return answer(t, -e_inval);
  Action fresh;
  if (t->rsi && upcall_copy_user(&fresh, reinterpret_cast<void*>(t->rsi), sizeof fresh))
    return answer(t, -e_fault);
  if (!valid(signal)) return answer(t, -e_inval);
  auto s = static_cast<int>(signal);
  if (t->rsi && (bit(s) & unblockable)) return answer(t, -e_inval);
  fresh.mask &= ~unblockable;
  fresh.flags &= known_flags;
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
    set_mask(t, mask);
    // Only the thread library itself blocks its own signal, for a moment, in functions that are to be quick.
    if ((old & ~mask) && !(old & bit(cancel_signal))) post_pending(old & ~mask);
  }
  if (t->rdx && upcall_copy_user(reinterpret_cast<void*>(t->rdx), &old, sizeof old))
    return answer(t, -e_fault);
  return answer(t, 0);
}

Thread* sys_rt_sigpending(Thread* t) noexcept {
  if (t->rsi > mask_bytes) return answer(t, -e_inval);
  const uint64_t mask = t->signals.mask.load(relaxed);
  uint64_t set = pending_in_kernel(mask);
  set = (set | pending_for(t)) & mask;
  return answer(t, upcall_copy_user(reinterpret_cast<void*>(t->rdi), &set, t->rsi) ? -e_fault : 0);
}

Thread* sys_rt_sigtimedwait(Thread* t) noexcept {
  uint64_t set;
  if (t->r10 != mask_bytes) return answer(t, -e_inval);
  if (upcall_load_user64(reinterpret_cast<uint64_t*>(t->rdi), &set)) return answer(t, -e_fault);
  set &= ~unblockable;
  uint64_t deadline = sched::never;
  bool once = false;
  if (t->rdx) {
    uint64_t ns, known = sched::take_restart_deadline(t);
    if (long r = read_timespec(reinterpret_cast<void*>(t->rdx), &ns)) return answer(t, r);
    deadline = known ? known : kernel::now() + ns;
    once = !known && !ns;
  }
  Info info;
  int s = take_in_order(t, set, &info);
  constexpr int looks = 3;  // others may have been quicker
  for (int i = 1; i < looks && !s && await_posting(set); ++i) s = take_in_order(t, set, &info);
  if (s) {
    if (t->rsi && upcall_copy_user(reinterpret_cast<void*>(t->rsi), &info, sizeof info))
      return answer(t, -e_fault);
    return answer(t, s);
  }
  if (once) return answer(t, -e_again);
  t->interrupted_call = sched::Interrupted::no;
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
      make_call_again(t);
      if (t->rdx) t->restart_deadline = t->deadline;
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
  if (long r = borrow_mask(t, t->rdi, t->rsi)) return answer(t, r);
  t->rax = static_cast<uint64_t>(-e_intr);
  t->interrupted_call = sched::Interrupted::ends;
  t->call_deadline = 0;
  return wait_for_signal(t, 0, sched::never);
}

Thread* sys_pause(Thread* t) noexcept {
  t->interrupted_call = sched::Interrupted::ends;
  t->call_deadline = 0;
  return wait_for_signal(t, 0, sched::never);
}

bool signals::on_altstack(const Thread* t, uint64_t sp) noexcept {
  auto base = reinterpret_cast<uint64_t>(t->altstack_sp);
  // One that is disarmed while a handler uses it counts as left: the program may have switched stacks there.
  return !(t->altstack_flags & ss_autodisarm) && sp > base && sp - base <= t->altstack_size;
}

long signals::set_altstack(Thread* t, const activation::AltStack& fresh, uint64_t sp) noexcept {
  if (on_altstack(t, sp)) return -e_perm;
  int32_t mode = fresh.flags & ~ss_autodisarm;
  if (mode != 0 && mode != ss_onstack && mode != ss_disable) return -e_inval;
  if (fresh.sp == t->altstack_sp && fresh.size == t->altstack_size && fresh.flags == t->altstack_flags)
    return 0;
  if (mode != ss_disable && fresh.size < 2048) return -e_nomem;
  t->altstack_sp = mode == ss_disable ? nullptr : fresh.sp;
  t->altstack_size = mode == ss_disable ? 0 : fresh.size;
  t->altstack_flags = fresh.flags;
  return 0;
}

Thread* sys_sigaltstack(Thread* t) noexcept {
  activation::AltStack fresh, old = {t->altstack_sp, t->altstack_flags & ss_autodisarm, t->altstack_size};
  if (!t->altstack_size)
    old.flags |= ss_disable;
  else if (on_altstack(t, t->rsp))
    old.flags |= ss_onstack;
  if (t->rdi) {
    if (upcall_copy_user(&fresh, reinterpret_cast<void*>(t->rdi), sizeof fresh)) return answer(t, -e_fault);
    if (long r = set_altstack(t, fresh, t->rsp)) return answer(t, r);
  }
  if (t->rsi && upcall_copy_user(reinterpret_cast<void*>(t->rsi), &old, sizeof old))
    return answer(t, -e_fault);
  return answer(t, 0);
}

Thread* sys_kill(Thread* t) noexcept {
  auto pid = static_cast<int32_t>(t->rdi);
  auto signal = static_cast<int64_t>(static_cast<int32_t>(t->rsi));
  if (is_ours(pid)) return send_to_process(t, signal, nullptr);
  return pid <= 0 ? sent_by_kernel(t, signal) : pass(t);
}

Thread* sys_sigqueueinfo(Thread* t) noexcept {
  auto pid = static_cast<int32_t>(t->rdi);
  if (!is_ours(pid)) return pass(t);
  Info info;
  if (upcall_copy_user(&info, reinterpret_cast<void*>(t->rdx), sizeof info)) return answer(t, -e_fault);
  if (is_forged(t, pid, info)) return answer(t, -e_perm);
  return send_to_process(t, static_cast<int32_t>(t->rsi), &info);
}

Thread* sys_pidfd_send_signal(Thread* t) noexcept { return sent_by_kernel(t, static_cast<int32_t>(t->rsi)); }

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
  auto tid = static_cast<int32_t>(t->rsi);
  if (tid <= 0) return answer(t, -e_inval);
  if (is_forged(t, tid, info)) return answer(t, -e_perm);
  return send_to_thread(t, tid, static_cast<int32_t>(t->rdx), &info);
}

// Signals that a signalfd reads stay in the kernel, pending for the process.
Thread* sys_signalfd(Thread* t) noexcept {
  uint64_t mask;
  if (!upcall_load_user64(reinterpret_cast<uint64_t*>(t->rsi), &mask)) leave_to_kernel(mask);
  return pass(t);
}

}  // namespace upcall::linux_abi

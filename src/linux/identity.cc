// What threads may ask about themselves: affinity, scheduling attributes, names. Kept per thread; the kernel threads
// below keep their own. Of a bound thread the kernel knows them.
#include <linux/prctl.h>
#include <sched.h>

#include "arch/x86_64/cpu.h"
#include "linux/linux.h"

namespace upcall::linux_abi {

namespace {

Thread* by_tid(Thread* t, int32_t tid) noexcept { return tid == 0 ? t : sched::g_threads.find(tid); }

// The same call for the kernel thread of `of`, which is bound. The id is the first argument, or the second (setpriority).
long call_for_bound(const Thread* t, const Thread* of) noexcept {
  int32_t id = of->bound_tid;
  bool second = t->nr == __NR_setpriority || t->nr == __NR_getpriority;
  return kernel::sys(t->nr, second ? static_cast<long>(t->rdi) : id, second ? id : static_cast<long>(t->rsi),
                     t->rdx);
}

constexpr uint64_t max_affinity = sizeof(activation::Runtime::affinity);

}  // namespace

Thread* sys_sched_getaffinity(Thread* t) noexcept {
  Thread* of = by_tid(t, static_cast<int32_t>(t->rdi));
  if (!of) return pass(t);
  if (of->bound_tid) return answer(t, call_for_bound(t, of));
  auto known = static_cast<uint64_t>(activation::g_runtime.affinity_size);
  if (t->rsi < known || (t->rsi & 7)) return answer(t, -e_inval);
  // Who has been moved from outside (taskset, a cpuset that changes) is told so.
  uint64_t mask[max_affinity / 8];
  activation::allowed_cpus(mask);
  if (of->affinity_set) {
    uint64_t both[max_affinity / 8], any = 0;
    for (uint64_t i = 0; i < max_affinity / 8; ++i) any |= both[i] = mask[i] & of->affinity[i];
    if (any) __builtin_memcpy(mask, both, sizeof mask);
  }
  if (upcall_copy_user(reinterpret_cast<void*>(t->rdx), mask, known)) return answer(t, -e_fault);
  return answer(t, static_cast<long>(known));
}

// Recorded and reported; threads still run on any processor (placement comes with a later version).
Thread* sys_sched_setaffinity(Thread* t) noexcept {
  Thread* of = by_tid(t, static_cast<int32_t>(t->rdi));
  if (!of) return pass(t);
  if (of->bound_tid) return answer(t, call_for_bound(t, of));
  uint64_t mask[max_affinity / 8] = {}, any = 0;
  if (upcall_copy_user(mask, reinterpret_cast<void*>(t->rdx), t->rsi < max_affinity ? t->rsi : max_affinity))
    return answer(t, -e_fault);
  for (uint64_t i = 0; i < max_affinity / 8; ++i) any |= mask[i] &= activation::g_runtime.affinity[i];
  if (!any) return answer(t, -e_inval);
  __builtin_memcpy(of->affinity, mask, sizeof mask);
  of->affinity_set = true;
  return answer(t, 0);
}

// sched_setparam, getparam, setscheduler, getscheduler and rr_get_interval of our threads.
Thread* sys_sched_attributes(Thread* t) noexcept {
  Thread* of = by_tid(t, static_cast<int32_t>(t->rdi));
  if (!of) return pass(t);
  int32_t priority = 0;
  auto valid = [](int32_t policy, int32_t p) {
    if (policy == SCHED_FIFO || policy == SCHED_RR) return p >= 1 && p <= 99;
    return (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE) && p == 0;
  };
  switch (t->nr) {
    case __NR_sched_setparam:
    case __NR_sched_setscheduler: {
      bool with_policy = t->nr == __NR_sched_setscheduler;
      uint64_t user = with_policy ? t->rdx : t->rsi;
      if (!user) return answer(t, -e_inval);
      if (upcall_copy_user(&priority, reinterpret_cast<void*>(user), sizeof priority))
        return answer(t, -e_fault);
      of->touched = true;  // the library caches them
      int32_t policy = with_policy ? static_cast<int32_t>(t->rsi) & ~SCHED_RESET_ON_FORK : of->sched_policy;
      if (!valid(policy, priority)) return answer(t, -e_inval);
      if (long r = of->bound_tid ? kernel::sys(__NR_sched_setscheduler, of->bound_tid, policy, &priority) : 0)
        return answer(t, r);
      of->sched_policy = policy, of->sched_priority = priority;
      if (activation::g_runtime.started) activation::priority_changed(of);
      return answer(t, 0);
    }
    case __NR_sched_getscheduler:
      return answer(t, of->sched_policy);
    case __NR_sched_getparam:
      if (!t->rsi) return answer(t, -e_inval);
      priority = of->sched_priority;
      return answer(
          t, upcall_copy_user(reinterpret_cast<void*>(t->rsi), &priority, sizeof priority) ? -e_fault : 0);
    case __NR_sched_rr_get_interval: {
      uint64_t q = activation::g_runtime.quantum;
      uint64_t ts[2] = {q / 1'000'000'000u, q % 1'000'000'000u};
      return answer(t, upcall_copy_user(reinterpret_cast<void*>(t->rsi), ts, sizeof ts) ? -e_fault : 0);
    }
    default:
      return pass(t);
  }
}

// getpriority and setpriority of one of our threads. Recorded, not acted upon: all threads of a processor share it.
Thread* sys_priority(Thread* t) noexcept {
  constexpr uint64_t prio_process = 0;
  Thread* of = t->rdi == prio_process ? by_tid(t, static_cast<int32_t>(t->rsi)) : nullptr;
  if (!of) return pass(t);
  if (int32_t tid = of->bound_tid) {
    long r = call_for_bound(t, of), now = kernel::sys(__NR_getpriority, prio_process, tid);
    if (t->nr == __NR_setpriority && r == 0 && now > 0) of->nice = static_cast<int32_t>(20 - now);
    return answer(t, r);
  }
  if (of->is_main) {
    // The kernel threads may weigh more than the program.
    if (t->nr == __NR_getpriority && activation::g_runtime.share_threads) return answer(t, 20 - of->nice);
    long r = raw_call(t);
    if (t->nr == __NR_setpriority && r == 0) {
      auto now = static_cast<int32_t>(t->rdx);
      of->nice = now < -20 ? -20 : now > 19 ? 19 : now;
      activation::program_nice_is(of->nice);
    }
    return answer(t, r);
  }
  if (t->nr == __NR_getpriority) return answer(t, 20 - of->nice);
  auto nice = static_cast<int32_t>(t->rdx);
  nice = nice < -20 ? -20 : nice > 19 ? 19 : nice;
  if (nice < of->nice) {
    // Only the kernel knows whether it is allowed; it is tried on this kernel thread.
    if (long r = kernel::sys(__NR_setpriority, prio_process, 0, nice); r != 0) return answer(t, r);
    if (t->bound)
      kernel::sys(__NR_setpriority, prio_process, 0, t->nice);
    else
      activation::forget_weight();
  }
  of->nice = nice;
  return answer(t, 0);
}

void show_affinity(const Thread* t) noexcept {
  const uint64_t* mask = t->affinity_set ? t->affinity : activation::g_runtime.affinity;
  kernel::sys(__NR_sched_setaffinity, 0, sizeof activation::g_runtime.affinity, mask);
}

void show_attributes(const Thread* t) noexcept {
  show_affinity(t);
  kernel::sys(__NR_prctl, PR_SET_NAME, static_cast<const char*>(t->name));
  if (activation::resets_on_fork()) return;
  constexpr int one_process = 0;
  kernel::sys(__NR_setpriority, one_process, 0, t->nice);
  if (t->sched_policy || t->sched_priority)
    kernel::sys(__NR_sched_setscheduler, 0, t->sched_policy, &t->sched_priority);
}

Thread* sys_prctl(Thread* t) noexcept {
  auto* user = reinterpret_cast<char*>(t->rsi);
  switch (static_cast<int>(t->rdi)) {
    case PR_SET_NAME: {
      // At most 16 bytes, fewer where the string ends before a page does.
      char name[16] = {};
      for (int i = 0; i < 15; ++i) {
        if (upcall_copy_user(&name[i], user + i, 1)) return answer(t, -e_fault);
        if (!name[i]) break;
      }
      __builtin_memcpy(t->name, name, sizeof name);
      return t->is_main ? pass(t) : answer(t, 0);
    }
    case PR_GET_NAME:
      return answer(t, upcall_copy_user(user, t->name, sizeof t->name) ? -e_fault : 0);
    case PR_GET_TID_ADDRESS: {
      // The kernel's answer is about the activation; whether it knows the question at all is its own affair.
      uint64_t of_activation;
      if (long r = kernel::sys(__NR_prctl, PR_GET_TID_ADDRESS, &of_activation)) return answer(t, r);
      return answer(t, upcall_copy_user(user, &t->clear_child_tid, sizeof t->clear_child_tid) ? -e_fault : 0);
    }
    default:
      return sys_bound(t);
  }
}

}  // namespace upcall::linux_abi

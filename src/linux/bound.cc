// Calls that change, or mean, the kernel thread that makes them: the calling thread is bound to its own from then on
// (activation/bound.cc). Before the first thread is made there is one kernel thread, from which all others inherit.
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <linux/seccomp.h>

#include "base/log.h"
#include "event/ring.h"
#include "linux/linux.h"

namespace upcall::linux_abi {

namespace {

struct Reason {
  int nr;
  const char* name;
};
// Those whose every use binds, and those that are looked at by binds().
const Reason reasons[] = {
    {__NR_unshare, "unshare"},
    {__NR_setns, "setns"},
    {__NR_capset, "capset"},
    {__NR_ptrace, "ptrace"},
    {__NR_seccomp, "seccomp"},
    {__NR_prctl, "prctl"},
    {__NR_setuid, "setuid"},
    {__NR_setgid, "setgid"},
    {__NR_setreuid, "setreuid"},
    {__NR_setregid, "setregid"},
    {__NR_setresuid, "setresuid"},
    {__NR_setresgid, "setresgid"},
    {__NR_setgroups, "setgroups"},
    {__NR_setfsuid, "setfsuid"},
    {__NR_setfsgid, "setfsgid"},
    {__NR_personality, "personality"},
    {__NR_iopl, "iopl"},
    {__NR_ioperm, "ioperm"},
    {__NR_set_mempolicy, "set_mempolicy"},
    {__NR_ioprio_set, "ioprio_set"},
    {__NR_sched_setattr, "sched_setattr"},
    {__NR_perf_event_open, "perf_event_open"},
    {__NR_keyctl, "keyctl"},
    {__NR_add_key, "add_key"},
    {__NR_request_key, "request_key"},
    {__NR_arch_prctl, "arch_prctl"},
    {__NR_capget, "capget"},
    {__NR_io_uring_setup, "io_uring_setup"},
    {427, "io_uring_register"},
    {436, "close_range"},
    {446, "landlock_restrict_self"},
};
constexpr uint32_t reason_count = sizeof reasons / sizeof reasons[0];
atomic<uint32_t> g_bound_by[reason_count];

bool is_self(const Thread* t, uint64_t id) noexcept {
  return static_cast<int32_t>(id) == 0 || static_cast<int32_t>(id) == t->tid;
}

bool is_thread_keyring(uint64_t key) noexcept { return static_cast<int32_t>(key) == KEY_SPEC_THREAD_KEYRING; }

bool prctl_binds(const Thread* t) noexcept {
  switch (static_cast<int>(t->rdi)) {
    case PR_SET_SECCOMP:
    case PR_SET_NO_NEW_PRIVS:
    case PR_CAPBSET_DROP:
    case PR_SET_SECUREBITS:
    case PR_SET_KEEPCAPS:
    case PR_SET_SPECULATION_CTRL:
    case 59:  // PR_SET_SYSCALL_USER_DISPATCH, which headers before 5.11 lack
    case PR_SET_TSC:
    case PR_SET_IO_FLUSHER:
    case PR_MCE_KILL:
    case 62:  // PR_SCHED_CORE
      return true;
    case PR_CAP_AMBIENT:
      return t->rsi != PR_CAP_AMBIENT_IS_SET;
    default:
      return false;
  }
}

bool uring_binds(const Thread* t) noexcept {
  constexpr uint32_t single_issuer = 1u << 12;  // IORING_SETUP_, Linux 6.0
  uint32_t flags = 0;
  auto* params = reinterpret_cast<const char*>(t->rsi);
  if (upcall_copy_user(&flags, params + offsetof(io_uring_params, flags), sizeof flags)) return false;
  return flags & single_issuer;
}

bool binds(const Thread* t) noexcept {
  switch (t->nr) {
    case __NR_prctl:
      return prctl_binds(t);
    case __NR_seccomp:
      // A filter for all threads at once is no kernel thread's own.
      return t->rdi == SECCOMP_SET_MODE_STRICT ||
             (t->rdi == SECCOMP_SET_MODE_FILTER && t->rdx && !(t->rsi & SECCOMP_FILTER_FLAG_TSYNC));
    case __NR_setfsuid:
    case __NR_setfsgid:
      return static_cast<uint32_t>(t->rdi) != 0xffffffff;  // a question
    case __NR_capget:
      return false;
    case 436:
      return t->rdx & 2;  // CLOSE_RANGE_UNSHARE
    case __NR_arch_prctl:
      return t->rdi == 0x1012;  // ARCH_SET_CPUID
    case 427:                   // io_uring_register: a ring's number belongs to its kernel thread
      return (t->rsi & 0x7fffffff) == 20 || (t->rsi & 0x7fffffff) == 21;  // IORING_(UN)REGISTER_RING_FDS
    case __NR_add_key:
      return is_thread_keyring(t->r8);
    case __NR_request_key:
      return is_thread_keyring(t->r10);
    case __NR_personality:
      return static_cast<uint32_t>(t->rdi) != 0xffffffff;  // a question
    case __NR_ioprio_set:
      return t->rdi == 1 /* IOPRIO_WHO_PROCESS */ && is_self(t, t->rsi);
    case __NR_sched_setattr:
      return is_self(t, t->rdi);
    case __NR_perf_event_open:
      return is_self(t, t->rsi);
    case __NR_keyctl:
      return t->rdi == KEYCTL_JOIN_SESSION_KEYRING || t->rdi == KEYCTL_SET_REQKEY_KEYRING ||
             t->rdi == KEYCTL_ASSUME_AUTHORITY ||
             (t->rdi == KEYCTL_GET_KEYRING_ID && is_thread_keyring(t->rsi));
    case __NR_io_uring_setup:
      return uring_binds(t);
    default:
      return true;
  }
}

// capget, capset: the id is in a header of the program's.
long capabilities_of_self(Thread* t) noexcept {
  __user_cap_header_struct header;
  auto* user = reinterpret_cast<__user_cap_header_struct*>(t->rdi);
  if (upcall_copy_user(&header, user, sizeof header) || header.pid != t->tid)
    return kernel::sys(t->nr, t->rdi, t->rsi);
  header.pid = 0;
  long r = kernel::sys(t->nr, &header, t->rsi);
  upcall_copy_user(&user->version, &header.version,
                   sizeof header.version);  // an unknown one is answered by what is known
  return r;
}

// What else the kernel keeps is to be known here as well.
void remember_class(Thread* t) noexcept {
  sched_attr attr = {};
  if (kernel::sys(__NR_sched_getattr, 0, &attr, sizeof attr, 0)) return;
  t->sched_policy = static_cast<int32_t>(attr.sched_policy);
  t->sched_priority = static_cast<int32_t>(attr.sched_priority);
  t->nice = attr.sched_nice;
}

void note_effects(Thread* t) noexcept {
  switch (t->nr) {
    case __NR_sched_setattr:
      remember_class(t);
      break;
    case __NR_unshare:
      if (t->rdi & CLONE_FILES) t->bound->own_files = true;
      break;
    case 436:
      t->bound->own_files = true;
      break;
    case __NR_seccomp:
      activation::note_filter(t);
      break;
    case __NR_prctl:
      if (t->rdi == PR_SET_SECCOMP) activation::note_filter(t);
      break;
    default:
      break;
  }
}

// What this thread's own child expects of its tracer is expected of the kernel thread that made it.
Activation* where_to_bind(const Thread* t) noexcept {
  if (t->nr != __NR_ptrace || t->rdi == PTRACE_TRACEME || t->rdi == PTRACE_ATTACH || t->rdi == PTRACE_SEIZE)
    return nullptr;
  return t->forked_on;
}

// The kernel does not know the thread's own id, but 0.
long call_as_self(Thread* t) noexcept {
  if (t->nr == __NR_capset || t->nr == __NR_capget) return capabilities_of_self(t);
  bool first = t->nr == __NR_sched_setattr,
       second = t->nr == __NR_ioprio_set || t->nr == __NR_perf_event_open;
  auto own = static_cast<uint64_t>(t->tid);
  return kernel::sys(t->nr, first && t->rdi == own ? 0 : t->rdi, second && t->rsi == own ? 0 : t->rsi, t->rdx,
                     t->r10, t->r8, t->r9);
}

}  // namespace

bool may_bind_call(long nr) noexcept {
  for (const Reason& r : reasons)
    if (r.nr == nr) return true;
  return false;
}

Thread* sys_bound(Thread* t) noexcept {
  // Before there is a filter: for this thread, or for all.
  if (t->nr == __NR_seccomp || (t->nr == __NR_prctl && t->rdi == PR_SET_SECCOMP)) event::refuse_ring();
  if (!binds(t)) return answer(t, call_as_self(t));
  if (!t->bound) {
    Thread* next = activation::bind(t, where_to_bind(t), sys_bound);
    if (!next) return answer(t, -e_nomem);
    if (next != t || !t->bound) return next;  // it comes here again
  }
  if (!t->bound->counted) {
    t->bound->counted = true;
    uint32_t i = 0;
    while (reasons[i].nr != t->nr) ++i;
    g_bound_by[i].fetch_add(1, relaxed);
    if (log_on(Topic::sched))
      (Line() << "thread " << t->tid << " keeps kernel thread " << t->bound_tid << ": it has called "
              << reasons[i].name)
          .write();
  }
  long r = call_as_self(t);
  if (!kernel::is_error(r)) note_effects(t);
  return answer(t, r);
}

void each_bound_reason(void (*f)(void*, const char* name, uint32_t times), void* argument) noexcept {
  for (uint32_t i = 0; i < reason_count; ++i)
    if (uint32_t n = g_bound_by[i].load(relaxed)) f(argument, reasons[i].name, n);
}

void forget_bound_reasons() noexcept {
  for (auto& n : g_bound_by) n.store(0, relaxed);
}

}  // namespace upcall::linux_abi

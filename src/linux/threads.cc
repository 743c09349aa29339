// clone, exit and what belongs to a kernel thread's identity.
#include <linux/rseq.h>
#include <linux/sched.h>

#include "arch/x86_64/cpu.h"
#include "linux/descriptors.h"
#include "linux/linux.h"

namespace upcall::linux_abi {

void (*g_adopt)(Thread*, Thread*, uint64_t) = nullptr;
void (*g_thread_exits)(Thread*) = nullptr;
void (*g_set_up)() = nullptr;
void (*g_forked)(Thread*) = nullptr;

namespace {

struct CloneRequest {
  uint64_t flags, stack_top, tls;
  int32_t *parent_tid, *child_tid;
};

int store_tid(int32_t* to, int32_t tid) noexcept {
  return upcall_store_user32(reinterpret_cast<uint32_t*>(to), static_cast<uint32_t>(tid));
}

long make_thread(Thread* t, const CloneRequest& c) noexcept {
  Thread* n = sched::g_threads.allocate();
  if (!n) return -e_again;
  // The child starts as a copy of its parent that sees 0: registers, and the floating-point control words.
  n->rip = t->rip, n->rbx = t->rbx, n->rdx = t->rdx, n->rsi = t->rsi, n->rdi = t->rdi, n->rbp = t->rbp;
  n->r8 = t->r8, n->r9 = t->r9, n->r10 = t->r10, n->r12 = t->r12, n->r13 = t->r13, n->r14 = t->r14,
  n->r15 = t->r15;
  n->flags = t->flags, n->nr = t->nr, n->rax = 0;
  n->rsp = c.stack_top ? c.stack_top : t->rsp;
  n->fs = c.flags & CLONE_SETTLS ? c.tls : arch::read_fs();
  upcall_copy_control(n);
  n->signals.mask.store(t->signals.mask.load(relaxed), relaxed);
  n->born = arch::tsc();
  n->nice = t->nice;
  n->sched_policy = t->sched_policy, n->sched_priority = t->sched_priority;
  __builtin_memcpy(n->name, t->name, sizeof n->name);
  if (t->affinity_set) {
    n->affinity_set = true;
    __builtin_memcpy(n->affinity, t->affinity, sizeof n->affinity);
  }
  int32_t tid = n->tid;
  if (c.flags & CLONE_CHILD_CLEARTID) n->clear_child_tid = reinterpret_cast<uint32_t*>(c.child_tid);
  if ((c.flags & CLONE_PARENT_SETTID) && store_tid(c.parent_tid, tid)) {
    sched::g_threads.free(n);
    return -e_fault;
  }
  if (t->bound) {
    activation::Processor* own;
    if (long r = activation::new_bound_activation(&own)) {
      sched::g_threads.free(n);
      return r;
    }
    activation::adopt_bound(n, own);
  }
  if (c.flags & CLONE_CHILD_SETTID) store_tid(c.child_tid, tid);
  if (t->launch && (c.flags & CLONE_SETTLS)) g_adopt(t, n, c.tls);
  Activation* a = activation::self();
  ++a->processor->counters.threads_created;
  sched::g_threads.add_live(n);
  raise_peak(g_counters.threads_peak, sched::g_threads.live() - g_counters.threads_parked.load(relaxed));
  activation::ready_new(a, n);
  return tid;
}

constexpr uint64_t thread_flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;

// What make_thread does for the flags a thread library may pass; the kernel judges the rest.
bool is_thread(uint64_t flags) noexcept {
  constexpr uint64_t known = thread_flags | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                             CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | CLONE_DETACHED | CLONE_UNTRACED |
                             CLONE_IO | 0xff;
  return (flags & thread_flags) == thread_flags && !(flags & ~known);
}

Thread* clone_thread(Thread* t, const CloneRequest& c) noexcept {
  if (!activation::g_runtime.started && !start_runtime(t)) return answer(t, -e_again);
  return answer(t, make_thread(t, c));
}

// Robust list (set_robust_list(2)): what the kernel does when a thread dies with robust mutexes held.
constexpr uint32_t robust_limit = 2048;

void mark_owner_died(Thread* t, uint64_t word_address) noexcept {
  auto* word = reinterpret_cast<uint32_t*>(word_address);
  uint32_t value;
  if ((word_address & 3) || upcall_load_user32(word, &value)) return;
  for (;;) {
    if ((value & 0x3fffffffu) != static_cast<uint32_t>(t->tid)) return;
    uint32_t fresh = (value & 0x80000000u) | 0x40000000u;
    int r = upcall_cas_user32(word, &value, fresh);
    if (r < 0) return;
    if (r == 1) break;
  }
  if (value & 0x80000000u) {
    futex_wake_one(word);
    kernel::sys(__NR_futex, word, 1 /* FUTEX_WAKE, shared */, 1, nullptr, nullptr, 0);
  }
}

void walk_robust_list(Thread* t) noexcept {
  struct {
    uint64_t first;
    int64_t offset;
    uint64_t pending;
  } head;
  auto at = reinterpret_cast<uint64_t>(t->robust_list);
  if (!at || upcall_copy_user(&head, t->robust_list, sizeof head)) return;
  uint64_t entry = head.first;
  for (uint32_t i = 0; i < robust_limit && (entry & ~1ul) != at; ++i) {
    uint64_t next;
    if (upcall_load_user64(reinterpret_cast<uint64_t*>(entry & ~1ul), &next)) return;
    if ((entry & ~1ul) != (head.pending & ~1ul))
      mark_owner_died(t, (entry & ~1ul) + static_cast<uint64_t>(head.offset));
    entry = next;
  }
  if (head.pending & ~1ul) mark_owner_died(t, (head.pending & ~1ul) + static_cast<uint64_t>(head.offset));
}

}  // namespace

Thread* sys_clone(Thread* t) noexcept {
  if (!is_thread(t->rdi)) return clone_process(t, t->rdi, nullptr);
  return clone_thread(
      t, {t->rdi, t->rsi, t->r8, reinterpret_cast<int32_t*>(t->rdx), reinterpret_cast<int32_t*>(t->r10)});
}

Thread* sys_clone3(Thread* t) noexcept {
  struct clone_args c = {};
  size_t size = t->rsi < sizeof c ? t->rsi : sizeof c;
  if (t->rsi < CLONE_ARGS_SIZE_VER0) return answer(t, -e_inval);
  if (upcall_copy_user(&c, reinterpret_cast<void*>(t->rdi), size)) return answer(t, -e_fault);
  if (!is_thread(c.flags) || c.set_tid_size || c.cgroup) return clone_process(t, c.flags, &c);
  return clone_thread(t, {c.flags, c.stack + c.stack_size, c.tls, reinterpret_cast<int32_t*>(c.parent_tid),
                          reinterpret_cast<int32_t*>(c.child_tid)});
}

namespace {

// The status of a process whose threads have ended one by one is that of the last one. Threads that are kept for reuse may
// end behind it, and are none of the program's.
constexpr int none = -1;
int g_last_status = none;

// All of a thread's exit but what is its activation's.
void end_thread(Thread* t, int status) noexcept {
  if (sched::g_threads.live() - g_counters.threads_parked.load(relaxed) == 1 && g_last_status == none)
    g_last_status = status;
  if ((t->hull || t->is_main) && g_thread_exits) g_thread_exits(t);
  walk_robust_list(t);
  t->signals.mask.store(
      ~0ul, fenced);  // it takes none any more; pairs with post_process's look for somebody who does
  discard_signals(t);
  pass_signals_on(t);
  uint32_t* clear = t->clear_child_tid;
  if (sched::g_threads.remove_live(t) == 0) {
    report_at_exit();
    activation::raise_sentinels();
    for (;;) kernel::sys(__NR_exit_group, g_last_status == none ? status : g_last_status);
  }
  t->state.store(sched::State::exited, relaxed);
  if (t->preempt_frame) {
    activation::free_frame(t->preempt_frame);
    t->preempt_frame = nullptr;
  }
  end_waits(t);
  if (Activation* a = activation::self(); a->current == t) a->current = nullptr;
  // Whoever waits for this may free the thread's stack and TLS at once. We use neither.
  if (clear) {
    if (!upcall_store_user32(clear, 0)) wake_after_exit(clear);
  }
  t->exiting_tid.store(0, release);  // pairs with will_clear: a joiner that comes now finds the word cleared
  sched::g_threads.free(t);
}

}  // namespace

Thread* sys_exit(Thread* t) noexcept {
  Activation* a = activation::self();
  bool bound = t->bound != nullptr;
  upcall_reset_control();  // the next thread expects the defaults
  end_thread(t, static_cast<int>(t->rdi));
  if (__builtin_expect(bound, 0)) activation::retire(a);
  return activation::schedule(a);
}

// The kernel has ended it, by a filter of its own (SIGSYS).
void thread_killed(Thread* t) noexcept {
  constexpr int by_signal = 128 + 31;
  end_thread(t, by_signal);
}

Thread* sys_gettid(Thread* t) noexcept { return answer(t, t->tid); }

Thread* sys_set_tid_address(Thread* t) noexcept {
  t->clear_child_tid = reinterpret_cast<uint32_t*>(t->rdi);
  return answer(t, t->tid);
}

Thread* sys_set_robust_list(Thread* t) noexcept {
  if (t->rsi != 24) return answer(t, -e_inval);
  t->robust_list = reinterpret_cast<void*>(t->rdi);
  return answer(t, 0);
}

Thread* sys_get_robust_list(Thread* t) noexcept {
  auto tid = static_cast<int32_t>(t->rdi);
  Thread* of = tid == 0 ? t : sched::g_threads.find(tid);
  if (!of) return pass(t);
  uint64_t size = 24;
  if (upcall_copy_user(reinterpret_cast<void*>(t->rsi), &of->robust_list, 8) ||
      upcall_copy_user(reinterpret_cast<void*>(t->rdx), &size, 8))
    return answer(t, -e_fault);
  return answer(t, 0);
}

// Restartable sequences belong to kernel threads. Refused by success with "registration failed" in the area: an
// error would make glibc abort the thread, since the main thread's registration succeeded.
Thread* sys_rseq(Thread* t) noexcept {
  constexpr uint32_t registration_failed = static_cast<uint32_t>(-2);
  if (!(t->rdx & RSEQ_FLAG_UNREGISTER))
    if (upcall_copy_user(reinterpret_cast<void*>(t->rdi + 4), &registration_failed, 4))
      return answer(t, -e_fault);
  return answer(t, 0);
}

Thread* sys_sched_yield(Thread* t) noexcept {
  Activation* a = activation::self();
  t->rax = 0;
  if (!a->processor->has_work() && (activation::real_time_program() || t->bound))
    kernel::sys(__NR_sched_yield);
  if (!a->processor->has_work()) return t;
  activation::save_for_switch(t);
  ++a->processor->counters.yields;
  activation::ready_last(a, t);
  return activation::schedule(a);
}

}  // namespace upcall::linux_abi

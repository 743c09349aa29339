// Delivering: the kernel's signal frame, built on the thread's own or alternate stack, so that handlers, unwinders,
// cancellation and siglongjmp find what they would find on a kernel thread. Layout: rt_sigframe of
// arch/x86/kernel/signal_64.c (an ABI).
#include "arch/x86_64/cpu.h"
#include "base/log.h"
#include "base/syscall.h"
#include "linux/patch/patch.h"
#include "linux/descriptors.h"
#include "linux/signal.h"

namespace upcall::linux_abi::signals {

namespace {

struct Frame {
  uint64_t return_address;
  KernelUcontext uc;
  Info info;
};

// The program sees addresses of its own, not of stubs. Where execution really goes on is kept in fields of the frame
// that neither the kernel nor programs use; sigreturn takes it from there unless a handler has chosen another place.
void show_site(KernelUcontext* uc) noexcept {
  uint64_t shown = patch::program_pc(uc->rip);
  uc->reserved[0] = uc->reserved[1] = 0;
  if (shown == uc->rip) return;
  uc->reserved[0] = uc->rip;
  uc->reserved[1] = shown;
  uc->rip = shown;
}

// Registers of a thread that is about to return from a substituted call.
void from_registers(Thread* t, KernelUcontext* uc) noexcept {
  uc->r8 = t->r8, uc->r9 = t->r9, uc->r10 = t->r10, uc->r11 = t->flags, uc->r12 = t->r12, uc->r13 = t->r13;
  uc->r14 = t->r14, uc->r15 = t->r15, uc->rdi = t->rdi, uc->rsi = t->rsi, uc->rbp = t->rbp, uc->rbx = t->rbx;
  uc->rdx = t->rdx, uc->rax = t->rax, uc->rcx = t->rip, uc->rsp = t->rsp, uc->rip = t->rip,
  uc->eflags = t->flags;
  uc->cs = 0x33, uc->ss = 0x2b;
  uc->flags = activation::g_runtime.xsave_size > 512 ? 7 : 6;
}

// The vector state of the current thread, which is in the registers, at `fp` on the program's stack.
bool save_fpstate(uint64_t fp) noexcept {
  const activation::Runtime& r = activation::g_runtime;
  static const char zeros[1024] = {};
  uint64_t total = r.xsave_size + 4;
  for (uint64_t at = 0; at < total; at += sizeof zeros) {
    uint64_t n = total - at < sizeof zeros ? total - at : sizeof zeros;
    if (upcall_copy_user(reinterpret_cast<void*>(fp + at), zeros, n)) return false;
  }
  auto* area = reinterpret_cast<char*>(fp);
  if (r.xsave_size <= 512) {
    __asm__ volatile("fxsave64 (%0)" ::"r"(area) : "memory");
    return true;
  }
  upcall_xsave(area, r.xsave_features);
  activation::FpSoftware sw = {activation::fp_magic1, r.xsave_size + 4, r.xsave_features, r.xsave_size, {}};
  __builtin_memcpy(area + activation::fp_software_offset, &sw, sizeof sw);
  __builtin_memcpy(area + r.xsave_size, &activation::fp_magic2, 4);
  return true;
}

}  // namespace

bool restartable(int64_t nr) noexcept {
  switch (nr) {
    case __NR_poll:
    case __NR_ppoll:
    case __NR_select:
    case __NR_pselect6:
    case __NR_epoll_wait:
    case __NR_epoll_pwait:
    case __NR_nanosleep:
    case __NR_clock_nanosleep:
    case __NR_pause:
    case __NR_rt_sigsuspend:
    case __NR_rt_sigtimedwait:
    case __NR_semop:
    case __NR_semtimedop:
    case __NR_msgrcv:
    case __NR_msgsnd:
    case __NR_io_getevents:
    case __NR_io_pgetevents:
    case 426:  // io_uring_enter
    case 441:  // epoll_pwait2
      return false;
    default:
      return true;
  }
}

namespace {

// `rest`: if it is to last some time, for what is left of that.
void restart_call(Thread* t, bool rest) noexcept {
  if (t->nr < 0) {  // upcall_native_call: its caller repeats it
    t->rax = static_cast<uint64_t>(-e_restart);
    return;
  }
  make_call_again(t);
  t->restart_deadline = rest ? t->call_deadline : 0;
}

bool ended_by_signal(const Thread* t) noexcept {
  return t->kind == CONTEXT_REGISTERS && t->interrupted_call != sched::Interrupted::no &&
         t->rax == static_cast<uint64_t>(-e_intr);
}

// What a call that a signal has ended answers, with this handler.
void end_call(Thread* t, const Action& action) noexcept {
  t->restart_deadline = 0;
  // An edge has ended its wait, and it has not run since: a signal that comes first ends the call.
  if (end_repeat(t) && t->kind == CONTEXT_REGISTERS) {
    t->rip += STUB_RESTART_OFFSET;
    t->rax = static_cast<uint64_t>(-e_intr);
  }
  if (ended_by_signal(t)) {
    if (t->interrupted_call == sched::Interrupted::restarts && (action.flags & flag_restart))
      restart_call(t, false);
    else
      report_remaining(t);
  }
  t->interrupted_call = sched::Interrupted::no;
}

// A call that was not substituted and that the reserved signal has interrupted: the kernel has put it back to its
// instruction, since our handler says SA_RESTART. The program's handler may say otherwise.
void end_unseen_call(KernelUcontext* uc) noexcept {
  unsigned char at[2];
  if (!may_block_call(static_cast<long>(uc->rax)) ||
      upcall_copy_user(at, reinterpret_cast<void*>(uc->rip), sizeof at) || at[0] != 0x0f || at[1] != 0x05)
    return;
  uc->rip += 2;
  uc->rax = static_cast<uint64_t>(-e_intr);
}

// The handler runs when the thread does. False, and nothing has changed: no room on its stack, or no stack.
bool build_frame(Thread* t, int signal, const Info& info, const Action& action) noexcept {
  bool preempted = t->kind == CONTEXT_SIGNAL_FRAME;
  auto* kept = static_cast<KernelUcontext*>(t->signal_frame);
  if (!preempted && t->fpu != FPU_LIVE) upcall_load_fpu(t);
  uint64_t sp = preempted ? kept->rsp : t->rsp;
  size_t fp_bytes = preempted ? activation::fpstate_bytes(kept) : activation::g_runtime.xsave_size + 4;
  bool nested = on_altstack(t, sp);
  bool alt = (action.flags & flag_onstack) && t->altstack_size && !on_altstack(t, sp - 128);
  auto bottom = reinterpret_cast<uint64_t>(t->altstack_sp);
  uint64_t top = alt ? bottom + t->altstack_size : sp - 128;
  uint64_t fp = (top - fp_bytes) & ~63ul;
  uint64_t at = ((fp - sizeof(Frame)) & ~15ul) - 8;  // as after a call: 8 below a multiple of 16
  // A frame that begins below the alternate stack would be written into somebody else's memory.
  if ((nested || alt) && (at <= bottom || at - bottom > t->altstack_size)) return false;
  Frame frame = {};
  frame.return_address = reinterpret_cast<uint64_t>(upcall_restorer);
  frame.info = info;
  if (preempted) {
    frame.uc = *kept;
    if (!(action.flags & flag_restart)) end_unseen_call(&frame.uc);
    show_site(&frame.uc);
    if (!kept->fpstate || upcall_copy_user(reinterpret_cast<void*>(fp), kept->fpstate, fp_bytes))
      return false;
  } else {
    from_registers(t, &frame.uc);
    show_site(&frame.uc);
    if (!save_fpstate(fp)) return false;
  }
  frame.uc.fpstate = reinterpret_cast<void*>(fp);
  uint64_t mask = t->signals.mask.load(relaxed);
  frame.uc.sigmask = t->restore_mask ? t->saved_mask : mask;
  frame.uc.stack = {t->altstack_sp, t->altstack_flags, t->altstack_size};
  if (upcall_copy_user(reinterpret_cast<void*>(at), &frame, sizeof frame)) return false;
  t->restore_mask = false;
  if (t->altstack_flags & ss_autodisarm)
    t->altstack_sp = nullptr, t->altstack_size = 0, t->altstack_flags = ss_disable;
  set_mask(t, mask | action.mask | (action.flags & flag_nodefer ? 0 : bit(signal)));
  t->kind = CONTEXT_REGISTERS;
  t->native = 0;
  t->rip = action.handler;
  t->rdi = static_cast<uint64_t>(signal);
  t->rsi = at + offsetof(Frame, info);
  t->rdx = at + offsetof(Frame, uc);
  t->rax = 0;
  t->rsp = at;
  t->flags = 0x202;
  return true;
}

}  // namespace

namespace {

// `signal` for this kernel thread, which has it blocked, with what its sender has said.
void pend_here(const Activation* a, int signal, Info info) noexcept {
  info.signo = signal;
  if (kernel::is_error(kernel::sys(__NR_rt_tgsigqueueinfo, activation::g_runtime.pid, a->tid, signal, &info)))
    kernel::sys(__NR_tgkill, activation::g_runtime.pid, a->tid, signal);
}

// The kernel decides whether a process in an orphaned group stops, and tells the parent by which signal.
void stop_process(const Activation* a, int signal, const Info& info) noexcept {
  // SIGCONT was sent after it: that undoes it. (It would be thrown away by the next step.)
  constexpr int sigcont = 18;
  uint64_t pending = 0, set = bit(signal);
  kernel::sys(__NR_rt_sigpending, &pending, mask_bytes);
  if (pending & bit(sigcont)) return;
  pend_here(a, signal, info);
  kernel::sys(__NR_rt_sigprocmask, 1, &set, nullptr, mask_bytes);
  kernel::sys(__NR_rt_sigprocmask, 0, &set, nullptr, mask_bytes);
}

// A frame from which the kernel restores the thread as it is, in memory of the thread. Null: no memory.
KernelUcontext* own_frame(Thread* t) noexcept {
  if (t->kind == CONTEXT_SIGNAL_FRAME) return static_cast<KernelUcontext*>(t->signal_frame);
  if (!t->preempt_frame && !(t->preempt_frame = activation::new_frame())) return nullptr;
  auto* uc = static_cast<KernelUcontext*>(t->preempt_frame);
  if (t->fpu != FPU_LIVE) upcall_load_fpu(t);
  *uc = {};
  from_registers(t, uc);
  uint64_t fp = (reinterpret_cast<uint64_t>(uc + 1) + 63) & ~63ul;
  if (!save_fpstate(fp)) return nullptr;
  uc->fpstate = reinterpret_cast<void*>(fp);
  return uc;
}

// The kernel ends the process at the thread's own instruction, as a core file is to show it: the signal waits while
// everything is blocked, and is let through by the frame that leads back to the program.
void end_process(Thread* t, int signal, const Info& info) noexcept {
  Activation* a = activation::self();
  if (activation::g_runtime.pid == 1) return;  // init of its namespace: not by its own signals
  report_at_exit();
  activation::raise_sentinels();  // the core file is written when they have all stopped
  Action none = {};
  uint64_t all = ~0ul;
  kernel::sys(__NR_rt_sigprocmask, 2, &all, nullptr, mask_bytes);
  kernel::sys(__NR_rt_sigaction, signal, &none, nullptr, mask_bytes);
  pend_here(a, signal, info);
  KernelUcontext* uc = own_frame(t);
  if (!uc) fatal_exit(128 + signal, "killed");
  show_site(uc);
  activation::prepare_frame(a, uc);
  uc->sigmask &= ~bit(signal);
  upcall_return_through(uc);
}

// No room for a frame: the signal is lost, the thread has a fault.
void force_fault(Thread* t) noexcept {
  constexpr int sigsegv = 11, si_kernel = 0x80;
  Info info = {};
  info.signo = sigsegv, info.code = si_kernel;
  Action action = action_of(sigsegv);
  bool taken = action.handler > 1 && !(t->signals.mask.load(relaxed) & bit(sigsegv));
  if (taken && build_frame(t, sigsegv, info, action)) {
    claim_action(sigsegv);
    return;
  }
  (Line() << "thread " << t->tid << ": no room on the stack for a signal frame").write();
  end_process(t, sigsegv, info);
  fatal_exit(128 + sigsegv, "killed");
}

// The thread's next instruction is that of its handler.
void run_handler(Thread* t, int signal, const Info& info, const Action& action) noexcept {
  constexpr int sigsegv = 11;
  end_call(t, action);
  if (build_frame(t, signal, info, action)) {
    ++activation::self()->processor->counters.signals_delivered;
    return;
  }
  // Its own handler has no room: not that one again.
  if (signal == sigsegv) exchange_action(sigsegv, Action{});
  force_fault(t);
}

}  // namespace

void default_action(Thread* t, int signal, const Info& info) noexcept {
  if (log_on(Topic::signal)) (Line() << "default action of signal " << signal).write();
  if (bit(signal) & default_stop)
    stop_process(activation::self(), signal, info);
  else
    end_process(t, signal, info);
}

// `t` is the current thread of this activation and about to run.
Thread* before_resume(Thread* t) noexcept {
  t->attention.store(0, fenced);  // pairs with notify: what is posted later sets it again
  if (t->sigwait_set) {
    if (!finish_sigwait(t)) return t;
  }
  // Stopped inside our entry code, where unwinding would go wrong: a moment later it will not.
  if (t->kind == CONTEXT_SIGNAL_FRAME) {
    uint64_t rip = static_cast<KernelUcontext*>(t->signal_frame)->rip;
    if (rip >= reinterpret_cast<uint64_t>(upcall_text_begin) &&
        rip < reinterpret_cast<uint64_t>(upcall_text_end)) {
      t->attention.store(1, relaxed);
      return t;
    }
  }
  for (;;) {
    Info info;
    int signal = take(t, ~t->signals.mask.load(relaxed) | unblockable, &info);
    if (!signal) break;
    Action action = claim_action(signal);
    if (is_ignored(signal, action)) continue;
    if (action.handler == 0) {
      default_action(t, signal, info);
      continue;
    }
    run_handler(t, signal, info, action);
    if (log_on(Topic::signal)) (Line() << "signal " << signal << " to thread " << t->tid).write();
    recheck(t);
    if (!t->attention.load(relaxed)) return t;
    t->attention.store(0, relaxed);
  }
  // No handler for it: the call goes on as if nothing had been.
  if (ended_by_signal(t)) restart_call(t, true);
  t->interrupted_call = sched::Interrupted::no;
  if (t->restore_mask && t->kind == CONTEXT_REGISTERS) {
    t->restore_mask = false;
    set_mask(t, t->saved_mask);
    if (t->attention.load(relaxed)) return before_resume(t);
  }
  return t;
}

// From the restorer: rsp is at the ucontext of a frame built above.
Thread* sys_rt_sigreturn(Thread* t) noexcept {
  auto* uc = reinterpret_cast<KernelUcontext*>(t->rsp);
  uint64_t mask, rip;
  t->interrupted_call = sched::Interrupted::no;
  // It is written to before the kernel reads it.
  if (upcall_load_user64(&uc->sigmask, &mask) || upcall_load_user64(&uc->rip, &rip) ||
      upcall_copy_user(&uc->flags, &uc->flags, 8) || upcall_copy_user(&uc->sigmask, &mask, 8)) {
    force_fault(t);
    return t;
  }
  uint64_t kept[2];
  if (!upcall_copy_user(kept, uc->reserved, sizeof kept) && kept[0] && kept[1] == rip) uc->rip = kept[0];
  t->kind = CONTEXT_SIGNAL_FRAME;
  t->signal_frame = uc;
  t->fpu = FPU_LIVE;
  if (!activation::g_runtime.started)
    return t;  // a fork's child returns from its parent's handler: the mask is real
  set_mask(t, mask);
  // What the handler has done with sigaltstack ends with it, unless it interrupted one on that stack.
  set_altstack(t, uc->stack, uc->rsp);
  activation::prepare_frame(activation::self(), uc);
  recheck(t);
  return t;
}

namespace {

// The stack is the one that the thread's TLS lies on (thread libraries put it at the top). A frame larger than the
// guard may have jumped over it.
bool report_overflow(Thread* t, uint64_t address, uint64_t sp) noexcept {
  constexpr uint64_t large_frame = 1u << 20;
  uint64_t bottom, size, guard = 0;
  const uint64_t tls = arch::read_fs();
  if (!find_stack(tls, &bottom, &size, &guard)) {
    // Looked for only where it is likely: programs may have faults by the thousand.
    if (sp + large_frame < address || sp > address + 2 * large_frame) return false;
    if (!find_own_stack(tls, address, &bottom, &size)) return false;
  }
  if (address >= bottom + guard || address + large_frame < bottom || sp >= bottom + guard + large_frame)
    return false;
  (Line() << "stack overflow in thread " << t->tid << " (\"" << static_cast<const char*>(t->name)
          << "\"), stack size " << ((size - guard) / 1024)
          << " KiB; a larger one: pthread_attr_setstacksize or ulimit -s")
      .write();
  return true;
}

}  // namespace

// A fault of a thread, on the activation's alternate stack; in_runtime is set.
void deliver_fault(int signal, const Info* info, KernelUcontext* uc) noexcept {
  Activation* a = activation::self();
  Thread* t = a->current;
  Action action = action_of(signal);
  if (signal == 11) report_overflow(t, info->fault_address, uc->rsp);
  t->fs = arch::read_fs();
  t->signal_frame = uc;
  t->kind = CONTEXT_SIGNAL_FRAME;
  // As force_sig does it: who does not take it ends by it.
  if (action.handler > 1 && !(t->signals.mask.load(relaxed) & bit(signal))) {
    run_handler(t, signal, *info, claim_action(signal));
  } else {
    end_process(t, signal, *info);
    // Init of its namespace: the kernel ends even that one, when the instruction faults again.
    Action none = {};
    kernel::sys(__NR_rt_sigaction, signal, &none, nullptr, mask_bytes);
  }
  upcall_resume(t);
}

// A vfork child has called one of our functions by symbol.
bool guest_fixup(KernelUcontext* uc) noexcept {
  auto at = [uc](const char* label) { return uc->rip == reinterpret_cast<uint64_t>(label); };
  if (at(upcall_yield_gs)) {
    uc->rip = reinterpret_cast<uint64_t>(upcall_yield_guest);
  } else if (at(upcall_native_gs)) {
    uc->rip = reinterpret_cast<uint64_t>(upcall_native_guest);
  } else if (at(upcall_current_gs)) {  // answers null
    uc->rip = reinterpret_cast<uint64_t>(upcall_current_end);
  } else {
    return false;
  }
  return true;
}

namespace {

// A filter (SECCOMP_RET_TRAP) has trapped the call that the runtime makes for its thread: no lock is held, but for a fork.
// The call is not made and answers its number, as the kernel has it; the signal is the thread's, at its own site.
bool trapped_call(const Activation* a, int signal, const Info* info) noexcept {
  constexpr int by_filter = 1;  // SYS_SECCOMP
  constexpr size_t number_at = 8;
  Thread* t = a->current;
  if (signal != 31 || info->code != by_filter || !t) return false;
  int32_t number;
  __builtin_memcpy(&number, info->rest + number_at, sizeof number);
  if (number != t->nr || number == __NR_fork || number == __NR_clone || number == __NR_clone3) return false;
  Info shown = *info;
  shown.fault_address = patch::program_pc(t->rip);
  Action action = action_of(signal);
  if (action.handler <= 1 || (t->signals.mask.load(relaxed) & bit(signal)) || !post_thread(t, signal, shown))
    default_action(t, signal, shown);
  return true;
}

}  // namespace

// The kernel calls this for faults and for the reserved signal.
extern "C" __attribute__((visibility("hidden"))) void upcall_on_signal(int signal, void* raw_info,
                                                                       void* ucontext) {
  auto* info = static_cast<Info*>(raw_info);
  auto* uc = static_cast<KernelUcontext*>(ucontext);
  if (signal == activation::credentials_signal && info->code == si_tkill &&
      info->sender.pid == activation::g_runtime.pid) {
    activation::follow_credentials();
    return;
  }
  if (signal == activation::credentials_signal && activation::g_runtime.started) {  // from outside
    activation::hand_to_monitor(signal, info);
    return;
  }
  if (!arch::read_gs()) {  // a vfork child, or a helper: the kernel's own action
    if (signal == 11 && guest_fixup(uc)) return;
    Action none = {};
    if (signal != activation::preempt_signal) kernel::sys(__NR_rt_sigaction, signal, &none, nullptr, 8);
    return;
  }
  if (signal == activation::preempt_signal) {
    activation::on_preempt_signal(uc);
    return;
  }
  Activation* a = activation::self();
  if (!(bit(signal) & activation::fault_signals) || info->code <= 0) {  // sent by somebody, not a fault
    constexpr int sigttin = 21, sigttou = 22;
    if ((signal == sigttin || signal == sigttou) &&
        a->in_runtime.load(relaxed)) {  // terminal.cc: no lock is held
      post_thread(a->current, signal, *info);
      return;
    }
    a->interrupt.store(1, relaxed);  // what the call in the kernel answers is not the program's to see
    activation::hand_to_monitor(signal, info);
    return;
  }
  if (a->in_runtime.load(relaxed)) {
    if (uc->rip >= reinterpret_cast<uint64_t>(upcall_user_begin) &&
        uc->rip < reinterpret_cast<uint64_t>(upcall_user_end)) {
      uc->rip = reinterpret_cast<uint64_t>(upcall_user_fault);
      return;
    }
    if (trapped_call(a, signal, info)) return;
    Line line;
    line << "internal error: signal " << signal << " inside the runtime, at upcall_text_begin + ";
    line.hex(uc->rip - reinterpret_cast<uint64_t>(upcall_text_begin)) << ", address ";
    line.hex(info->fault_address).write();
    Action none = {};
    kernel::sys(__NR_rt_sigaction, signal, &none, nullptr, 8);
    return;
  }
  // Lost: the instruction faults again where the thread goes on, or here, where there was no memory to leave it.
  if (!activation::enter_from_handler(a, uc)) return;
  deliver_fault(signal, info, uc);
}

}  // namespace upcall::linux_abi::signals

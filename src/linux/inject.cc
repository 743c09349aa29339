// Builds with -DUPCALL_INJECT=ON post a signal of their own to threads at every other entry into the runtime and every other
// way out: a call is then interrupted before it is made, or a handler runs at its end, wherever a program makes one. The
// handler says SA_RESTART, so that a program's results stay what they are. Not for calls that answer EINTR all the same, and
// not before those that look at or change what is pending.
#ifdef UPCALL_INJECT

#include "arch/x86_64/cpu.h"
#include "linux/signal.h"

namespace upcall::linux_abi::signals {

namespace {

constexpr int injected_signal = 59;

atomic<uint64_t> g_handled{0};

// On the program's stack, as any handler.
void on_injected(int, void*, void*) noexcept { g_handled.fetch_add(1, relaxed); }

// The calls that are given to the kernel in parts, or end by any signal.
bool may_interrupt(int64_t nr) noexcept {
  switch (nr) {
    case __NR_rt_sigprocmask:
    case __NR_rt_sigaction:
    case __NR_rt_sigpending:
    case __NR_rt_sigreturn:
    case __NR_execve:
    case __NR_execveat:
    case __NR_exit:
    case __NR_exit_group:
      return false;
    default:
      return restartable(nr);
  }
}

bool every_other_time() noexcept { return (arch::tsc() * 0x9E3779B97F4A7C15u >> 63) != 0; }

void inject(Thread* t) noexcept {
  if (!activation::g_runtime.started || !t->tid || t->parked.load(relaxed) || !every_other_time()) return;
  if (t->signals.mask.load(relaxed) & bit(injected_signal)) return;
  Action action = action_of(injected_signal);
  if (action.handler == 0) {
    action.handler = reinterpret_cast<uint64_t>(&on_injected);
    action.flags = flag_siginfo | flag_restart;
    set_action(injected_signal, action);
  }
  if (action.handler != reinterpret_cast<uint64_t>(&on_injected)) return;  // the program's own
  Info info = {};
  info.signo = injected_signal;
  info.code = -6;  // SI_TKILL
  info.sender.pid = activation::g_runtime.pid;
  post_thread(t, injected_signal, info);
}

}  // namespace

// From entry.S, before a handler of the table and before a thread goes on; no lock is held.
extern "C" __attribute__((visibility("hidden"))) void upcall_inject_entering(Thread* t) {
  if (may_interrupt(t->nr)) inject(t);
}
extern "C" __attribute__((visibility("hidden"))) void upcall_inject_leaving(Thread* t) {
  // The thread's own call is over; its answer stands. Not where the answer is EINTR: that is looked at below.
  if (t->nr != __NR_rt_sigreturn && t->rax != static_cast<uint64_t>(-e_intr)) inject(t);
}

}  // namespace upcall::linux_abi::signals

#endif

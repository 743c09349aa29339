// Time slices. The reserved signal stops a thread wherever it is: its frame is the saved context (any activation
// may return through it). Inside the runtime the handler only leaves a note; entry.S reads it on the way out.
#include "activation/activation.h"
#include "activation/signal_frame.h"
#include "arch/x86_64/cpu.h"
#include "kernel/memory.h"

// This library's code, by the linker.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[], etext[];  // NOLINT

namespace upcall::activation {

Thread* (*g_before_resume)(Thread*) = nullptr;

namespace {

SpinLock g_frames_lock{Rank::memory};
void* g_free_frames = nullptr;

size_t frame_bytes() noexcept {
  return (sizeof(KernelUcontext) + 63 + g_runtime.xsave_size + 4 + 4095) & ~4095ul;
}

}  // namespace

// The frame lies on the activation's alternate stack: moves it where the thread can keep it.
bool keep_frame(Thread* t, const void* ucontext) noexcept {
  auto* uc = static_cast<const KernelUcontext*>(ucontext);
  size_t fp = uc->fpstate ? fpstate_bytes(uc) : 0;
  if (sizeof(KernelUcontext) + 64 + fp > frame_bytes()) return false;
  if (!t->preempt_frame && !(t->preempt_frame = new_frame())) return false;
  auto* copy = static_cast<KernelUcontext*>(t->preempt_frame);
  *copy = *uc;
  if (fp) {
    uint64_t at = (reinterpret_cast<uint64_t>(copy + 1) + 63) & ~63ul;
    __builtin_memcpy(reinterpret_cast<void*>(at), uc->fpstate, fp);
    copy->fpstate = reinterpret_cast<void*>(at);
  }
  t->signal_frame = copy;
  t->kind = CONTEXT_SIGNAL_FRAME;
  t->fpu = FPU_LIVE;
  return true;
}

// It is blocked in its handler, and unblocked by the return from there. Who goes on without that says so himself.
void unblock_preempt_signal() noexcept {
  uint64_t set = bit(preempt_signal);
  kernel::sys(__NR_rt_sigprocmask, 1, &set, nullptr, 8);
}

void* new_frame() noexcept {
  LockGuard guard(g_frames_lock);
  if (void* f = g_free_frames) {
    g_free_frames = *static_cast<void**>(f);
    return f;
  }
  return kernel::map_pages(frame_bytes());
}

void free_frame(void* frame) noexcept {
  LockGuard guard(g_frames_lock);
  *static_cast<void**>(frame) = g_free_frames;
  g_free_frames = frame;
}

void lock_frames_for_fork() noexcept { g_frames_lock.lock(); }
void unlock_frames_after_fork() noexcept { g_frames_lock.unlock(); }

void send_signal(Activation* a) noexcept {
  // fenced: pairs with on_preempt_signal, which clears the flag and then looks at what we have set before.
  if (a->signal_sent.exchange(1, fenced)) return;
  // Refused where the user has too many signals queued (RLIMIT_SIGPENDING): whoever is next may try again.
  if (kernel::is_error(kernel::sys(__NR_tgkill, g_runtime.pid, a->tid, preempt_signal)))
    a->signal_sent.store(0, relaxed);
}

void preempt_activation(Activation* a) noexcept {
  Processor* p = a->processor;
  p->preempt_in_flight.fetch_add(1, fenced);  // pairs with enter_kernel's exchange of the owner word
  OwnerWord w = {p->owner.load(fenced)};
  if (w.state() == Owner::running && w.activation() == a->index) send_signal(a);
  p->preempt_in_flight.fetch_sub(1, release);
}

// On the alternate stack of the activation that the signal was sent to.
void on_preempt_signal(void* ucontext) noexcept {
  Activation* a = self();
  auto* uc = static_cast<KernelUcontext*>(ucontext);
  if (a->is_monitor) return;
  a->signal_sent.exchange(0, fenced);  // pairs with send_signal
  if (a->in_runtime.load(relaxed)) {
    a->resched.store(1, relaxed);
    a->interrupt.store(1, relaxed);
    auto rip = uc->rip;
    if (rip >= reinterpret_cast<uint64_t>(upcall_blocking_begin) &&
        rip < reinterpret_cast<uint64_t>(upcall_blocking_end))
      uc->rip = reinterpret_cast<uint64_t>(upcall_blocking_interrupted);
    return;
  }
  // Not marked, but in our code: on the way in or out, about to become a thread by sigreturn, or in a handler that
  // has just begun on the alternate stack (signals queue up). The next way out of the runtime takes notice.
  if (uc->rip >= reinterpret_cast<uint64_t>(__ehdr_start) && uc->rip < reinterpret_cast<uint64_t>(etext)) {
    a->resched.store(1, relaxed);
    return;
  }
  if (!enter_from_handler(a, uc)) return;
  Thread* t = a->current;
  bool signals = t->attention.load(acquire) != 0;
  if (!a->processor->has_work() && !signals) {
    compiler_barrier();
    a->in_runtime.store(0, relaxed);
    return;
  }
  drain_inbox(a->processor);  // what has come before goes before
  if ((!signals && !a->processor->ready.beats(t)) || !keep_frame(t, uc)) {
    compiler_barrier();
    a->in_runtime.store(0, relaxed);
    return;
  }
  unblock_preempt_signal();
  t->fs = arch::read_fs();
  if (signals) upcall_resume(t);  // through before_resume
  upcall_resume(preempted(a, t));
}

}  // namespace upcall::activation

// set*id. In the kernel they change the calling kernel thread only; the C library's functions make every thread repeat the
// call, on the signal that it keeps for this. Those calls mean the process: the first one is made on all kernel threads that
// threads may come to run on, the others find it made. A call from anywhere else (syscall(2), a program's own instruction)
// means its thread, which is bound.
#include "activation/signal_frame.h"

#include "kernel/memory.h"
#include "linux/linux.h"
#include "linux/patch/patch.h"

namespace upcall::linux_abi {

namespace {

CodeRange g_library, g_library_threads, g_plain;

bool by_library(const Thread* t) noexcept {
  uintptr_t pc = patch::program_pc(t->rip) - 1;  // of the instruction, whatever stands behind it
  return (g_library.holds(pc) || g_library_threads.holds(pc)) && !g_plain.holds(pc);
}

// The library's handler makes the call for its thread; who has sent the signals makes the last one.
bool answers_signal(const Thread* t) noexcept {
  return t->signals.mask.load(relaxed) & activation::bit(activation::credentials_signal);
}

int arguments(long nr) noexcept {
  switch (nr) {
    case __NR_setuid:
    case __NR_setgid:
      return 1;
    case __NR_setreuid:
    case __NR_setregid:
      return 2;
    default:
      return 3;
  }
}

long change_groups(const Thread* t) noexcept {
  constexpr uint32_t longest = 65536;
  auto n = static_cast<uint32_t>(t->rdi);
  if (n > longest) return raw_call(t);
  activation::IdCall c = {t->nr, {n, 0, 0}, nullptr, 4ul * n};
  size_t bytes = (c.list_bytes + 4096) & ~4095ul;
  void* list = kernel::map_pages(bytes);
  if (!list) return -e_nomem;
  c.list = list;
  c.args[1] = reinterpret_cast<long>(list);
  // A list that cannot be read is the kernel's to refuse.
  long r = upcall_copy_user(list, reinterpret_cast<void*>(t->rsi), c.list_bytes)
               ? raw_call(t)
               : activation::change_credentials(c, t->bound != nullptr, !answers_signal(t));
  kernel::unmap_pages(list, bytes);
  return r;
}

long change(Thread* t) noexcept {
  if (t->nr == __NR_setgroups) return change_groups(t);
  activation::IdCall c = {t->nr, {}, nullptr, 0};
  const uint64_t args[] = {t->rdi, t->rsi, t->rdx};
  for (int i = 0; i < arguments(t->nr); ++i) c.args[i] = static_cast<int32_t>(args[i]);
  return activation::change_credentials(c, t->bound != nullptr, !answers_signal(t));
}

}  // namespace

void know_library(const CodeRange& library, const CodeRange& threads, const CodeRange& plain) noexcept {
  g_library = library;
  g_library_threads = threads;
  g_plain = plain;
}

Thread* sys_set_ids(Thread* t) noexcept {
  // Of the only thread there is the process's are no others; whoever comes later has them from it.
  bool alone = !t->bound && sched::g_threads.live() - g_counters.threads_parked.load(relaxed) == 1;
  if (!alone && !by_library(t)) return sys_bound(t);
  return activation::work_away(t, change);
}

}  // namespace upcall::linux_abi

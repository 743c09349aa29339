// Start-up. Loading the library patches only what can make a thread; the first thread starts the rest, so that a
// program that never makes one, and the children that a shell forks by the hundred, pay next to nothing.
#include <elf.h>
#include <linux/rseq.h>
#include <sys/auxv.h>

#include <new>

#include "activation/signal_frame.h"
#include "activation/switch_events.h"
#include "arch/x86_64/cpu.h"
#include "base/fence.h"
#include "base/log.h"
#include "kernel/clock.h"
#include "kernel/memory.h"
#include "linux/linux.h"
#include "linux/patch/patch.h"
#include "runtime/config.h"

// glibc 2.35 and later: where the thread's rseq area is, from the thread pointer.
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));   // NOLINT: glibc's name
extern const unsigned int __rseq_size __attribute__((weak));  // NOLINT
}

namespace upcall::linux_abi {

using activation::g_runtime;

namespace {

Thread* g_main = nullptr;
activation::Activation* g_first = nullptr;

void take_rseq_back() noexcept {
  if (!&__rseq_offset || !&__rseq_size || !__rseq_size) return;
  uint64_t area = arch::read_fs() + static_cast<uint64_t>(__rseq_offset);
  constexpr uint32_t signature = 0x53053053;
  uint32_t size = __rseq_size < 32 ? 32 : __rseq_size;
  kernel::sys(__NR_rseq, area, size, RSEQ_FLAG_UNREGISTER, signature);
  *reinterpret_cast<uint32_t*>(area + 4) = static_cast<uint32_t>(-2);  // registration failed: use getcpu
}

uint32_t choose_processors() noexcept {
  g_runtime.affinity_size = kernel::sys(__NR_sched_getaffinity, 0, sizeof g_runtime.affinity,
                                        static_cast<void*>(g_runtime.affinity));
  uint32_t cpus = 0;
  for (uint64_t word : g_runtime.affinity) cpus += static_cast<uint32_t>(__builtin_popcountl(word));
  if (!cpus) cpus = 1;
  return runtime::g_config.processors ? runtime::g_config.processors : cpus;
}

bool make_processors(uint32_t n) noexcept {
  static uint32_t room = 0;  // a fork's child may have more of them than its parent
  if (!g_runtime.processor || room < n) {
    room = n;
    g_runtime.processor =
        static_cast<activation::Processor*>(kernel::map_pages(n * sizeof(activation::Processor)));
    if (!g_runtime.processor) return false;
  }
  uint32_t here = 0;
  kernel::sys(__NR_getcpu, &here, nullptr, nullptr);
  uint32_t cpu = here;
  auto allowed = [](uint32_t c) { return (g_runtime.affinity[c / 64 % 16] >> (c % 64)) & 1; };
  for (uint32_t i = 0; i < n; ++i) {
    auto* p = new (&g_runtime.processor[i]) activation::Processor;
    p->index = i;
    for (int tries = 0; !allowed(cpu) && tries < 1024; ++tries) cpu = (cpu + 1) % 1024;
    p->cpu = cpu;
    cpu = (cpu + 1) % 1024;
  }
  g_runtime.processors = n;
  g_runtime.sleeping.store(n - 1, relaxed);
  g_runtime.spinning.store(0, relaxed);
  return true;
}

void main_thread_facts(Thread* t) noexcept {
  constexpr int pr_get_name = 16;
  kernel::sys(__NR_prctl, pr_get_name, static_cast<char*>(t->name));
  // What the kernel thread has been given (chrt, or the program itself) counts among the program's threads, too.
  constexpr long reset_on_fork = 0x40000000;
  long policy = kernel::sys(__NR_sched_getscheduler, 0);
  int32_t priority = 0;
  if (long n = kernel::sys(__NR_getpriority, 0, 0); n > 0) t->nice = static_cast<int32_t>(20 - n);
  if (policy >= 0 && kernel::sys(__NR_sched_getparam, 0, &priority) == 0) {
    t->sched_policy = static_cast<int32_t>(policy & ~reset_on_fork);
    t->sched_priority = priority;
  }
  uint64_t head = 0, size = 0;
  if (kernel::sys(__NR_get_robust_list, 0, &head, &size) == 0) t->robust_list = reinterpret_cast<void*>(head);
  kernel::sys(__NR_set_robust_list, nullptr, 24);
  uint32_t* clear = nullptr;
  constexpr int pr_get_tid_address = 40;
  if (kernel::sys(__NR_prctl, pr_get_tid_address, &clear) == 0) t->clear_child_tid = clear;
}

// Asked for: the first thread waits until it is there, or is told why not.
void start_with_bpf(Activation* a) noexcept {
  activation::start_switch_events();
  activation::note_own_switches(a);
  auto& refusal = g_runtime.bpf_refusal;
  if (g_counters.bpf_loaded.load(relaxed)) return;
  (Line() << "BPF is not to be had here (" << (refusal.what ? refusal.what : "no kernel thread for it")
          << ", error " << refusal.error
          << "; 'upcall doctor' says more): blocking is noticed by the sentinel")
      .write();
}

// For good: with GS 0 every stub makes the plain call, here and in the threads to come, which inherit it. The call that
// would have started the runtime is made so, too.
[[noreturn]] void stay_on_kernel_threads(Thread* t) noexcept {
  report_at_exit();  // nothing more is to be told
  g_runtime.symbols = false;
  upcall_gs_is_ours = 0;
  upcall_yields_are_ours = 0;
  arch::write_gs(0);
  upcall_leave(leave_to_stub(t));
}

}  // namespace

bool start_runtime(Thread* t) noexcept {
  Activation* a = activation::self();
  g_runtime.pid = static_cast<int32_t>(kernel::sys(__NR_getpid));
  g_runtime.quantum = runtime::g_config.quantum_ns;
  activation::read_program_class();
  g_runtime.events = runtime::g_config.events;
  g_runtime.sentinel = g_runtime.events != activation::Events::monitor && activation::sentinel_is_below();
  g_runtime.share_threads = runtime::g_config.share_threads;
  activation::g_measuring = runtime::g_config.stats || *runtime::g_config.stats_file || log_on(Topic::sched);
  g_runtime.activation_cap = runtime::g_config.activations;
  patch::patch_process(patch::Phase::all);
  if (patch::totals().critical_unpatched) {
    (Line() << "thread calls at " << patch::totals().critical_unpatched
            << " places could not be redirected (UPCALL_LOG=patch lists them); running on kernel threads")
        .write();
    stay_on_kernel_threads(t);
  }
  if (!make_processors(choose_processors())) return false;
  register_membarrier();
  init_futexes();
  sched::g_threads.set_main(t, g_runtime.pid);
  t->is_main = true;
  a->processor = &g_runtime.processor[0];
  a->tid = static_cast<int32_t>(kernel::sys(__NR_gettid));
  a->current = t;
  a->processor->owner.store(activation::OwnerWord{}.next(activation::Owner::running, a->index).bits, relaxed);
  activation::reset_events();
  activation::deliver(activation::new_event(activation::Upcall::add_processor, 0, a->index, g_runtime.pid));
  t->activation.store(a, relaxed);
  t->home = a->processor;
  t->state.store(sched::State::running, relaxed);
  t->fs = arch::read_fs();
  main_thread_facts(t);
  take_rseq_back();
  take_over_signals(t);
  g_counters.activations_created.store(1, relaxed);
  g_counters.kernel_threads_live.store(1, relaxed);
  raise_peak(g_counters.kernel_threads_peak, 1);
  if (!activation::start_monitor()) {
    give_back_signals(t);
    return false;
  }
  // After the monitor has had the whole mask from us.
  activation::pin_self(a->processor->cpu);
  activation::hide_program_class();
  g_runtime.started = true;
  upcall_yields_are_ours = 1;
  install_table(true);
  activation::g_thread_killed = thread_killed;
  if (g_runtime.events == activation::Events::bpf) start_with_bpf(a);
  if (log_on(Topic::start))
    (Line() << "started: " << g_runtime.processors << " processors, " << patch::totals().patched
            << " call sites")
        .write();
  return true;
}

// The child of a fork: one kernel thread, one thread. As before the first thread was made; the next one starts over.
void unstart_runtime(Thread* t) noexcept {
  Activation* a = activation::self();
  g_runtime.started = false;
  upcall_yields_are_ours = 0;
  g_runtime.pid = static_cast<int32_t>(kernel::sys(__NR_getpid));
  bool own_affinity = t->bound;
  t->forked_on = nullptr;
  activation::unbind_in_child(t);
  activation::forget_others(a);
  if (g_forked) g_forked(t);
  sched::g_threads.keep_only(t);
  sched::g_threads.set_main(t, g_runtime.pid);
  reset_futexes();
  reset_signals(t);
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    g_runtime.processor[i].ready.reset();
    g_runtime.processor[i].timers.reset();
  }
  a->resched.store(0, relaxed);
  a->signal_sent.store(0, relaxed);
  a->interrupt.store(0, relaxed);
  if (!own_affinity)
    kernel::sys(__NR_sched_setaffinity, 0, sizeof g_runtime.affinity, static_cast<void*>(g_runtime.affinity));
  install_table(false);
  reset_counters();
  kernel::sys(__NR_set_robust_list, t->robust_list, 24);
  give_back_signals(t);
}

namespace {

__attribute__((constructor)) void load(int, char**, char** env) {
  runtime::read_environment(env);
  if (!runtime::g_config.stats_pid)
    runtime::g_config.stats_pid = static_cast<uint64_t>(kernel::sys(__NR_getpid));
  constexpr unsigned long fsgsbase = 2;
  if (!(getauxval(AT_HWCAP2) & fsgsbase)) {
    (Line() << "this kernel or CPU does not let programs set the GS base (FSGSBASE, Linux 5.9); running on "
               "kernel threads")
        .write();
    return;
  }
  arch::XsaveInfo xsave = arch::detect_vectors();
  g_runtime.xsave_features = xsave.features;
  g_runtime.xsave_size = xsave.size;
  kernel::init_clock(reinterpret_cast<const void*>(getauxval(AT_SYSINFO_EHDR)));
  g_first = activation::new_activation_record();
  g_main = sched::g_threads.allocate();
  if (!g_first || !g_main) fatal_exit(126, "no memory for the runtime");
  g_main->is_main = true;
  sched::g_threads.add_live(g_main);
  g_first->current = g_main;
  g_first->in_runtime.store(0, relaxed);
  arch::write_gs(reinterpret_cast<uint64_t>(g_first));
  upcall_gs_is_ours = 1;
  install_table(false);
  patch::configure({reinterpret_cast<void*>(&upcall_entry), wants_substitution});
  patch::patch_process(log_on(Topic::syscall) ? patch::Phase::all : patch::Phase::thread_creation);
  g_runtime.symbols = runtime::g_config.symbols;
}

}  // namespace

}  // namespace upcall::linux_abi

// Start-up. Loading the library redirects three places of libc; the first thread has the rest set up and started, so that
// a program that never makes one, and the children that a shell forks by the hundred, pay next to nothing.
#include <elf.h>
#include <link.h>
#include <linux/rseq.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <new>

#include "activation/credentials.h"
#include "activation/signal_frame.h"
#include "activation/switch_events.h"
#include "arch/x86_64/cpu.h"
#include "base/fence.h"
#include "base/log.h"
#include "kernel/clock.h"
#include "kernel/memory.h"
#include "kernel/proc.h"
#include "linux/descriptors.h"
#include "linux/linux.h"
#include "linux/patch/early.h"
#include "linux/patch/patch.h"
#include "runtime/config.h"
#include "runtime/follow.h"

// glibc 2.35 and later: where the thread's rseq area is, from the thread pointer.
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));   // NOLINT: glibc's name
extern const unsigned int __rseq_size __attribute__((weak));  // NOLINT
}

namespace upcall::linux_abi {

using activation::g_runtime;

namespace {

Thread* g_main = nullptr;
// A fork's child: of its parent's threads only the survivor is there. The records of the others are cleaned up when there
// are to be threads again; most children call exec, and each page that is written would be copied for them.
bool g_inherited = false;
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
  g_runtime.descriptor_events = runtime::g_config.descriptor_events;
  g_runtime.pipe_events = runtime::g_config.pipe_events;
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
  if (g_inherited) {
    sched::g_threads.keep_only(t);
    g_inherited = false;
  }
  init_futexes();
  init_descriptors();
  sched::g_threads.set_main(t, g_runtime.pid);
  t->is_main = true;
  a->processor = &g_runtime.processor[0];
  a->tid = static_cast<int32_t>(kernel::sys(__NR_gettid));
  a->current = t;
  activation::begin_credentials(a);
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
  bool was_bound = t->bound;
  t->forked_on = nullptr;
  forget_polls(t);
  activation::unbind_in_child(t);
  activation::forget_others(a);
  if (g_forked) g_forked(t);
  sched::g_threads.leave_others();
  g_inherited = true;
  sched::g_threads.set_main(t, g_runtime.pid);
  reset_futexes();
  forget_descriptors();
  reset_signals(t);
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    g_runtime.processor[i].ready.reset();
    g_runtime.processor[i].timers.reset();
  }
  a->resched.store(0, relaxed);
  a->signal_sent.store(0, relaxed);
  a->interrupt.store(0, relaxed);
  if (!was_bound) show_attributes(t);
  t->affinity_set = false;  // the kernel knows it now
  install_table(false);
  reset_counters();
  kernel::sys(__NR_set_robust_list, t->robust_list, 24);
  give_back_signals(t);
}

namespace {

// The loader's name of this library.
int note_own_name(dl_phdr_info* info, size_t, void* data) {
  auto* name = static_cast<const char**>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& ph = info->dlpi_phdr[i];
    if (ph.p_type != PT_LOAD) continue;
    uint64_t offset = reinterpret_cast<uint64_t>(&runtime::g_config) - info->dlpi_addr;
    if (offset - ph.p_vaddr >= ph.p_memsz) continue;
    *name = info->dlpi_name;
    return 1;
  }
  return 0;
}

// Before anybody else looks at the environment: this constructor is the first of all.
void stay_here(char** env) {
  const char* own = "";
  dl_iterate_phdr(note_own_name, &own);
  runtime::leave_preload(env, own);
}

// Only where it is `done` is exit_group ours.
//   waits  nothing is set up before the first thread. -> done, never
//   never  this process stays on kernel threads
enum class Setup : uint8_t { done, waits, never };
Setup g_setup = Setup::done;
long g_loaded_in = 0;

bool usable() noexcept {
  constexpr unsigned long fsgsbase = 2;
  if (getauxval(AT_HWCAP2) & fsgsbase) return true;
  (Line() << "this kernel or CPU does not let programs set the GS base (FSGSBASE, Linux 5.9); running on "
             "kernel threads")
      .write();
  return false;
}

// Everything but what the first thread starts.
void set_up(patch::Phase phase) noexcept {
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
  patch::patch_process(phase);
  g_runtime.symbols = runtime::g_config.symbols;
}

// The kernel's own (io_uring, vhost) are threads of the process, too, and never run its code.
bool made_by_kernel(const char* tid) noexcept {
  char name[16];
  if (!kernel::read_text(kernel::Path("/proc/self/task/", tid, "/comm"), name, sizeof name))
    return true;  // ended
  return !__builtin_memcmp(name, "iou-", 4) || !__builtin_memcmp(name, "vhost-", 6);
}

// A kernel thread that has come by another way than libc's runs without us.
bool alone() noexcept {
  int threads = 0;
  kernel::each_entry("/proc/self/task", [&](long, const char* tid) { threads += !made_by_kernel(tid); });
  return threads <= 1;
}

// Kernel threads for good, before there is a second one.
void stay_plain(const char* why) noexcept {
  (Line() << why << "; running on kernel threads").write();
  g_runtime.symbols = false;
  upcall_gs_is_ours = 0;
  arch::write_gs(0);
  g_setup = Setup::never;
}

constexpr char cannot_redirect[] =
    "libc cannot be redirected (its file cannot be read, or its pages not be changed)";

__attribute__((constructor)) void load(int, char**, char** env) {
  if (g_loaded_in) return;
  runtime::read_environment(env);
  if (!runtime::g_config.follow) stay_here(env);
  g_loaded_in = kernel::sys(__NR_getpid);
  if (!runtime::g_config.stats_pid) runtime::g_config.stats_pid = static_cast<uint64_t>(g_loaded_in);
  // Who wants to see calls, or what is redirected, sees it in programs without threads, too.
  bool told = log_on(Topic::patch) || log_on(Topic::syscall);
  if (!told && patch::arm_early()) {
    g_setup = Setup::waits;
    return;
  }
  if (!usable()) {
    g_setup = Setup::never;
    return;
  }
  if (g_set_up) g_set_up();
  set_up(log_on(Topic::syscall) ? patch::Phase::all : patch::Phase::thread_creation);
  if (!patch::totals().patched) stay_plain(cannot_redirect);
}

// Statistics of a process that never had a second thread. Otherwise exit_group is ours.
__attribute__((destructor)) void unload() {
  if (g_setup != Setup::done) report_at_exit();
}

}  // namespace

// By _exit. Not in a vfork child, whose parent goes on with this memory.
void leaves_early() noexcept {
  if (g_setup != Setup::done && kernel::sys(__NR_getpid) == g_loaded_in) report_at_exit();
}

}  // namespace upcall::linux_abi

extern "C" __attribute__((visibility("hidden"))) void upcall_first_thread() noexcept {
  using namespace upcall;             // NOLINT
  using namespace upcall::linux_abi;  // NOLINT
  // Before glibc 2.34 its thread library goes first, and constructors of others may come before ours.
  if (environ) load(0, nullptr, environ);
  if (g_setup != Setup::waits) return;
  g_setup = Setup::done;
  if (g_set_up) g_set_up();
  // Handlers of the program must not meet half of it.
  uint64_t all = ~0ul, mask;
  kernel::sys(__NR_rt_sigprocmask, 2, &all, &mask, 8);
  patch::disarm_early();
  if (!usable()) {
    g_setup = Setup::never;
  } else if (!alone()) {
    stay_plain("the program has made a kernel thread without libc");
  } else {
    set_up(patch::Phase::all);
    if (!patch::early_sites_redirected()) stay_plain(cannot_redirect);
  }
  kernel::sys(__NR_rt_sigprocmask, 2, &mask, nullptr, 8);
}

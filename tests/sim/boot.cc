// Starts the runtime on the simulated machine, as runtime/start.cc does on a real one, and what of the runtime's upper
// layers is not simulated.
#include <linux/sched.h>

#include <cstdio>
#include <new>

#include "base/fence.h"
#include "kernel/bpf/switches.h"
#include "linux/linux.h"
#include "linux/signal.h"
#include "pthread/hull.h"
#include "pthread/real.h"
#include "run.h"

namespace upcall::sim {

Result* g_result;
Options g_options;

namespace {

using activation::g_runtime;

void draw_settings() noexcept {
  Settings& s = g.settings;
  s.processors = 1 + static_cast<uint32_t>(random_below(3));
  if (g_options.processors) s.processors = g_options.processors;
  constexpr uint32_t switches[] = {2, 3, 6, 20};
  s.switch_one_in = switches[random_below(4)];
  constexpr uint32_t stalls[] = {0, 5, 20, 100, 400};
  s.stall_one_in = stalls[random_below(5)];
  constexpr uint32_t falls[] = {0, 0, 0, 5, 15, 100};
  s.fall_one_in = falls[random_below(6)];
  constexpr uint32_t pauses[] = {0, 3, 10, 50};
  s.pause_one_in = pauses[random_below(4)];
  constexpr uint64_t pause_steps[] = {20, 200, 2000};
  s.pause_steps = pause_steps[random_below(3)];
  constexpr uint32_t drains[] = {1, 2, 8, 32};
  s.drain_one_in = drains[random_below(4)];
  constexpr uint32_t background[] = {2, 8, 64};
  s.background_one_in = background[random_below(3)];
  constexpr uint64_t steps[] = {5, 20, 100};
  s.step_ns = steps[random_below(3)];
  constexpr uint64_t quanta[] = {0, 100'000, 1'000'000, 10'000'000};
  g_runtime.quantum = quanta[random_below(4)];
  g_runtime.events = one_in(8) ? activation::Events::monitor : activation::Events::sentinel;
  g_runtime.sentinel = g_runtime.events == activation::Events::sentinel;
  snprintf(
      g_result->settings, sizeof g_result->settings,
      "%u processors, switch %u, stall %u, fall %u, pause %u of %lu, drain %u, background %u, step %lu ns, "
      "quantum %lu us, sentinel %d",
      s.processors, s.switch_one_in, s.stall_one_in, s.fall_one_in, s.pause_one_in,
      static_cast<unsigned long>(s.pause_steps), s.drain_one_in, s.background_one_in,
      static_cast<unsigned long>(s.step_ns), static_cast<unsigned long>(g_runtime.quantum / 1000),
      g_runtime.events == activation::Events::sentinel);
}

void make_processors() noexcept {
  auto n = g.settings.processors;
  g_runtime.processor = static_cast<Processor*>(runtime_memory(n * sizeof(Processor)));
  for (uint32_t i = 0; i < n; ++i) {
    auto* p = new (&g_runtime.processor[i]) Processor;
    p->index = p->cpu = i;
  }
  g_runtime.processors = n;
  g_runtime.sleeping.store(n - 1, relaxed);
}

// -EINTR, -ERESTART.
bool after_blocking(Thread* t, long result) noexcept {
  return (result != -4 && result != -512) || t->attention.load(relaxed);
}

// No signals of the program are simulated.
Thread* before_resume(Thread* t) noexcept {
  t->attention.store(0, relaxed);
  return t;
}

}  // namespace

void run_schedule() noexcept {
  g.random = g_options.seed * 0x2545F4914F6CDD1Dull + 1;
  g.current = new_kernel_thread(nullptr, nullptr, nullptr, "activation 0");
  draw_settings();
  make_processors();
  register_membarrier();
  linux_abi::init_futexes();
  pthread_abi::install_hooks();
  install_library();
  activation::g_after_blocking = after_blocking;
  activation::g_before_resume = before_resume;
  prepare_program();
  Activation* a = activation::new_activation_record();
  Thread* t = sched::g_threads.allocate();
  User* u = new_user(program_main, nullptr);
  t->is_main = true;
  t->fs = u->fs;
  t->tid = g_runtime.pid = g.current->tid;
  t->clear_child_tid = reinterpret_cast<uint32_t*>(u->tid);
  sched::g_threads.add_live(t);
  sched::g_threads.set_main(t, g_runtime.pid);
  a->processor = t->home = &g_runtime.processor[0];
  a->tid = g.current->tid;
  a->current = t;
  a->in_runtime.store(0, relaxed);
  a->processor->owner.store(activation::OwnerWord{}.next(activation::Owner::running, a->index).bits, relaxed);
  t->activation.store(a, relaxed);
  t->state.store(sched::State::running, relaxed);
  KernelThread* k = g.current;
  k->gs = reinterpret_cast<uint64_t>(a);
  k->fs = u->fs;
  k->vectors = u->vectors;
  k->blocked_signals = activation::activation_mask;
  SIM_CHECK(activation::start_monitor(), "no monitor");
  g_runtime.started = g_runtime.symbols = true;
  g.quiet = false;
  enter_user(u);
}

}  // namespace upcall::sim

namespace upcall {

namespace linux_abi {
Thread* pass(Thread* t) noexcept { sim::fail("system call %ld is passed", t->nr); }
Thread* clone_process(Thread*, unsigned long, const clone_args*) noexcept { sim::fail("a process is made"); }
bool start_runtime(Thread*) noexcept { return true; }
void end_waits(Thread*) noexcept {}
void repeat_after_time(Thread*) noexcept {}
void report_at_exit() noexcept { sim::fail("the process ends"); }
extern "C" void upcall_first_thread() noexcept { sim::fail("the runtime is not set up"); }
void discard_signals(Thread*, uint64_t) noexcept {}
void pass_signals_on(Thread*) noexcept {}
namespace signals {
void recheck(Thread*) noexcept {}
}  // namespace signals
}  // namespace linux_abi

namespace pthread_abi {
Real g_real;
void find_all() noexcept {}
atomic<uint32_t> g_locales{0};
bool can_refresh() { return true; }
bool leaves_no_trace(const Hull&) { return !sim::one_in(8); }
void make_fresh() {}
bool is_default(const pthread_attr_t* a) noexcept { return !a; }
}  // namespace pthread_abi

namespace pthread {
Real g_real;
void find_real() noexcept {}
void first_thread() {}
}  // namespace pthread

}  // namespace upcall

extern "C" long upcall_clone_process(long, const long*, upcall::sched::Thread*,
                                     const upcall::arch::ChildState*, bool) {
  upcall::sim::fail("a process is made");
}

// No BPF on this machine.
extern "C" long upcall_load_switches(switch_table** table, const char** refused) {
  *table = nullptr;
  *refused = "simulated";
  return -38;
}

// The kernel's scheduling class of our kernel threads. Activations have the program's, whoever made them, but SCHED_RR for
// SCHED_FIFO: one that comes back from the kernel has the CPU in the end even if the owner's threads never leave it free.
// New processes and programs get the program's own. The monitor must get the CPU beside activations that compute:
//   SCHED_OTHER, BATCH  a short slice (kernel 6.12 and later)
//   SCHED_FIFO, RR      one priority above, where allowed; at the same one it runs when an activation sleeps
//   SCHED_IDLE          as they: it waits for its turn among them; and no sentinel can be below them
//
// --share threads. The kernel shares a CPU out by weight, and knows of one kernel thread where the program has n threads.
// The monitor raises the nice value of a processor's owner so that it weighs about n times as much.
#include <linux/sched.h>
#include <linux/sched/types.h>

#include "activation/activation.h"
#include "base/log.h"

namespace upcall::activation {

namespace {

constexpr uint64_t short_slice_ns = 100'000;
constexpr uint32_t highest_priority = 99;

sched_attr g_program = {};  // size 0: the kernel did not say

bool real_time(uint32_t policy) noexcept { return policy == SCHED_FIFO || policy == SCHED_RR; }

long set(sched_attr attr) noexcept {
  attr.size = SCHED_ATTR_SIZE_VER0;
  return kernel::sys(__NR_sched_setattr, 0, &attr, 0);
}

bool fair(uint32_t policy) noexcept { return policy == SCHED_NORMAL || policy == SCHED_BATCH; }

constexpr uint32_t one_thread = 1024, averaged_over = 16, most_counted = 1000;
// A step of nice is a factor of 1.25 (kernel/sched/core.c, sched_prio_to_weight, for nice 0 to -20).
constexpr uint32_t weights[] = {1024,  1277,  1586,  1991,  2501,  3121,  3906,  4904,  6100,  7620, 9548,
                                11916, 14949, 18705, 23254, 29154, 36291, 46273, 56483, 71755, 88761};

int32_t steps_for(uint32_t load) noexcept {
  int32_t steps = 0;
  // Nearer to the next step than to this one.
  while (steps < 20 && load > weights[steps] + weights[steps] / 8) ++steps;
  return steps;
}

atomic<uint32_t> g_weighing{0};
int32_t g_most_steps = 20;  // what RLIMIT_NICE has been seen to allow

void refused(int32_t steps) noexcept {
  g_most_steps = steps - 1;
  if (!g_most_steps)
    (Line() << "--share threads: this process may not raise its weight (RLIMIT_NICE, CAP_SYS_NICE); it "
               "shares CPUs with other programs as --share process does")
        .write();
}

}  // namespace

void read_program_class() noexcept {
  g_program = {};
  if (kernel::is_error(kernel::sys(__NR_sched_getattr, 0, &g_program, sizeof g_program, 0))) g_program = {};
  g_most_steps = 20;
  g_weighing.store(0, relaxed);
  g_program.sched_runtime = 0;  // the kernel's own slice
}

bool sentinel_is_below() noexcept { return !g_program.size || g_program.sched_policy != SCHED_IDLE; }

bool real_time_program() noexcept { return real_time(g_program.sched_policy); }

bool resets_on_fork() noexcept { return g_program.sched_flags & SCHED_FLAG_RESET_ON_FORK; }

void show_program_class() noexcept {
  Activation* a = self();
  if (a->outside) return;
  if (g_runtime.share_threads) {
    a->weight_held.store(1, fenced);  // pairs with weigh: it sees this, or we see it at work
    for (uint32_t i = 0; g_weighing.load(fenced); ++i) wait_step(i);
  }
  if (g_program.sched_policy == SCHED_FIFO || a->weight.load(relaxed)) set(g_program);
  a->weight.store(0, relaxed);
}

void hide_program_class() noexcept {
  if (self()->outside) return;
  if (g_program.sched_policy == SCHED_FIFO) take_activation_class();
  self()->weight_held.store(0, release);  // pairs with weigh
}

void forget_weight() noexcept {
  take_activation_class();
  self()->weight.store(0, relaxed);
}

void program_nice_is(int32_t nice) noexcept {
  g_program.sched_nice = nice;
  self()->weight.store(0, relaxed);
}

void weigh(Processor* p, OwnerWord w) noexcept {
  if (!g_runtime.share_threads || !fair(g_program.sched_policy)) return;
  uint32_t n = p->ready.count() + (p->inbox.load(relaxed) ? 1 : 0) + (w.state() == Owner::running ? 1 : 0);
  if (n > most_counted) n = most_counted;
  p->load += (n * one_thread) / averaged_over - p->load / averaged_over;
  Activation* a = w.state() == Owner::running ? activation_at(w.activation()) : nullptr;
  if (!a) return;
  int32_t steps = steps_for(p->load);
  if (steps > g_most_steps) steps = g_most_steps;
  if (a->weight.load(relaxed) == steps) return;
  g_weighing.store(1, fenced);  // pairs with show_program_class
  if (!a->weight_held.load(fenced)) {
    constexpr int one_process = 0;
    long r = kernel::sys(__NR_setpriority, one_process, a->tid, g_program.sched_nice - steps);
    if (!kernel::is_error(r)) {
      a->weight.store(steps, relaxed);
      g_counters.weight_changes.fetch_add(1, relaxed);
    } else if (steps > 0) {
      refused(steps);
    }
  }
  g_weighing.store(0, release);  // pairs with show_program_class
}

void take_activation_class() noexcept {
  if (!g_program.size || g_program.sched_policy == SCHED_DEADLINE) return;
  sched_attr attr = g_program;
  attr.sched_flags = 0;
  if (attr.sched_policy == SCHED_FIFO) attr.sched_policy = SCHED_RR;
  // What the kernel gives to the kernel threads of such a program.
  if (g_program.sched_flags & SCHED_FLAG_RESET_ON_FORK) {
    if (real_time(attr.sched_policy)) attr.sched_policy = SCHED_NORMAL, attr.sched_priority = 0;
    if (attr.sched_nice < 0) attr.sched_nice = 0;
  }
  set(attr);
}

// Its turns come as seldom as its weight is small, but each is to be short: it looks for some microseconds, and with the usual
// slice of milliseconds it would wait for its first turn for as long as that takes at its weight, a second beside a busy
// program. That second would be the program's, too: a process has ended when its last kernel thread has. Slices can be
// asked for since Linux 6.12, and not as SCHED_IDLE, but are kept.
void take_sentinel_class() noexcept {
  sched_attr attr = {};
  attr.size = sizeof attr;
  attr.sched_policy = SCHED_NORMAL;
  attr.sched_nice = g_program.sched_nice;
  attr.sched_runtime = short_slice_ns;
  set(attr);
  attr.sched_policy = SCHED_IDLE;
  attr.sched_runtime = 0;
  set(attr);
}

void take_monitor_class() noexcept {
  if (!g_program.size) return;
  sched_attr attr = g_program;
  attr.sched_flags = 0;
  switch (attr.sched_policy) {
    case SCHED_NORMAL:
    case SCHED_BATCH:
      attr.sched_policy = SCHED_NORMAL;  // as SCHED_BATCH it would not run at once when it is woken
      attr.sched_runtime = short_slice_ns;
      break;
    case SCHED_FIFO:
    case SCHED_RR:
      attr.sched_policy = SCHED_FIFO;
      if (attr.sched_priority < highest_priority) ++attr.sched_priority;
      break;
    default:
      return;
  }
  set(attr);
}

}  // namespace upcall::activation

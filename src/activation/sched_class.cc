// The kernel's scheduling class of our kernel threads. Activations have the program's, whoever made them, but SCHED_RR for
// SCHED_FIFO: one that comes back from the kernel has the CPU in the end even if the owner's threads never leave it free.
// New processes and programs get the program's own. The monitor must get the CPU beside activations that compute:
//   SCHED_OTHER, BATCH  a short slice (kernel 6.12 and later)
//   SCHED_FIFO, RR      one priority above, where allowed; at the same one it runs when an activation sleeps
//   SCHED_IDLE          as they: it waits for its turn among them; and no sentinel can be below them
#include <linux/sched.h>
#include <linux/sched/types.h>

#include "activation/activation.h"

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

}  // namespace

void read_program_class() noexcept {
  g_program = {};
  if (kernel::is_error(kernel::sys(__NR_sched_getattr, 0, &g_program, sizeof g_program, 0))) g_program = {};
  g_program.sched_runtime = 0;  // the kernel's own slice
}

bool sentinel_is_below() noexcept { return !g_program.size || g_program.sched_policy != SCHED_IDLE; }

bool real_time_program() noexcept { return real_time(g_program.sched_policy); }

void show_program_class() noexcept {
  if (g_program.sched_policy == SCHED_FIFO) set(g_program);
}

void hide_program_class() noexcept {
  if (g_program.sched_policy == SCHED_FIFO) take_activation_class();
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

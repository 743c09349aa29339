// What the kernel's scheduler says of our kernel threads, exactly: BPF programs on its switches and wake-ups write it to
// memory that is mapped here (src/kernel/bpf, docs/decisions/0004-bpf.md). Sentinel and monitor read it where they
// would otherwise judge by CPU clocks.
#pragma once

#include "activation/activation.h"

namespace upcall::activation {

enum class KernelState {
  unknown,   // no such source, or no event yet: judge by other signs
  runnable,  // runs, or would if the CPU were free
  blocked    // sleeps in the kernel
};
KernelState kernel_state(Activation* a) noexcept;

// The calling activation's switches are noted from here on.
void note_own_switches(Activation* a) noexcept;

// Loads the programs, once a process, if configuration and kernel allow it. `now`: returns when that is decided;
// otherwise a helper is left to it, and until then the state is unknown.
void start_switch_events(bool now) noexcept;
// Monitor, at its ticks: are events still coming? They end if somebody detaches the programs.
void check_switch_events(Activation* monitor) noexcept;
// In fork's child: the parent's are not ours.
void forget_switch_events(Activation* survivor) noexcept;

}  // namespace upcall::activation

// What the kernel's scheduler says of our kernel threads, exactly: BPF programs on its switches and wake-ups write it to
// memory that is mapped here (src/kernel/bpf, docs/decisions/0002-bpf.md). Sentinel and monitor read it where they
// would otherwise judge by CPU clocks.
//
// Who sleeps has said so itself, on its way out of the CPU: `runnable` is never wrong. A wake-up may be missed (a program
// that interrupts itself is not run a second time), and then `blocked` stands until the kernel thread is next switched
// away. Not for the sentinel: where it runs, the owner has just left that CPU. Others ask a clock as well.
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
// Its kernel thread ends, or has ended.
void forget_own_switches(Activation* a) noexcept;

// --events bpf: loads the programs; returns when they are there or have been refused.
void start_switch_events() noexcept;
// Monitor, at its ticks. Without --events: is it time to load them? They cost every context switch of the machine, so only
// a process that does block unseen pays. Loaded: are events still coming?
void watch_switch_events(Activation* monitor) noexcept;
// In fork's child: the parent's are not ours.
void forget_switch_events(Activation* survivor) noexcept;

}  // namespace upcall::activation

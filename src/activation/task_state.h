// What the kernel says of a kernel thread of ours: does it run (or wait for a CPU), or is it blocked?
#pragma once

#include <cstdint>

namespace upcall::activation {

enum class TaskState : uint32_t { running, blocked, unknown };

// A descriptor table of the calling kernel thread's own, empty: a copy of the program's would keep its pipes and locks open.
bool leave_descriptors() noexcept;

// The state of a kernel thread of this process, for the monitor, which shares the program's descriptors: asks a kernel
// thread with a table of its own, which is started at the first question (its answer: unknown). Blocks the caller for some
// 10 us, half a millisecond at most.
TaskState ask_task_state(int32_t tid) noexcept;
// fork's child: that kernel thread is not here.
void forget_task_state() noexcept;

}  // namespace upcall::activation

// What the waits of this folder share.
#pragma once

#include <errno.h>
#include <time.h>

#include "arch/x86_64/cpu.h"
#include "linux/linux.h"

namespace upcall::pthread {

using linux_abi::Handler;
using sched::Thread;

inline bool symbols() noexcept { return activation::g_runtime.symbols; }
inline bool started() noexcept { return activation::g_runtime.started; }
// No thread of the runtime: a vfork child shares our memory, its GS base is 0.
inline bool is_guest() noexcept { return upcall_current_thread() == nullptr; }

// The calling thread, if not is_guest(). One instruction: it may go on on another activation at any time.
inline Thread* current() noexcept { return static_cast<Thread*>(arch::read_gs_pointer<A_CURRENT>()); }

inline long native(Handler handler, const void* object, uint64_t argument = 0) noexcept {
  return upcall_native_call(handler, reinterpret_cast<uint64_t>(object), argument, 0);
}

inline bool valid_time(const timespec* t) noexcept {
  return static_cast<uint64_t>(t->tv_nsec) < 1'000'000'000u;
}
inline bool valid_clock(clockid_t clock) noexcept {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}
// As nanoseconds of CLOCK_MONOTONIC.
inline uint64_t deadline_of(clockid_t clock, const timespec* t) noexcept {
  if (t->tv_sec < 0) return 0;
  if (static_cast<uint64_t>(t->tv_sec) > 9'000'000'000u) return sched::never / 2;
  return linux_abi::to_monotonic(
      clock, static_cast<uint64_t>(t->tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t->tv_nsec));
}

// For a kernel thread: the only one of its process, or a guest. 0, -EINTR, -EAGAIN or -ETIMEDOUT.
inline long kernel_wait(const void* word, uint32_t expected, uint64_t deadline) noexcept {
  constexpr int wait_bitset_private = 9 | 128;
  timespec ts = {static_cast<time_t>(deadline / 1'000'000'000u),
                 static_cast<long>(deadline % 1'000'000'000u)};
  return kernel::sys(__NR_futex, word, wait_bitset_private, expected,
                     deadline == sched::never ? nullptr : &ts, nullptr, ~0u);
}
inline void kernel_wake(const void* word) noexcept {
  constexpr int wake_private = 1 | 128;
  kernel::sys(__NR_futex, word, wake_private, 1);
}

}  // namespace upcall::pthread

// The kernel's futexes, for the runtime's own words.
#pragma once

#include <linux/futex.h>
#include <linux/time_types.h>

#include "base/atomic.h"
#include "base/syscall.h"

namespace upcall::kernel {

// Sleeps while *word == value, until the absolute CLOCK_MONOTONIC time `deadline` (nanoseconds, ~0: for ever).
inline long futex_wait(atomic<uint32_t>* word, uint32_t value, uint64_t deadline = ~0ull) noexcept {
  __kernel_timespec ts = {static_cast<long long>(deadline / 1000000000u),
                          static_cast<long long>(deadline % 1000000000u)};
  return sys(__NR_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value,
             deadline == ~0ull ? nullptr : &ts, nullptr, FUTEX_BITSET_MATCH_ANY);
}
inline long futex_wake(atomic<uint32_t>* word, int n) noexcept {
  return sys(__NR_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n, nullptr, nullptr, 0);
}

}  // namespace upcall::kernel

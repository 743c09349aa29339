// Clocks through the vDSO, which needs neither libc nor TLS.
#pragma once

#include <cstdint>
#include <ctime>

namespace upcall::kernel {

// Finds the vDSO's clock_gettime; without it the system call is used. Call once, at start.
void init_clock(const void* vdso_base) noexcept;
// 0 or -errno.
long read_clock(int clock, timespec* ts) noexcept;
// Nanoseconds of CLOCK_MONOTONIC.
uint64_t now() noexcept;

}  // namespace upcall::kernel

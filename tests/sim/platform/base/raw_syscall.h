// Stands before src/base/raw_syscall.h: the simulated kernel answers. system.cc
#pragma once

namespace upcall::kernel {

long raw_syscall(long nr, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept;

}  // namespace upcall::kernel

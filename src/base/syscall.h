// Raw system calls: no errno, no libc, the kernel's own "-errno" convention.
// The one place where the runtime's C++ enters the kernel without the
// interruptible stub of arch/x86_64/entry.S.
#pragma once

#include <asm/unistd.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace upcall::kernel {

inline long raw_syscall(long nr, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) noexcept {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// Pointers and integers alike become the kernel's long.
template <typename T>
inline long arg(T value) noexcept {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<long>(value);
  else if constexpr (std::is_null_pointer_v<T>)
    return 0;
  else
    return static_cast<long>(value);
}

template <typename... Args>
inline long sys(long nr, Args... args) noexcept {
  static_assert(sizeof...(Args) <= 6);
  return raw_syscall(nr, arg(args)...);
}

inline bool is_error(long result) noexcept { return static_cast<unsigned long>(result) > -4096ul; }

}  // namespace upcall::kernel

// Raw system calls: no errno, no libc, the kernel's own "-errno" convention.
#pragma once

#include <asm/unistd.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/raw_syscall.h"

namespace upcall::kernel {

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

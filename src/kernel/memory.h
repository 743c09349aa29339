// Pages for the runtime, straight from the kernel.
#pragma once

#include <sys/mman.h>

#include "base/syscall.h"

namespace upcall::kernel {

// Zeroed, readable and writable; null when there is none.
inline void* map_pages(size_t bytes, int extra_flags = 0) noexcept {
  long r = sys(__NR_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags,
               -1, 0);
  return is_error(r) ? nullptr : reinterpret_cast<void*>(r);
}
inline void unmap_pages(void* p, size_t bytes) noexcept { sys(__NR_munmap, p, bytes); }

}  // namespace upcall::kernel

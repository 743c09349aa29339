// One-sided fence: the frequent side pays a compiler barrier, the rare side a membarrier(2) that makes every CPU
// of the process execute a full fence. Without membarrier both sides pay a full fence.
#pragma once

#include <linux/membarrier.h>

#include "base/atomic.h"
#include "base/check.h"
#include "base/syscall.h"

namespace upcall {

extern bool g_have_membarrier;
// Has another kernel thread make the call. Set by src/activation.
extern void (*g_fence_elsewhere)();

inline void light_fence() noexcept {
  if (__builtin_expect(g_have_membarrier, 1))
    compiler_barrier();
  else
    full_fence();  // pairs with heavy_fence's fallback
}

inline void heavy_fence() noexcept {
  if (!g_have_membarrier) {
    full_fence();
    return;
  }
  // Registered, so the other side relies on it. Refused only to kernel threads with a filter of their own.
  if (__builtin_expect(kernel::sys(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0, 0)) {
    CHECK(g_fence_elsewhere);
    g_fence_elsewhere();
  }
}

void register_membarrier() noexcept;

}  // namespace upcall

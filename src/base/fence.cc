#include "base/fence.h"

namespace upcall {

void (*g_fence_elsewhere)() = nullptr;
bool g_have_membarrier = false;

void register_membarrier() noexcept {
  g_have_membarrier = kernel::sys(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace upcall

#include "arch/x86_64/cpu.h"

extern "C" {
uint32_t g_vector_level = 0;
}

extern "C" {
__attribute__((visibility("hidden"))) uint8_t upcall_gs_is_ours = 0;
__attribute__((visibility("hidden"))) uint8_t upcall_yields_are_ours = 0;
}

namespace upcall::arch {

XsaveInfo detect_vectors() noexcept {
  uint32_t r[4];
  cpuid(1, 0, r);
  if (!(r[2] & (1u << 27))) return {3, 512, false};  // no OSXSAVE: SSE only
  uint64_t features = xcr0();
  constexpr uint64_t avx = 6, avx512 = 0xe6;
  cpuid(7, 0, r);
  bool bw = r[1] & (1u << 30);  // 64-bit mask registers
  if ((features & avx512) == avx512 && bw)
    g_vector_level = 2;
  else if ((features & avx) == avx)
    g_vector_level = 1;
  // AMX tiles (17, 18) are off until a process asks for them, and too large for a signal stack by default.
  features &= ~(3ul << 17);
  uint32_t size = 576;
  for (uint32_t i = 2; i < 63; ++i) {
    if (!(features & (1ul << i))) continue;
    cpuid(13, i, r);
    if (r[0] && r[1] + r[0] > size) size = r[1] + r[0];
  }
  return {features, size, true};
}

}  // namespace upcall::arch

// The registers of a kernel thread that the runtime's C++ reads and writes, and the time stamp. The one header of this
// folder that a simulated machine replaces (tests/sim).
#pragma once

#include <cstdint>

namespace upcall::arch {

inline uint64_t read_fs() noexcept {
  uint64_t v;
  __asm__ volatile("rdfsbase %0" : "=r"(v));
  return v;
}
// Same for a thread of a thread library, which keeps the address of its descriptor in itself (x86-64 TLS ABI).
inline uint64_t read_thread_pointer() noexcept {
  uint64_t v;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(v));
  return v;
}
inline void write_fs(uint64_t v) noexcept { __asm__ volatile("wrfsbase %0" ::"r"(v) : "memory"); }
inline uint64_t read_gs() noexcept {
  uint64_t v;
  __asm__ volatile("rdgsbase %0" : "=r"(v));
  return v;
}
inline void write_gs(uint64_t v) noexcept { __asm__ volatile("wrgsbase %0" ::"r"(v) : "memory"); }
// The pointer at this offset from GS: one instruction, so that a thread may move between activations beside it.
template <int offset>
inline void* read_gs_pointer() noexcept {
  void* v;
  __asm__ volatile("mov %%gs:%c1, %0" : "=r"(v) : "i"(offset));
  return v;
}
inline uint64_t tsc() noexcept {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (static_cast<uint64_t>(high) << 32) | low;
}

}  // namespace upcall::arch

// Stands before src/arch/x86_64/registers.h: the registers of a simulated kernel thread. machine.cc
#pragma once

#include <cstdint>
#include <cstring>

namespace upcall::arch {

uint64_t read_fs() noexcept;
void write_fs(uint64_t v) noexcept;
uint64_t read_gs() noexcept;
void write_gs(uint64_t v) noexcept;
uint64_t tsc() noexcept;

inline uint64_t read_thread_pointer() noexcept { return read_fs(); }
template <int offset>
inline void* read_gs_pointer() noexcept {
  void* v;
  std::memcpy(&v, reinterpret_cast<const char*>(read_gs()) + offset, sizeof v);
  return v;
}

}  // namespace upcall::arch

// Declarations of hold.S, and the patterns that are held: different for every thread and round.
#pragma once

#include "abi.h"

namespace upcall::test {

struct Call {
  long number;
  long arguments[6];
};

extern "C" {
void hold_xmm_syscall(const void* in, void* out, const Call* call);
void hold_ymm_syscall(const void* in, void* out, const Call* call);
void hold_zmm_syscall(const void* in, void* out, const Call* call);
void hold_general_syscall(const void* in, void* out, const Call* call);
unsigned long hold_flags_syscall(unsigned long flags, long unused, const Call* call);
void hold_red_zone_syscall(const void* in, void* out, const Call* call);
void hold_x87_syscall(const void* in, void* out, const Call* call);
void hold_xmm_loop(const void* in, void* out, long count);
void hold_ymm_loop(const void* in, void* out, long count);
void hold_zmm_loop(const void* in, void* out, long count);
void hold_general_loop(const void* in, void* out, long count);
void hold_red_zone_loop(const void* in, void* out, long count);
void hold_x87_loop(const void* in, void* out, long count);
}

struct Pattern {
  unsigned char bytes[2048 + 64];
};

inline Pattern pattern(uint64_t seed, size_t size = sizeof(Pattern)) {
  Pattern result = {};
  uint64_t value = seed * 0x9E3779B97F4A7C15u + 1;
  for (size_t i = 0; i < size; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    result.bytes[i] = static_cast<unsigned char>(value >> 32);
  }
  return result;
}

inline void expect_held(const char* what, const Pattern& in, const Pattern& out, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (in.bytes[i] != out.bytes[i])
      FAIL("%s: byte %zu is %02x, not %02x", what, i, out.bytes[i], in.bytes[i]);
}

inline bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}

}  // namespace upcall::test

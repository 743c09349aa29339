// Builds with -DUPCALL_JITTER=ON wait for a random while around every atomic step, so that orders of events that are
// seldom in nature become usual. Nothing else of the code differs.
#pragma once

#include <cstdint>

namespace upcall {

#ifdef UPCALL_JITTER
// Assembly: clang and g++ take the built-in functions for ones that may throw.
inline uint64_t jitter_clock() noexcept {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return uint64_t{high} << 32 | low;
}
inline void jitter() noexcept {
  uint64_t now = jitter_clock();
  uint64_t random = now * 0x9E3779B97F4A7C15ull >> 20;
  uint64_t cycles;
  if ((random & 4095) == 0)
    cycles = (random >> 12) % 2'000'000;  // about a millisecond at most
  else if ((random & 63) == 0)
    cycles = (random >> 12) % 30'000;
  else
    return;
  while (jitter_clock() - now < cycles) __asm__ volatile("pause");
}
struct Jitter {
  Jitter() noexcept { jitter(); }
  ~Jitter() { jitter(); }
};
#else
struct [[maybe_unused]] Jitter {};
#endif

}  // namespace upcall

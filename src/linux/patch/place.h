// For one confirmed `syscall` instruction: its number, and which bytes its jump may take.
#pragma once

#include <cstdint>

#include "linux/patch/flow.h"
#include "linux/patch/vec.h"

namespace upcall::patch {

inline constexpr uint32_t kJump = 5;       // e9 rel32
inline constexpr uint32_t kShortJump = 2;  // eb rel8
inline constexpr uint32_t kMaxWindow = 32;
inline constexpr unsigned kMaxMoved = 8;

// The constant that is in eax at the syscall on every way to it; -1 if there is none.
// `far` are the ascending targets (memory addresses) of branches from anywhere, `base` the function's address.
long constant_number(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base);

// Whole instructions [lo,hi), offsets in the function, that move to a stub.
struct Window {
  uint32_t lo, hi;
  unsigned count;
  Insn moved[kMaxMoved];
};

struct Placement {
  Window window;  // contains the syscall; its first bytes become a jump
  bool hop;       // window is the syscall alone: a short jump to `hop_at`, which holds the long one
  uint32_t hop_at;
  // The hop's bytes are code of another place that moves as well (count 0: they are padding).
  Window evicted;
};

// The site among its neighbours; null on success, otherwise why there is no way.
const char* place(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base,
                  Placement* out);

// The site alone, by way of a second jump in reach of a short one: in padding, or where other code gives
// way. `far` must hold all targets within kHopReach bytes of the site.
inline constexpr uintptr_t kHopReach = 128 + kMaxWindow;
const char* place_hop(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base,
                      Placement* out);

}  // namespace upcall::patch

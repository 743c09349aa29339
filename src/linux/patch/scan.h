// Byte scans over whole sections: candidates, and branches that come from elsewhere.
#pragma once

#include <cstdint>

#include "linux/patch/elf_image.h"
#include "linux/patch/vec.h"

namespace upcall::patch {

// Appends the address of every 0f 05 within [begin,end).
void find_syscall_bytes(const uint8_t* begin, const uint8_t* end, Vec<uintptr_t>* out);

// Appends the target of every byte sequence that reads as a direct jump, conditional jump or call with a
// 32-bit displacement and that lands within kNearby bytes of one of `sites` (ascending). It sees more than
// there is, never less: that only makes a placement choose other neighbours.
// This is how jumps from the cold part of a function back into its hot part are found.
inline constexpr uintptr_t kNearby = 40;
void find_far_branches(const uint8_t* begin, const uint8_t* end, const Vec<uintptr_t>& sites, Range reach,
                       Vec<uintptr_t>* out);

// The same with targets anywhere in [to.lo,to.hi).
void find_branches_into(const uint8_t* begin, const uint8_t* end, Range to, Vec<uintptr_t>* out);

}  // namespace upcall::patch

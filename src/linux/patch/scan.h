// Byte scans over whole sections: candidates, and branches that come from elsewhere.
#pragma once

#include <cstdint>

#include "linux/patch/elf_image.h"
#include "linux/patch/vec.h"

namespace upcall::patch {

// Appends the address of every 0f 05 within [begin,end).
void find_syscall_bytes(const uint8_t* begin, const uint8_t* end, Vec<uintptr_t>* out);

// Which 64-byte blocks of `reach` have something of `ranges` in them: 3 KB for a text of 1.5 MB.
inline constexpr uintptr_t kNearby = 40;  // of a site: what its placement may have to know about
class NearMap {
 public:
  NearMap(const Vec<Range>& ranges, Range reach);
  bool test(uintptr_t address) const {
    uintptr_t d = address - reach_.lo;
    return d < reach_.hi - reach_.lo && (bits_[d >> (kShift + 6)] >> (d >> kShift & 63) & 1);
  }
  void release() { bits_.release(); }

 private:
  static constexpr unsigned kShift = 6;
  Range reach_;
  Vec<uint64_t> bits_{};
};

// Appends the target of every byte sequence that reads as a direct or conditional jump with a 32-bit
// displacement and that lands in a block of the map. It sees more than there is, never less: that only makes a
// placement choose other neighbours. This is how jumps from the cold part of a function back into its hot
// part are found.
void find_far_jumps(const uint8_t* begin, const uint8_t* end, const NearMap& map, Vec<uintptr_t>* out);

// The same, and calls.
void find_far_branches(const uint8_t* begin, const uint8_t* end, const NearMap& map, Vec<uintptr_t>* out);
void find_branches_into(const uint8_t* begin, const uint8_t* end, Range to, Vec<uintptr_t>* out);

}  // namespace upcall::patch

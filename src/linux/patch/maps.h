// The process's mappings, read from /proc/self/maps with raw system calls.
#pragma once

#include <cstdint>

#include "linux/patch/vec.h"

namespace upcall::patch {

struct Mapping {
  uintptr_t start, end;
  uint64_t offset, device, inode;
  uint32_t path;  // offset of the terminated path in the text, see Maps::path
  uint8_t prot;
};

class Maps {
 public:
  // False if /proc cannot be read.
  bool read();
  void release();
  const Vec<Mapping>& all() const { return mappings_; }
  const char* path(const Mapping& m) const { return &text_[m.path]; }
  const Mapping* find(uintptr_t address) const;

  // Room for `bytes` (whole pages) from which every byte of [lo,hi) is in reach of a 32-bit displacement,
  // below lo if possible: above the main program lies the heap, which grows. Each call with a higher
  // `attempt` gives another place; 0 when there are no more.
  uintptr_t room_near(uintptr_t lo, uintptr_t hi, size_t bytes, unsigned attempt) const;

 private:
  void parse();
  Vec<char> text_;
  Vec<Mapping> mappings_;
};

}  // namespace upcall::patch

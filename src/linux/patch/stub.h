// Stubs and the areas they live in.
#pragma once

#include <cstdint>

#include "linux/patch/maps.h"
#include "linux/patch/place.h"

namespace upcall::patch {

// Head of a stub area, which is otherwise stubs; its end holds what program_pc() needs.
struct AreaHead {
  void* entry;
};

// One stub as program_pc() sees it: three parts, each standing for a part of the program.
struct StubRecord {
  uint32_t start;         // from the area's start
  uint16_t restart;       // from `start`: the redirected call itself begins
  uint16_t back;          // from `start`: it is done
  uint16_t end;           // from `start`
  uint8_t before, after;  // bytes moved from before and from after the syscall
  uintptr_t site;         // address of the `syscall` instruction
};

// Writes stubs for one object into a fresh area, then seals it executable.
class StubWriter {
 public:
  // Room for `bytes` of stubs and `records` of them, in reach of [lo,hi). Null on success.
  const char* open(const Maps& maps, uintptr_t lo, uintptr_t hi, size_t bytes, size_t records, void* entry);
  // A stub for the window at address `base` + w.lo (bytes at `bytes`); `site` null: only moves code that
  // makes room. Returns its address, 0 if something is out of reach.
  uintptr_t emit(const Window& w, const uint8_t* bytes, uintptr_t base, const Insn* site);
  // Read and execute only from now on; the area becomes known to covers(). Null on success.
  const char* seal();
  void abandon();
  size_t used() const { return used_; }
  uintptr_t start() const { return start_; }
  size_t length() const { return length_; }

 private:
  bool byte(uint8_t b);
  bool bytes(const void* p, size_t n);
  bool rel32(uintptr_t target, unsigned after = 0);
  bool move(const Insn& insn, const uint8_t* code, uintptr_t base);

  uintptr_t start_ = 0;
  size_t length_ = 0, stubs_length_ = 0, used_ = 0, record_count_ = 0;
};

// Upper bound of a stub for a window of `length` bytes with `count` instructions.
constexpr size_t stub_bound(uint32_t length, unsigned count) {
  return (22 + 5 + length + 4 * count + 15) & ~15ul;
}

bool area_covers(uintptr_t pc);
uintptr_t area_program_pc(uintptr_t pc);
void area_remove(uintptr_t start);  // and unmaps it

}  // namespace upcall::patch

// Single instructions: length, kind and what must change when they move.
#pragma once

#include <cstddef>
#include <cstdint>

namespace upcall::patch {

enum class Kind : uint8_t {
  plain,       // goes on to the next instruction
  jump_if,     // direct, conditional, rel8 or rel32
  jump_count,  // jrcxz, loop, xbegin: conditional, but with no rel32 form of the same meaning
  jump,        // direct
  jump_indirect,
  call,
  syscall,
  end,  // ret, hlt, ud2, int3: does not go on
};

struct Insn {
  uint32_t offset;  // from the function's start
  uint8_t length;
  Kind kind;
  bool rip_relative;
  bool memory;          // has a memory operand (rip-relative included)
  uint8_t disp_offset;  // of the displacement, where there is a memory operand with 32 bits of it
  bool endbr;
  intptr_t target;  // of direct branches, from the function's start; may lie outside; otherwise 0
  uint32_t end() const { return offset + length; }
};

// False if the bytes are no instruction.
bool decode(const uint8_t* bytes, size_t length, uint32_t offset, Insn* out);

// The two halves of decode(), for tests. The first knows the commonest instructions and is ten times as
// fast; it says false for all others, valid or not.
bool decode_common(const uint8_t* bytes, size_t length, uint32_t offset, Insn* out);
bool decode_any(const uint8_t* bytes, size_t length, uint32_t offset, Insn* out);

// Whether the bytes [p,end) are no-ops (or int3) from end to end, that is: padding.
bool all_padding(const uint8_t* p, const uint8_t* end);

}  // namespace upcall::patch

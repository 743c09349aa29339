// The little of an ELF file that decides whether Upcall can carry it.
#pragma once

#include <cstdint>
#include <string>

namespace upcall::tool {

struct ElfFile {
  enum class Kind { not_elf, damaged, other_machine, relocatable, program, shared };
  Kind kind = Kind::not_elf;
  std::string machine;      // for messages: "i386", "aarch64", "machine 243", ...
  std::string interpreter;  // PT_INTERP, "" when there is none
  std::string soname;       // DT_SONAME
  bool dynamic = false;     // has PT_DYNAMIC
};

// Reads at most a few pages of the open file `fd`; never trusts a number in it.
ElfFile read_elf(int fd);

}  // namespace upcall::tool

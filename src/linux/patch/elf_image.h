// What an ELF file says about its code: executable sections, functions (unwind tables and symbols).
//
// Read from the file where it can be opened (at dlopen time only the first segments are mapped),
// otherwise from the mapped segments themselves.
#pragma once

#include <elf.h>

#include <cstdint>

#include "linux/patch/maps.h"
#include "linux/patch/vec.h"

namespace upcall::patch {

struct Range {
  uintptr_t lo, hi;
  bool contains(uintptr_t a) const { return lo <= a && a < hi; }
};

// All addresses are those of the file image ("vaddr"); add bias() for memory.
struct Function {
  uintptr_t start;
  uintptr_t end;      // as its unwind entry or symbol says
  uintptr_t next;     // the next known function start, or the end of the section
  bool landing_pads;  // exceptions enter it at places no branch names
};

class ElfImage {
 public:
  // The object mapped at `m`. `fd` may be -1: then the path is opened.
  bool open(const Mapping& m, const char* path, int fd, const Maps* maps);
  void close();

  uintptr_t bias() const { return bias_; }
  // Whether the file is beyond doubt the one that is mapped; if not, code must be compared before use.
  bool trusted() const { return trusted_; }
  // Executable sections (segments where there are no section headers), ascending.
  const Range* code() const { return code_; }
  unsigned code_count() const { return code_count_; }
  const Range* code_around(uintptr_t vaddr) const;

  // `length` bytes of the image, or null where it has none. Never code that has been patched: the file's
  // bytes if there is a file.
  const uint8_t* at(uintptr_t vaddr, size_t length) const;
  // From the lowest to the highest byte that is loaded.
  Range extent() const;

  // The function around `vaddr`, or (unwind information that ends too early, as glibc's clone) the last
  // one before it.
  bool find_function(uintptr_t vaddr, Function* out);

  // Calls visit(value, size, is_function) for every symbol defined in an executable section.
  template <typename Visit>
  void for_each_code_symbol(Visit visit) const {
    for (const Table& t : symbols_)
      for (size_t i = 0; i < t.count; ++i) {
        const Elf64_Sym& s = t.symbols[i];
        unsigned type = ELF64_ST_TYPE(s.st_info);
        if (s.st_shndx == SHN_UNDEF || s.st_value == 0 ||
            (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC))
          continue;
        if (code_around(s.st_value)) visit(s.st_value, s.st_size, type != STT_NOTYPE);
      }
  }

 private:
  struct Table {
    const Elf64_Sym* symbols;
    size_t count;
  };
  struct Fde {
    uintptr_t start;
    uintptr_t entry;  // vaddr of the FDE
    bool operator<(const Fde& other) const { return start < other.start; }
  };

  struct Sized {
    uintptr_t start, end;
    bool operator<(const Sized& other) const { return start < other.start; }
  };

  bool open_file(const Mapping& m, const char* path, int fd, bool only_fd);
  bool use_memory(const Mapping& m, const char* path, const Maps& maps);
  bool parse(const Mapping& m);
  void read_sections();
  void read_segments();
  void read_dynamic_symbols();
  void read_unwind_table();
  void walk_eh_frame(uintptr_t vaddr, uintptr_t limit);
  bool read_fde(uintptr_t vaddr, Function* out) const;
  void add_code(uintptr_t lo, uintptr_t hi);
  bool symbol_around(uintptr_t vaddr, Sized* best, uintptr_t* next);

  size_t fde_count() const { return hdr_table_ ? hdr_count_ : fdes_.size(); }
  Fde fde(size_t i) const;
  size_t fde_after(uintptr_t vaddr) const;

  const uint8_t* file_ = nullptr;
  size_t size_ = 0;
  const Elf64_Ehdr* header_ = nullptr;
  const Elf64_Phdr* segments_ = nullptr;
  unsigned segment_count_ = 0;
  uintptr_t bias_ = 0;
  bool trusted_ = false;
  uintptr_t readable_lo_ = 0, readable_hi_ = 0;  // memory mode: the contiguous readable mappings

  static constexpr unsigned kMaxCode = 32;
  Range code_[kMaxCode] = {};
  unsigned code_count_ = 0;

  Table symbols_[2] = {};
  const int32_t* hdr_table_ = nullptr;
  size_t hdr_count_ = 0;
  uintptr_t hdr_vaddr_ = 0;
  Vec<Fde> fdes_{};     // where there is no search table
  Vec<Sized> sized_{};  // function symbols, ascending; made when they are asked for often
  unsigned symbol_lookups_ = 0;
};

}  // namespace upcall::patch

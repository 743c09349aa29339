// One function, decoded by following its control flow from its start.
#pragma once

#include <cstdint>

#include "linux/patch/decode.h"
#include "linux/patch/elf_image.h"
#include "linux/patch/vec.h"

namespace upcall::patch {

class Flow {
 public:
  // Decodes f from `bytes`, a copy of [f.start, f.next). `image` answers for jump tables.
  void analyse(const Function& f, const uint8_t* bytes, const ElfImage& image);
  // Further places where the function is entered; decodes what is reached from them.
  void add_entry(uintptr_t vaddr);
  // Whether unreached parts may be believed when they decode without a break: there are ways in that no
  // direct branch shows.
  bool has_hidden_entries() const { return indirect_ || function_.landing_pads; }
  bool has_indirect_jumps() const { return indirect_; }
  // Decodes the gaps of the function proper linearly; gaps with any break in them stay unknown.
  void sweep();

  // Whether the unknown bytes around `offset`, read from their first on, have another instruction's inside
  // there: then they hold no instruction that begins at `offset`, however they are entered.
  bool ruled_out(uint32_t offset) const;

  const Insn* at(uint32_t offset) const {
    return offset < size_ && index_[offset] ? &insns_[index_[offset] - 1] : nullptr;
  }
  // Lies within a decoded instruction that begins elsewhere.
  bool inside_insn(uint32_t offset) const {
    return offset < size_ && (flags_[offset] & kCovered) && !index_[offset];
  }
  bool known(uint32_t offset) const { return offset < size_ && (flags_[offset] & kCovered); }
  bool is_target(uint32_t offset) const { return offset < size_ && (flags_[offset] & kTarget); }
  // The one instruction that ends at `offset` and goes on there; null if there is none or doubt.
  const Insn* before(uint32_t offset) const;
  bool taken(uint32_t lo, uint32_t hi) const;
  void take(uint32_t lo, uint32_t hi);

  const Function& function() const { return function_; }
  const uint8_t* bytes() const { return bytes_; }
  uint32_t size() const { return size_; }
  bool broken() const { return broken_; }  // flow ran into bytes that are no instruction

  void release();

 private:
  static constexpr uint8_t kTarget = 1, kCovered = 2, kTaken = 4;
  void drain();
  void follow(uint32_t offset);
  const Insn* add(uint32_t offset);
  void mark_target(intptr_t offset);
  void note_table(const Insn& insn);
  void read_tables();
  void read_table(uintptr_t table, bool absolute);

  Function function_{};
  const uint8_t* bytes_ = nullptr;
  const ElfImage* image_ = nullptr;
  uint32_t size_ = 0;
  bool indirect_ = false;
  bool broken_ = false;
  Vec<Insn> insns_{};
  Vec<uint32_t> index_{};  // by offset: number of the instruction that begins there, plus one
  Vec<uint8_t> flags_{};
  Vec<uint32_t> work_{};
  struct Table {
    uintptr_t vaddr;
    bool absolute;
  };
  Vec<Table> tables_{};
  size_t tables_read_ = 0;
};

}  // namespace upcall::patch

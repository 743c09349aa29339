#include "linux/patch/flow.h"

namespace upcall::patch {
namespace {

template <typename T>
T load(const uint8_t* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

}  // namespace

void Flow::analyse(const Function& f, const uint8_t* bytes, const ElfImage& image) {
  function_ = f;
  bytes_ = bytes;
  image_ = &image;
  size_ = static_cast<uint32_t>(f.next - f.start);
  indirect_ = broken_ = false;
  insns_.clear();
  tables_.clear();
  tables_read_ = 0;
  work_.clear();
  index_.resize(size_);
  flags_.resize(size_);
  __builtin_memset(index_.begin(), 0, size_ * sizeof(uint32_t));
  __builtin_memset(flags_.begin(), 0, size_);
  mark_target(0);
  drain();
}

void Flow::add_entry(uintptr_t vaddr) {
  if (vaddr < function_.start || vaddr >= function_.next) return;
  mark_target(static_cast<intptr_t>(vaddr - function_.start));
  drain();
}

void Flow::mark_target(intptr_t offset) {
  if (offset < 0 || offset >= static_cast<intptr_t>(size_)) return;
  uint32_t o = static_cast<uint32_t>(offset);
  flags_[o] |= kTarget;
  if (!index_[o]) work_.push(o);
}

void Flow::drain() {
  do {
    while (!work_.empty()) {
      uint32_t offset = work_.back();
      work_.pop_back();
      follow(offset);
    }
    if (indirect_) read_tables();
  } while (!work_.empty());
}

const Insn* Flow::add(uint32_t offset) {
  Insn insn;
  if (!decode(bytes_ + offset, size_ - offset, offset, &insn)) return nullptr;
  insns_.push(insn);
  index_[offset] = static_cast<uint32_t>(insns_.size());
  for (uint32_t i = offset; i < insn.end(); ++i) flags_[i] |= kCovered;
  return &insns_.back();
}

void Flow::follow(uint32_t offset) {
  while (offset < size_ && !index_[offset]) {
    const Insn* added = add(offset);
    if (!added) {
      broken_ = true;
      return;
    }
    Insn insn = *added;
    if (insn.endbr) flags_[offset] |= kTarget;
    if (insn.rip_relative || insn.kind == Kind::jump_indirect) note_table(insn);
    switch (insn.kind) {
      case Kind::jump_if:
      case Kind::jump_count:
        mark_target(insn.target);
        break;
      case Kind::jump:
        mark_target(insn.target);
        return;
      case Kind::jump_indirect:
        indirect_ = true;
        return;
      case Kind::end:
        return;
      // A call to the next instruction or into the function is a branch, too.
      case Kind::call:
        if (insn.target) mark_target(insn.target);
        break;
      default:
        break;
    }
    offset = insn.end();
  }
}

// Jump tables are found by the address the code takes: `lea table(%rip)` in position-independent code,
// `jmp *table(,%reg,8)` elsewhere.
void Flow::note_table(const Insn& insn) {
  const uint8_t* p = bytes_ + insn.offset;
  uintptr_t table;
  bool absolute = false;
  if (insn.rip_relative) {
    bool lea = (p[0] & 0xf0) == 0x40 && p[1] == 0x8d;
    if (!lea) return;
    table = function_.start + insn.end() +
            static_cast<uintptr_t>(static_cast<intptr_t>(load<int32_t>(p + insn.disp_offset)));
  } else {
    if (!insn.memory || insn.length < 7 || insn.disp_offset + 4 != insn.length) return;
    table = load<uint32_t>(p + insn.disp_offset);
    absolute = true;
  }
  if (image_->code_around(table)) return;
  tables_.push({table, absolute});
}

void Flow::read_tables() {
  for (; tables_read_ < tables_.size(); ++tables_read_)
    read_table(tables_[tables_read_].vaddr, tables_[tables_read_].absolute);
}

void Flow::read_table(uintptr_t table, bool absolute) {
  size_t width = absolute ? 8 : 4;
  constexpr size_t kMaxEntries = 4096;
  for (size_t i = 0; i < kMaxEntries; ++i) {
    const uint8_t* p = image_->at(table + i * width, width);
    if (!p) return;
    uintptr_t target = absolute ? load<uint64_t>(p)
                                : table + static_cast<uintptr_t>(static_cast<intptr_t>(load<int32_t>(p)));
    if (target < function_.start || target >= function_.end) return;
    uint32_t offset = static_cast<uint32_t>(target - function_.start);
    if (inside_insn(offset)) return;
    mark_target(offset);
  }
}

void Flow::sweep() {
  uint32_t limit = static_cast<uint32_t>(function_.end - function_.start);
  if (limit > size_) limit = size_;
  for (uint32_t lo = 0; lo < limit;) {
    if (flags_[lo] & kCovered) {
      ++lo;
      continue;
    }
    uint32_t hi = lo;
    while (hi < limit && !(flags_[hi] & kCovered)) ++hi;
    uint32_t o = lo;
    Insn insn;
    while (o < hi && decode(bytes_ + o, hi - o, o, &insn)) o = insn.end();
    if (o == hi)
      for (o = lo; o < hi;) {
        const Insn* added = add(o);
        insn = *added;
        if (insn.kind == Kind::jump_if || insn.kind == Kind::jump_count || insn.kind == Kind::jump)
          if (insn.target >= 0 && insn.target < static_cast<intptr_t>(size_)) flags_[insn.target] |= kTarget;
        // Entered in some way that is not seen: perhaps here.
        o = insn.end();
      }
    lo = hi;
  }
}

bool Flow::ruled_out(uint32_t offset) const {
  uint32_t o = offset;
  while (o > 0 && !known(o - 1)) --o;
  Insn insn;
  while (o < offset) {
    if (!decode(bytes_ + o, size_ - o, o, &insn)) return false;
    o = insn.end();
  }
  return o > offset;
}

const Insn* Flow::before(uint32_t offset) const {
  const Insn* found = nullptr;
  for (uint32_t back = 1; back <= 15 && back <= offset; ++back) {
    const Insn* p = at(offset - back);
    if (!p || p->end() != offset) continue;
    if (found) return nullptr;
    found = p;
  }
  if (!found) return nullptr;
  bool goes_on = found->kind != Kind::jump && found->kind != Kind::jump_indirect && found->kind != Kind::end;
  return goes_on ? found : nullptr;
}

bool Flow::taken(uint32_t lo, uint32_t hi) const {
  for (uint32_t i = lo; i < hi; ++i)
    if (flags_[i] & kTaken) return true;
  return false;
}

void Flow::take(uint32_t lo, uint32_t hi) {
  for (uint32_t i = lo; i < hi && i < size_; ++i) flags_[i] |= kTaken;
}

void Flow::release() {
  insns_.release();
  index_.release();
  flags_.release();
  work_.release();
  tables_.release();
}

}  // namespace upcall::patch

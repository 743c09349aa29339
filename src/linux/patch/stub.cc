#include "linux/patch/stub.h"

#include "linux/patch/patch.h"

namespace upcall::patch {
namespace {

// Read by signal handlers: entries are published by `start` last and withdrawn by `start` first.
// (Atomic built-ins: with -mgeneral-regs-only clang cannot compile <atomic>.)
struct Area {
  uintptr_t start, end, records;
  size_t record_count;
};
constexpr size_t kMaxAreas = 8192;
Area g_areas[kMaxAreas];
size_t g_area_count;

const Area* find_area(uintptr_t pc) {
  size_t n = __atomic_load_n(&g_area_count, __ATOMIC_ACQUIRE);  // pairs with add_area
  for (size_t i = 0; i < n; ++i) {
    uintptr_t start = __atomic_load_n(&g_areas[i].start, __ATOMIC_ACQUIRE);  // pairs with add_area
    if (start && start <= pc && pc < __atomic_load_n(&g_areas[i].end, __ATOMIC_RELAXED)) return &g_areas[i];
  }
  return nullptr;
}

bool add_area(const Area& area) {
  size_t n = g_area_count, i = 0;
  while (i < n && g_areas[i].start) ++i;
  if (i == kMaxAreas) return false;
  __atomic_store_n(&g_areas[i].end, area.end, __ATOMIC_RELAXED);
  __atomic_store_n(&g_areas[i].records, area.records, __ATOMIC_RELAXED);
  __atomic_store_n(&g_areas[i].record_count, area.record_count, __ATOMIC_RELAXED);
  __atomic_store_n(&g_areas[i].start, area.start, __ATOMIC_RELEASE);     // pairs with find_area
  if (i == n) __atomic_store_n(&g_area_count, n + 1, __ATOMIC_RELEASE);  // pairs with find_area
  return true;
}

int32_t load4(const uint8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}

}  // namespace

const char* StubWriter::open(const Maps& maps, uintptr_t lo, uintptr_t hi, size_t bytes, size_t records,
                             void* entry) {
  stubs_length_ = (16 + bytes + 15) & ~15ul;
  length_ = page_up(stubs_length_ + records * sizeof(StubRecord));
  for (unsigned attempt = 0; attempt < 64; ++attempt) {
    uintptr_t hint = maps.room_near(lo, hi, length_, attempt);
    if (!hint) return "no address space within reach for stubs";
    long memory = kernel::sys(__NR_mmap, hint, length_, kRead | kWrite,
                              kMapPrivate | kMapAnonymous | kMapFixedNoreplace, -1, 0);
    if (memory == static_cast<long>(hint)) {
      start_ = hint;
      used_ = 16;
      record_count_ = 0;
      reinterpret_cast<AreaHead*>(start_)->entry = entry;
      return nullptr;
    }
    // Kernels before 4.17 do not know MAP_FIXED_NOREPLACE and may have put it elsewhere.
    if (!kernel::is_error(memory)) kernel::sys(__NR_munmap, memory, length_);
    if (memory == -12) return "no memory for stubs";
  }
  return "no address space within reach for stubs";
}

bool StubWriter::byte(uint8_t b) {
  if (used_ >= stubs_length_) return false;
  reinterpret_cast<uint8_t*>(start_)[used_++] = b;
  return true;
}

bool StubWriter::bytes(const void* p, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (!byte(static_cast<const uint8_t*>(p)[i])) return false;
  return true;
}

// A displacement to `target` from the end of an instruction that has `after` more bytes behind it.
bool StubWriter::rel32(uintptr_t target, unsigned after) {
  intptr_t d = static_cast<intptr_t>(target - (start_ + used_ + 4 + after));
  int32_t narrow = static_cast<int32_t>(d);
  return narrow == d && bytes(&narrow, 4);
}

bool StubWriter::move(const Insn& insn, const uint8_t* code, uintptr_t base) {
  const uint8_t* p = code + insn.offset;
  uintptr_t target = base + static_cast<uintptr_t>(insn.target);
  if (insn.kind == Kind::jump) return byte(0xe9) && rel32(target);
  if (insn.kind == Kind::jump_if) {
    // The condition is in the low four bits of the last opcode byte, before rel8 or rel32.
    const uint8_t* op = p;
    while (op < p + insn.length && !(*op >= 0x70 && *op <= 0x7f) && *op != 0x0f) ++op;
    uint8_t condition = (*op == 0x0f ? op[1] : *op) & 0x0f;
    return byte(0x0f) && byte(0x80 | condition) && rel32(target);
  }
  if (!insn.rip_relative) return bytes(p, insn.length);
  unsigned behind = insn.length - insn.disp_offset - 4u;
  uintptr_t operand =
      base + insn.end() + static_cast<uintptr_t>(static_cast<intptr_t>(load4(p + insn.disp_offset)));
  return bytes(p, insn.disp_offset) && rel32(operand, behind) && bytes(p + insn.disp_offset + 4, behind);
}

uintptr_t StubWriter::emit(const Window& w, const uint8_t* code, uintptr_t base, const Insn* site) {
  size_t begin = used_;
  uintptr_t stub = start_ + used_;
  // As if a syscall stood right before moved code that has none.
  StubRecord record{
      static_cast<uint32_t>(begin), 0, 0, 0, 0, static_cast<uint8_t>(w.hi - w.lo), base + w.lo - 2};
  bool ok = true;
  for (unsigned i = 0; i < w.count && ok; ++i) {
    const Insn& insn = w.moved[i];
    if (!site || insn.offset != site->offset) {
      ok = move(insn, code, base);
      continue;
    }
    static constexpr uint8_t kHead[] = {0xf3, 0x48, 0x0f, 0xae, 0xc9, 0xe3, 0x0d, 0x4c,
                                        0x8d, 0x1d, 8,    0,    0,    0,    0xff, 0x25};
    static constexpr uint8_t kSyscall[] = {0x0f, 0x05};
    static_assert(sizeof kHead + 4 == kStubPlainOffset &&
                  kStubPlainOffset + sizeof kSyscall == kStubRestartOffset);
    static_assert(7 + kHead[6] == kStubPlainOffset && 14 + kHead[10] == kStubRestartOffset);
    record.restart = static_cast<uint16_t>(used_ - begin);
    ok = bytes(kHead, sizeof kHead) && rel32(start_ + offsetof(AreaHead, entry)) &&
         bytes(kSyscall, sizeof kSyscall);
    record.back = static_cast<uint16_t>(used_ - begin);
    CHECK(!ok || record.back - record.restart == kStubRestartOffset);
    record.before = static_cast<uint8_t>(site->offset - w.lo);
    record.after = static_cast<uint8_t>(w.hi - site->end());
    record.site = base + site->offset;
  }
  ok = ok && byte(0xe9) && rel32(base + w.hi);
  if (!ok) {
    used_ = begin;
    return 0;
  }
  record.end = static_cast<uint16_t>(used_ - begin);
  while (used_ % 16) byte(0xcc);
  uintptr_t at = start_ + stubs_length_ + record_count_ * sizeof(StubRecord);
  if (at + sizeof record <= start_ + length_) {
    *reinterpret_cast<StubRecord*>(at) = record;
    ++record_count_;
  }
  return stub;
}

const char* StubWriter::seal() {
  if (kernel::is_error(kernel::sys(__NR_mprotect, start_, length_, kRead | kExec))) {
    abandon();
    return "stubs may not be made executable";
  }
  if (!add_area({start_, start_ + length_, start_ + stubs_length_, record_count_})) {
    abandon();
    return "too many stub areas";
  }
  return nullptr;
}

void StubWriter::abandon() {
  kernel::sys(__NR_munmap, start_, length_);
  start_ = 0;
}

bool area_covers(uintptr_t pc) { return find_area(pc) != nullptr; }

uintptr_t area_program_pc(uintptr_t pc) {
  const Area* area = find_area(pc);
  if (!area) return pc;
  const StubRecord* records = reinterpret_cast<const StubRecord*>(area->records);
  size_t lo = 0, n = area->record_count;
  uintptr_t start = area->start;
  while (lo < n) {
    size_t mid = (lo + n) / 2;
    if (start + records[mid].start <= pc)
      lo = mid + 1;
    else
      n = mid;
  }
  if (!lo) return pc;
  const StubRecord& r = records[lo - 1];
  uintptr_t d = pc - start - r.start;
  if (d >= r.end) return pc;
  // Moved code is a copy, byte for byte, but for short branches, which grow: never past their own end.
  auto at_most = [](uintptr_t v, uintptr_t most) { return v < most ? v : most; };
  if (d < r.restart) return r.site - r.before + at_most(d, r.before);
  if (d < r.back) return r.site;
  return r.site + 2 + at_most(d - r.back, r.after);
}

void area_remove(uintptr_t start) {
  for (size_t i = 0; i < g_area_count; ++i) {
    if (g_areas[i].start != start) continue;
    size_t length = g_areas[i].end - start;
    __atomic_store_n(&g_areas[i].start, 0ul, __ATOMIC_RELEASE);  // pairs with find_area
    kernel::sys(__NR_munmap, start, length);
    return;
  }
}

}  // namespace upcall::patch

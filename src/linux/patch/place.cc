#include "linux/patch/place.h"

namespace upcall::patch {
namespace {

int32_t load4(const uint8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}

enum class Effect { none, unknown, constant };

// What an instruction does to rax. A short list of what compilers put before a system call; anything else
// counts as unknown, which only means that the site is redirected whatever its number.
Effect effect_on_rax(const uint8_t* p, const Insn& insn, long* value) {
  const uint8_t* end = p + insn.length;
  bool operand16 = false;
  while (p < end && (*p == 0x66 || *p == 0x64 || *p == 0x65 || *p == 0xf3 || *p == 0xf2 || *p == 0xf0 ||
                     *p == 0x2e || *p == 0x3e))
    operand16 |= *p++ == 0x66;
  uint8_t rex = (*p & 0xf0) == 0x40 ? *p++ : 0;
  uint8_t op = *p++;
  bool two = op == 0x0f;
  if (two) op = *p++;
  unsigned reg = (*p >> 3 & 7) | (rex & 4) << 1, rm = (*p & 7) | (rex & 1) << 3;
  bool memory = (*p >> 6) != 3;
  auto writes = [](bool is_rax) { return is_rax ? Effect::unknown : Effect::none; };
  // Without REX, byte register 4 is ah.
  auto writes_byte = [&](unsigned r) { return writes(r == 0 || (r == 4 && !rex)); };
  auto writes_rm = [&](bool byte) {
    return memory ? Effect::none : byte ? writes_byte(rm) : writes(rm == 0);
  };
  auto writes_reg = [&](bool byte) { return byte ? writes_byte(reg) : writes(reg == 0); };

  if (two) {
    if (op >= 0x80 && op <= 0x8f) return Effect::none;       // jcc
    if (op >= 0x18 && op <= 0x1f) return Effect::none;       // no-ops, endbr, prefetch
    if (op >= 0x40 && op <= 0x4f) return writes_reg(false);  // cmovcc
    if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf) return writes_reg(false);  // movzx, movsx
    if (op >= 0x90 && op <= 0x9f) return writes_rm(true);                                // setcc
    switch (op) {  // moves and logic between vector registers and memory
      case 0x10:
      case 0x11:
      case 0x12:
      case 0x13:
      case 0x14:
      case 0x16:
      case 0x17:
      case 0x28:
      case 0x29:
      case 0x57:
      case 0x60:
      case 0x61:
      case 0x62:
      case 0x6c:
      case 0x6d:
      case 0x6e:
      case 0x6f:
      case 0x70:
      case 0x7f:
      case 0xc6:
      case 0xd6:
      case 0xe7:
      case 0xef:
        return Effect::none;
      default:
        return Effect::unknown;
    }
  }
  if (op < 0x40 && (op & 7) < 6) {  // add or adc sbb and sub xor cmp
    bool compare = op >= 0x38;
    if ((op == 0x31 || op == 0x33) && !memory && reg == 0 && rm == 0) {  // xor %eax,%eax
      *value = 0;
      return operand16 ? Effect::unknown : Effect::constant;
    }
    if (compare) return Effect::none;
    switch (op & 7) {
      case 0:
        return writes_rm(true);
      case 1:
        return writes_rm(false);
      case 2:
        return writes_reg(true);
      case 3:
        return writes_reg(false);
      default:
        return Effect::unknown;
    }
  }
  if (op >= 0x50 && op <= 0x57) return Effect::none;  // push
  if (op >= 0x58 && op <= 0x5f) return writes((op & 7) == 0 && !(rex & 1));
  if (op >= 0x70 && op <= 0x7f) return Effect::none;  // jcc
  if (op >= 0xb0 && op <= 0xb7) return writes_byte((op & 7) | (rex & 1) << 3);
  if (op >= 0xb8 && op <= 0xbf) {
    if ((op & 7) || (rex & 1)) return Effect::none;
    if ((rex & 8) || operand16) return Effect::unknown;
    *value = static_cast<uint32_t>(load4(p));
    return Effect::constant;
  }
  switch (op) {
    case 0x63:
    case 0x69:
    case 0x6b:
    case 0x8b:
    case 0x8d:
      return writes_reg(false);
    case 0x8a:
      return writes_reg(true);
    case 0x88:
    case 0xc0:
    case 0xc6:
    case 0xd0:
    case 0xd2:
      return writes_rm(true);
    case 0x89:
    case 0xc1:
    case 0xd1:
    case 0xd3:
      return writes_rm(false);
    case 0x68:
    case 0x6a:
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9:
      return Effect::none;
    case 0x90:
      return writes(rex & 1);
    case 0x80:
      return (reg & 7) == 7 ? Effect::none : writes_rm(true);
    case 0x81:
    case 0x83:
      // or $-1,%eax is nobody's system call number.
      return (reg & 7) == 7 ? Effect::none : writes_rm(false);
    case 0xc7:
      if (!memory && rm == 0 && (reg & 7) == 0 && !operand16) {
        *value = load4(p + 1);
        return Effect::constant;
      }
      return writes_rm(false);
    case 0xf6:
    case 0xf7:
      if ((reg & 7) < 2) return Effect::none;  // test
      return (reg & 7) < 4 ? writes_rm(op == 0xf6) : Effect::unknown;
    case 0xff:
      if ((reg & 7) < 2) return writes_rm(false);
      return (reg & 7) == 6 ? Effect::none : Effect::unknown;
    default:
      return Effect::unknown;
  }
}

// Does any branch from anywhere land strictly within (lo,hi)?
bool far_hit(const Vec<uintptr_t>& far, uintptr_t lo, uintptr_t hi) {
  size_t i = lower_bound(far.begin(), far.size(), lo + 1);
  return i < far.size() && far[i] < hi;
}

bool entered(const Flow& flow, const Vec<uintptr_t>& far, uintptr_t base, uint32_t lo, uint32_t hi) {
  for (uint32_t o = lo + 1; o < hi; ++o)
    if (flow.is_target(o)) return true;
  return far_hit(far, base + lo, base + hi);
}

// May it move to a stub? `last`: nothing of the window comes after it.
bool movable(const Insn& insn, bool last) {
  switch (insn.kind) {
    case Kind::plain:
    case Kind::jump_if:
      return true;
    case Kind::jump:
    case Kind::jump_indirect:
    case Kind::end:
      return last;
    default:
      return false;
  }
}

// The window from `first` of at least `bytes` bytes which contains `site` (if any), or false.
bool grow(const Flow& flow, const Insn& first, const Insn* site, uint32_t bytes, Window* w) {
  w->lo = w->hi = first.offset;
  w->count = 0;
  bool seen = site == nullptr;
  while (w->hi - w->lo < bytes || !seen) {
    const Insn* insn = flow.at(w->hi);
    if (!insn || w->count == kMaxMoved || insn->end() - w->lo > kMaxWindow) return false;
    w->moved[w->count++] = *insn;
    w->hi = insn->end();
    bool is_site = site && insn->offset == site->offset;
    seen |= is_site;
    bool last = w->hi - w->lo >= bytes && seen;
    if (!is_site && !movable(*insn, last)) return false;
  }
  return true;
}

unsigned cost(const Window& w, const Insn& site, bool indirect) {
  unsigned c = 0;
  for (unsigned i = 0; i < w.count; ++i) {
    if (w.moved[i].offset == site.offset) continue;
    bool after = w.moved[i].offset > site.offset;
    c += after ? (indirect ? 12 : 2) : 1;
    if (w.moved[i].memory) c += 1;
    if (w.moved[i].kind != Kind::plain) c += 1;
  }
  return c;
}

bool in_short_reach(const Insn& site, uint32_t target) {
  int64_t d = static_cast<int64_t>(target) - site.end();
  return d >= -128 && d <= 127;
}

// Padding of 5 bytes that no flow reaches.
bool find_padding(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base,
                  uint32_t* at) {
  uint32_t lo = site.end() < 128 ? 0 : site.end() - 128;
  for (uint32_t hi; lo < flow.size() && (lo < site.end() || in_short_reach(site, lo)); lo = hi + 1) {
    hi = lo;
    while (hi < flow.size() && !flow.known(hi) && !flow.is_target(hi)) ++hi;
    bool after_code = lo > 0 && flow.known(lo - 1);
    bool inside = lo < flow.function().end - flow.function().start;
    if (hi - lo < kJump || !after_code || (inside && flow.has_hidden_entries())) continue;
    if (!all_padding(flow.bytes() + lo, flow.bytes() + hi)) continue;
    if (flow.taken(lo, lo + kJump) || far_hit(far, base + lo - 1, base + lo + kJump)) continue;
    *at = lo;
    return true;
  }
  return false;
}

// Code that gives way to two jumps: the first to its copy, the second the hop.
bool find_eviction(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base,
                   Window* out) {
  bool found = false;
  if (flow.has_hidden_entries()) return false;
  uint32_t lo = site.end() < 128 ? 0 : site.end() - 128;
  for (; lo < flow.size() && (lo < site.end() || in_short_reach(site, lo + kJump)); ++lo) {
    const Insn* first = flow.at(lo);
    Window w;
    if (!first || !in_short_reach(site, lo + kJump) || !grow(flow, *first, nullptr, 2 * kJump, &w)) continue;
    if (flow.taken(w.lo, w.hi) || entered(flow, far, base, w.lo, w.hi)) continue;
    if (found && out->count <= w.count) continue;
    *out = w;
    found = true;
  }
  return found;
}

}  // namespace

long constant_number(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base) {
  const Insn* cur = &site;
  for (unsigned step = 0; step < 40; ++step) {
    if (flow.is_target(cur->offset) || far_hit(far, base + cur->offset - 1, base + cur->offset + 1))
      return -1;
    const Insn* previous = flow.before(cur->offset);
    if (!previous || previous->kind == Kind::call || previous->kind == Kind::syscall) return -1;
    long value;
    switch (effect_on_rax(flow.bytes() + previous->offset, *previous, &value)) {
      case Effect::constant:
        return value;
      case Effect::unknown:
        return -1;
      case Effect::none:
        break;
    }
    cur = previous;
  }
  return -1;
}

const char* place(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base,
                  Placement* out) {
  *out = {};
  bool found = false;
  unsigned best = 0;
  const Insn* first = &site;
  while (first && site.end() - first->offset <= kMaxWindow) {
    Window w;
    if (grow(flow, *first, &site, kJump, &w) && !flow.taken(w.lo, w.hi) &&
        !entered(flow, far, base, w.lo, w.hi)) {
      unsigned c = cost(w, site, flow.has_indirect_jumps());
      if (!found || c < best) {
        out->window = w;
        best = c;
      }
      found = true;
    }
    first = flow.before(first->offset);
  }
  return found ? nullptr : "branches enter its neighbours, or they cannot move";
}

const char* place_hop(const Flow& flow, const Insn& site, const Vec<uintptr_t>& far, uintptr_t base,
                      Placement* out) {
  *out = {};
  if (entered(flow, far, base, site.offset, site.end())) return "a branch enters the instruction itself";
  if (flow.taken(site.offset, site.end())) return "overlaps a neighbour that is redirected";
  out->window = {site.offset, site.end(), 1, {site}};
  out->hop = true;
  if (find_padding(flow, site, far, base, &out->hop_at)) return nullptr;
  if (!find_eviction(flow, site, far, base, &out->evicted))
    return "branches enter its neighbours, and nothing near gives way";
  out->hop_at = out->evicted.lo + kJump;
  return nullptr;
}

}  // namespace upcall::patch

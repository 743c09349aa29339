#include "linux/patch/scan.h"

namespace upcall::patch {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101ul;
constexpr uint64_t kHighs = 0x8080808080808080ul;

uint64_t load8(const uint8_t* p) {
  uint64_t v;
  __builtin_memcpy(&v, p, 8);
  return v;
}

int32_t load4(const uint8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}

// High bit set in every zero byte (and perhaps in a byte above one: hits are checked again).
constexpr uint64_t zero_bytes(uint64_t v) { return (v - kOnes) & ~v & kHighs; }

// Calls hit(target) for each possible jump, conditional jump and (if wanted) call. What a hit is can only be
// guessed by a branch predictor: words with hits are gathered without branches first.
template <bool kCalls, typename Hit>
inline void each_branch(const uint8_t* begin, const uint8_t* end, Hit hit) {
  constexpr uint64_t kMask = kCalls ? 0xfe : 0xff, kJump = kCalls ? 0xe8 : 0xe9;
  auto target = [](const uint8_t* p) {
    unsigned two = *p == 0x0f;
    return reinterpret_cast<uintptr_t>(p) + 5 + two +
           static_cast<uintptr_t>(static_cast<intptr_t>(load4(p + 1 + two)));
  };
  constexpr unsigned kBatch = 256;
  uint16_t words[kBatch];
  uint64_t masks[kBatch];
  const uint8_t* p = begin;
  while (end - p >= 16) {
    size_t count = static_cast<size_t>(end - p - 8) / 8;
    if (count > kBatch) count = kBatch;
    unsigned found = 0;
    for (unsigned i = 0; i < count; ++i) {
      uint64_t x = load8(p + 8 * i), z = load8(p + 8 * i + 1);
      uint64_t hits = zero_bytes((x & kMask * kOnes) ^ kJump * kOnes) |
                      zero_bytes((x ^ 0x0f * kOnes) | ((z & 0xf0 * kOnes) ^ 0x80 * kOnes));
      words[found] = static_cast<uint16_t>(i);
      masks[found] = hits;
      found += hits != 0;
    }
    for (unsigned i = 0; i < found; ++i)
      for (uint64_t hits = masks[i]; hits; hits &= hits - 1)
        hit(target(p + 8 * words[i] + __builtin_ctzl(hits) / 8));
    p += 8 * count;
  }
  for (; end - p >= 6; ++p)
    if ((*p & kMask) == kJump || (p[0] == 0x0f && (p[1] & 0xf0) == 0x80)) hit(target(p));
  if (end - p == 5 && (*p & kMask) == kJump) hit(target(p));
}

}  // namespace

void find_syscall_bytes(const uint8_t* begin, const uint8_t* end, Vec<uintptr_t>* out) {
  const uint8_t* p = begin;
  for (; end - p >= 9; p += 8) {
    uint64_t hits = zero_bytes((load8(p) ^ 0x0f * kOnes) | (load8(p + 1) ^ 0x05 * kOnes));
    for (; __builtin_expect(hits != 0, 0); hits &= hits - 1) {
      const uint8_t* q = p + __builtin_ctzl(hits) / 8;
      if (q[0] == 0x0f && q[1] == 0x05) out->push(reinterpret_cast<uintptr_t>(q));
    }
  }
  for (; end - p >= 2; ++p)
    if (p[0] == 0x0f && p[1] == 0x05) out->push(reinterpret_cast<uintptr_t>(p));
}

NearMap::NearMap(const Vec<Range>& ranges, Range reach) : reach_(reach) {
  bits_.resize(((reach.hi - reach.lo) >> kShift) / 64 + 2);
  for (const Range& r : ranges) {
    uintptr_t b = r.lo < reach.lo ? 0 : (r.lo - reach.lo) >> kShift;
    for (; b <= (r.hi - reach.lo) >> kShift && b / 64 < bits_.size(); ++b) bits_[b / 64] |= 1ul << (b % 64);
  }
}

void find_far_jumps(const uint8_t* begin, const uint8_t* end, const NearMap& map, Vec<uintptr_t>* out) {
  each_branch<false>(begin, end, [&](uintptr_t target) {
    if (__builtin_expect(map.test(target), 0)) out->push(target);
  });
}

void find_far_branches(const uint8_t* begin, const uint8_t* end, const NearMap& map, Vec<uintptr_t>* out) {
  each_branch<true>(begin, end, [&](uintptr_t target) {
    if (__builtin_expect(map.test(target), 0)) out->push(target);
  });
}

void find_branches_into(const uint8_t* begin, const uint8_t* end, Range to, Vec<uintptr_t>* out) {
  each_branch<true>(begin, end, [&](uintptr_t target) {
    if (to.contains(target)) out->push(target);
  });
}

}  // namespace upcall::patch

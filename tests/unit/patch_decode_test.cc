// The fast decoder agrees with the complete one wherever it answers: over the code of real libraries, and
// over random bytes.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>

#include "linux/patch/decode.h"
#include "linux/patch/maps.h"

namespace {

using namespace upcall::patch;

bool same(const Insn& a, const Insn& b) {
  return a.length == b.length && a.kind == b.kind && a.rip_relative == b.rip_relative &&
         a.memory == b.memory && a.endbr == b.endbr && a.target == b.target && a.disp_offset == b.disp_offset;
}

std::string show(const uint8_t* p) {
  std::string s;
  char byte[4];
  for (int i = 0; i < 15; ++i) {
    std::snprintf(byte, sizeof byte, "%02x ", p[i]);
    s += byte;
  }
  return s;
}

// Linear decode; counts what each decoder answered. Stops at `limit` disagreements.
struct Counts {
  unsigned long common = 0, any = 0, differ = 0;
};

void compare(const uint8_t* p, const uint8_t* end, Counts* counts) {
  while (end - p >= 15 && counts->differ < 10) {
    Insn fast, full;
    bool quick = decode_common(p, 15, 100, &fast), known = decode_any(p, 15, 100, &full);
    counts->common += quick;
    counts->any += known;
    if (quick && (!known || !same(fast, full))) {
      ++counts->differ;
      ADD_FAILURE() << "decoders disagree: " << show(p) << " length " << int{fast.length} << ", "
                    << (known ? int{full.length} : 0);
    }
    p += known ? full.length : 1;
  }
}

TEST(PatchDecode, AgreesOnTheCodeOfLibraries) {
  Counts counts;
  Maps maps;
  ASSERT_TRUE(maps.read());
  unsigned objects = 0;
  for (const Mapping& m : maps.all()) {
    if (!(m.prot & kExec) || !m.inode) continue;
    ++objects;
    compare(reinterpret_cast<const uint8_t*>(m.start), reinterpret_cast<const uint8_t*>(m.end), &counts);
  }
  maps.release();
  EXPECT_GE(objects, 3u);
  EXPECT_GT(counts.any, 300000u);
  EXPECT_GT(counts.common, counts.any / 2) << "the fast decoder hardly answers";
}

TEST(PatchDecode, AgreesOnRandomBytes) {
  std::random_device device;
  unsigned seed = device();
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  Counts counts;
  // Opcodes first, so that prefixes and escapes come often enough.
  constexpr uint8_t kOften[] = {0x66, 0xf3, 0xf2, 0x0f, 0x48, 0x41, 0x64,
                                0x2e, 0xf0, 0x67, 0xc4, 0x62, 0xff, 0xf6};
  uint8_t bytes[15];
  for (int i = 0; i < 3000000 && counts.differ < 10; ++i) {
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
    for (int j = 0; j < 3; ++j)
      if (random() % 3 == 0) bytes[j] = kOften[random() % sizeof kOften];
    Insn fast, full;
    bool quick = decode_common(bytes, 15, 7, &fast);
    counts.common += quick;
    if (!quick) continue;
    bool known = decode_any(bytes, 15, 7, &full);
    if (known && same(fast, full)) continue;
    ++counts.differ;
    ADD_FAILURE() << "seed " << seed << ": " << show(bytes) << " length " << int{fast.length} << ", "
                  << (known ? int{full.length} : 0);
  }
  EXPECT_GT(counts.common, 100000u);
}

TEST(PatchDecode, PaddingIsRecognised) {
  const uint8_t nops[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0, 0x90, 0xcc};
  EXPECT_TRUE(all_padding(nops, nops + sizeof nops));
  EXPECT_FALSE(all_padding(nops, nops + 7)) << "cut in the middle of an instruction";
  const uint8_t code[] = {0x90, 0x90, 0xc3};
  EXPECT_FALSE(all_padding(code, code + sizeof code));
}

}  // namespace

#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>

namespace {

using upcall::Line;

std::string text(const Line& line) { return {line.data(), line.size()}; }

// What write() sends, up to the end.
std::string written(Line& line) {
  int ends[2];
  if (pipe(ends)) return "no pipe";
  line.write(ends[1]);
  close(ends[1]);
  std::string all;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) all.append(part, static_cast<size_t>(n));
  close(ends[0]);
  return all;
}

TEST(Line, StartsWithThePrefix) {
  EXPECT_EQ(text(Line()), "upcall: ");
  EXPECT_EQ(text(Line("x")), "x");
  EXPECT_EQ(text(Line("")), "");
}

TEST(Line, Text) {
  Line line("");
  line << "a" << 'b' << "" << static_cast<const char*>(nullptr) << "c";
  EXPECT_EQ(text(line), "abc");
}

TEST(Line, Numbers) {
  auto number = [](auto v) { return text(Line("") << v); };
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(-1), "-1");
  EXPECT_EQ(number(10), "10");
  EXPECT_EQ(number(INT_MIN), std::to_string(INT_MIN));
  EXPECT_EQ(number(UINT_MAX), std::to_string(UINT_MAX));
  EXPECT_EQ(number(LONG_MIN), std::to_string(LONG_MIN));
  EXPECT_EQ(number(LONG_MAX), std::to_string(LONG_MAX));
  EXPECT_EQ(number(ULONG_MAX), std::to_string(ULONG_MAX));
  EXPECT_EQ(number(0ul), "0");
  EXPECT_EQ(number(100ul), "100");
}

TEST(Line, Hexadecimal) {
  auto hex = [](unsigned long v) {
    Line line("");
    return text(line.hex(v));
  };
  EXPECT_EQ(hex(0), "0x0");
  EXPECT_EQ(hex(0xf), "0xf");
  EXPECT_EQ(hex(0x10), "0x10");
  EXPECT_EQ(hex(0x1000000), "0x1000000");
  EXPECT_EQ(hex(0xdeadbeef), "0xdeadbeef");
  EXPECT_EQ(hex(ULONG_MAX), "0xffffffffffffffff");
  EXPECT_EQ(hex(1ul << 63), "0x8000000000000000");
}

TEST(Line, WritesOneLineAndLeavesErrno) {
  Line line;
  line << "pid " << 42;
  errno = EDOM;
  EXPECT_EQ(written(line), "upcall: pid 42\n");
  line.write(-1);
  EXPECT_EQ(errno, EDOM);
}

TEST(Line, OverlongIsCutAndStillALine) {
  std::string much(5000, 'y');
  Line line("");
  line << much.c_str() << 123456789 << 'z';
  line.hex(ULONG_MAX);
  ASSERT_LT(line.size(), 1001u);
  EXPECT_GE(line.size(), 900u);
  std::string out = written(line);
  EXPECT_EQ(out, std::string(line.size(), 'y') + '\n');
}

}  // namespace

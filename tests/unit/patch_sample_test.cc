#include <gtest/gtest.h>
TEST(x, y) { EXPECT_EQ(1, 1); }

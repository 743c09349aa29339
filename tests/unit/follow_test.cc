// What is left of LD_PRELOAD in the environment of a program that is not to be followed.
#include "runtime/follow.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

// The environment afterwards, one line each.
std::string leave(std::vector<std::string> entries) {
  std::vector<char*> env;
  for (auto& entry : entries) env.push_back(entry.data());
  env.push_back(nullptr);
  upcall::runtime::leave_preload(env.data(), "/opt/other name.so");
  std::string text;
  for (char** entry = env.data(); *entry; ++entry) text += std::string(*entry) + "\n";
  return text;
}

TEST(Follow, NothingToTakeOut) {
  EXPECT_EQ(leave({}), "");
  EXPECT_EQ(leave({"A=1", "B="}), "A=1\nB=\n");
  EXPECT_EQ(leave({"LD_PRELOAD_X=libupcall.so", "XLD_PRELOAD=libupcall.so", "LD_PRELOAD"}),
            "LD_PRELOAD_X=libupcall.so\nXLD_PRELOAD=libupcall.so\nLD_PRELOAD\n");
  EXPECT_EQ(leave({"LD_PRELOAD=a.so:/x/libupcall.so.1:mylibupcall.so"}),
            "LD_PRELOAD=a.so:/x/libupcall.so.1:mylibupcall.so\n");
}

TEST(Follow, TheOnlyOne) {
  for (const char* list :
       {"libupcall.so", "/x/libupcall.so", " ::/x/libupcall.so : ", "libupcall.so:/y/libupcall.so", ""})
    EXPECT_EQ(leave({"A=1", std::string("LD_PRELOAD=") + list, "B=2"}), "A=1\nB=2\n") << list;
}

TEST(Follow, OthersStayInOrder) {
  for (const char* list : {"/x/libupcall.so:a.so:/b/c.so", "a.so:/x/libupcall.so:/b/c.so",
                           "a.so:/b/c.so:/x/libupcall.so", ":libupcall.so a.so::libupcall.so /b/c.so "}) {
    EXPECT_EQ(leave({std::string("LD_PRELOAD=") + list}), "LD_PRELOAD=a.so:/b/c.so\n") << list;
  }
  EXPECT_EQ(leave({"LD_PRELOAD=a.so /x/libupcall.so b.so"}), "LD_PRELOAD=a.so b.so\n");
  EXPECT_EQ(leave({"LD_PRELOAD=libupcall.so:a.so", "LD_PRELOAD=b.so:libupcall.so"}),
            "LD_PRELOAD=a.so\nLD_PRELOAD=b.so\n");
}

TEST(Follow, ByTheNameItWasLoadedBy) {
  // A name with a space cannot be given in LD_PRELOAD: no part of it is taken for ours.
  EXPECT_EQ(leave({"LD_PRELOAD=/opt/other name.so:a.so"}), "LD_PRELOAD=/opt/other name.so:a.so\n");
}

}  // namespace

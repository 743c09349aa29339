// A bad value ends the process, so each reading happens in a child.
#include "runtime/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/log.h"

namespace {

using upcall::runtime::Config;
using upcall::runtime::g_config;

void read_one(const std::string& entry) {
  std::string copy = entry;
  char* env[] = {copy.data(), nullptr};
  upcall::runtime::read_environment(env);
}

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  void TearDown() override {
    g_config = Config();
    upcall::g_log_topics = 0;
  }
};

using ConfigDeathTest = ConfigTest;

TEST_F(ConfigTest, GoodQuanta) {
  constexpr struct {
    const char* value;
    uint64_t ns;
  } good[] = {{"10ms", 10'000'000},        {"100us", 100'000},      {"50us", 50'000},
              {"1s", 1'000'000'000},       {"10s", 10'000'000'000}, {"0", 0},
              {"10000ms", 10'000'000'000}, {"007ms", 7'000'000}};
  for (auto& g : good) {
    g_config.quantum_ns = 1;
    read_one(std::string("UPCALL_QUANTUM=") + g.value);
    EXPECT_EQ(g_config.quantum_ns, g.ns) << g.value;
  }
}

TEST_F(ConfigTest, EmptyAndForeignNamesChangeNothing) {
  for (const char* entry :
       {"UPCALL_QUANTUM=", "UPCALL_QUANTUM", "UPCALL_QUANTUMS=1", "XUPCALL_QUANTUM=1", "=", ""}) {
    read_one(entry);
    EXPECT_EQ(g_config.quantum_ns, Config().quantum_ns) << entry;
  }
  upcall::runtime::read_environment(nullptr);
  EXPECT_EQ(g_config.processors, Config().processors);
}

TEST_F(ConfigDeathTest, BadQuanta) {
  for (const char* value :
       {"10", "ms", "abc", "49us", "10001ms", "11s", "-1ms", "+1ms", " 1ms", "1ms ", "1.5ms", "10m", "10MS",
        "0x10ms", "1", "18446744073709551617us", "10000000000s", "18446744074s"}) {
    EXPECT_EXIT(
        {
          read_one(std::string("UPCALL_QUANTUM=") + value);
          _exit(0);
        },
        ::testing::ExitedWithCode(2), "UPCALL_QUANTUM=.*expected")
        << value;
  }
}

TEST_F(ConfigTest, GoodProcessors) {
  for (uint32_t n : {1u, 2u, 256u}) {
    read_one("UPCALL_PROCESSORS=" + std::to_string(n));
    EXPECT_EQ(g_config.processors, n);
  }
}

TEST_F(ConfigDeathTest, BadProcessors) {
  for (const char* value : {"0", "257", "-1", "2x", "two", "4294967297"}) {
    EXPECT_EXIT(
        {
          read_one(std::string("UPCALL_PROCESSORS=") + value);
          _exit(0);
        },
        ::testing::ExitedWithCode(2), "UPCALL_PROCESSORS=.*from 1 to 256")
        << value;
  }
}

TEST_F(ConfigTest, Events) {
  using upcall::activation::Events;
  EXPECT_EQ(Config().events, Events::sentinel);
  read_one("UPCALL_EVENTS=bpf");
  EXPECT_EQ(g_config.events, Events::bpf);
  read_one("UPCALL_EVENTS=sentinel");
  EXPECT_EQ(g_config.events, Events::sentinel);
  read_one("UPCALL_EVENTS=monitor");
  EXPECT_EQ(g_config.events, Events::monitor);
}

TEST_F(ConfigDeathTest, BadEvents) {
  for (const char* value : {"bp", "bpfx", "BPF", "sentinel,bpf", "0"}) {
    EXPECT_EXIT(
        {
          read_one(std::string("UPCALL_EVENTS=") + value);
          _exit(0);
        },
        ::testing::ExitedWithCode(2), "UPCALL_EVENTS=.*sentinel, bpf or monitor")
        << value;
  }
}

TEST_F(ConfigTest, Symbols) {
  EXPECT_TRUE(Config().symbols);
  read_one("UPCALL_SYMBOLS=off");
  EXPECT_FALSE(g_config.symbols);
  read_one("UPCALL_SYMBOLS=on");
  EXPECT_TRUE(g_config.symbols);
}

TEST_F(ConfigDeathTest, BadSymbols) {
  for (const char* value : {"0", "1", "no", "offf", "of", "ON"}) {
    EXPECT_EXIT(
        {
          read_one(std::string("UPCALL_SYMBOLS=") + value);
          _exit(0);
        },
        ::testing::ExitedWithCode(2), "UPCALL_SYMBOLS=.*on or off")
        << value;
  }
}

TEST_F(ConfigTest, Topics) {
  read_one("UPCALL_LOG=sched,patch");
  EXPECT_TRUE(upcall::log_on(upcall::Topic::sched));
  EXPECT_TRUE(upcall::log_on(upcall::Topic::patch));
  EXPECT_FALSE(upcall::log_on(upcall::Topic::syscall));
}

TEST_F(ConfigDeathTest, UnknownTopics) {
  for (const char* value : {"schedule", "sche", "patch,,sched", ",", "all"}) {
    EXPECT_EXIT(
        {
          read_one(std::string("UPCALL_LOG=") + value);
          _exit(0);
        },
        ::testing::ExitedWithCode(2), "UPCALL_LOG=.*topics are")
        << value;
  }
}

}  // namespace

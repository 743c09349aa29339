// When the event manager polls and when it blocks.
#include "client/policy.h"

#include <gtest/gtest.h>

namespace upcall::client {
namespace {

upcall_situation fresh() {
  upcall_situation s = {};
  s.pending = 1;
  s.typical = 10'000;
  s.can_block = 1;
  return s;
}

TEST(Policy, PollsWhileIdleForTwiceTheUsualTime) {
  upcall_situation s = fresh();
  s.since = 19'000;
  EXPECT_EQ(decide(s), UPCALL_POLL_AGAIN);
  s.since = 21'000;
  EXPECT_EQ(decide(s), UPCALL_BLOCK);
  s.can_block = 0;
  EXPECT_EQ(decide(s), UPCALL_SLEEP);
}

TEST(Policy, LeavesTheProcessorToThreadsThatAreReady) {
  upcall_situation s = fresh();
  s.ready_threads = 3;
  s.since = 1000;
  EXPECT_EQ(decide(s), UPCALL_POLL_AT_HOOK);
  s.since = 30'000;
  EXPECT_EQ(decide(s), UPCALL_BLOCK);
  s.can_block = 0;
  EXPECT_EQ(decide(s), UPCALL_POLL_AT_HOOK);
}

TEST(Policy, GoesOnAtOnceWhereSomethingWasFound) {
  upcall_situation s = fresh();
  s.completed = 2;
  s.since = 0;
  EXPECT_EQ(decide(s), UPCALL_POLL_AGAIN);
  s.ready_threads = 1;  // whom it has just woken, say
  EXPECT_EQ(decide(s), UPCALL_POLL_AT_HOOK);
}

TEST(Policy, DoesNotSpinForWhatTakesLong) {
  upcall_situation s = fresh();
  s.typical = 5'000'000;
  s.since = 0;
  EXPECT_EQ(decide(s), UPCALL_BLOCK);
  s.can_block = 0;
  EXPECT_EQ(decide(s), UPCALL_SLEEP);
}

TEST(Policy, KnowsNothingAtFirst) {
  upcall_situation s = fresh();
  s.typical = 0;
  s.since = worth_of_blocking - 1;
  EXPECT_EQ(decide(s), UPCALL_POLL_AGAIN);
  s.since = worth_of_blocking;
  EXPECT_EQ(decide(s), UPCALL_BLOCK);
}

TEST(Policy, NeverSpinsLongerThanAMillisecond) {
  for (uint64_t typical = 1; typical < 1ull << 40; typical *= 3) {
    upcall_situation s = fresh();
    s.typical = typical;
    s.since = longest_spin;
    EXPECT_NE(decide(s), UPCALL_POLL_AGAIN) << typical;
  }
}

}  // namespace
}  // namespace upcall::client

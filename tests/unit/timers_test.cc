#include "sched/timers.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "sched_test.h"

namespace {

using upcall::sched::never;
using upcall::sched::no_timer;
using upcall::sched::Thread;
using upcall::sched::Timers;

TEST(Timers, EmptyHasNothingDue) {
  Timers timers;
  uint64_t word = 77;
  EXPECT_EQ(timers.next(), never);
  EXPECT_EQ(timers.pop_due(never - 1, &word), nullptr);
  EXPECT_EQ(timers.pop_due(never, &word), nullptr);
  EXPECT_EQ(word, 77u);
}

TEST(Timers, DueAtItsDeadlineNotBefore) {
  Descriptors threads(1);
  Timers timers;
  uint64_t word = 0;
  ASSERT_TRUE(timers.add(threads.at(0), 1000, 5));
  EXPECT_EQ(timers.next(), 1000u);
  EXPECT_EQ(timers.pop_due(999, &word), nullptr);
  EXPECT_EQ(timers.pop_due(1000, &word), threads.at(0));
  EXPECT_EQ(word, 5u);
  EXPECT_EQ(timers.next(), never);
  EXPECT_EQ(timers.pop_due(1000, &word), nullptr);
}

TEST(Timers, CancelOfAnAbsentThreadIsHarmless) {
  Descriptors threads(3);
  Timers timers;
  uint64_t word = 0;
  timers.cancel(threads.at(0));
  EXPECT_EQ(timers.next(), never);
  ASSERT_TRUE(timers.add(threads.at(1), 10, 1));
  ASSERT_TRUE(timers.add(threads.at(2), 20, 2));
  timers.cancel(threads.at(0));
  EXPECT_EQ(timers.next(), 10u);
  timers.cancel(threads.at(1));
  timers.cancel(threads.at(1));
  EXPECT_EQ(timers.next(), 20u);
  EXPECT_EQ(timers.pop_due(30, &word), threads.at(2));
  EXPECT_EQ(word, 2u);
  timers.cancel(threads.at(2));  // it has expired already
  EXPECT_EQ(timers.next(), never);
  EXPECT_EQ(timers.pop_due(30, &word), nullptr);
}

TEST(Timers, ResetForgetsAll) {
  Descriptors threads(2);
  Timers timers;
  uint64_t word = 0;
  ASSERT_TRUE(timers.add(threads.at(0), 10, 1));
  timers.reset();
  EXPECT_EQ(timers.next(), never);
  EXPECT_EQ(timers.pop_due(100, &word), nullptr);
  ASSERT_TRUE(timers.add(threads.at(1), 50, 3));
  EXPECT_EQ(timers.pop_due(100, &word), threads.at(1));
}

// Random operations beside a multimap that does the same.
class Model {
 public:
  Model(uint64_t seed, uint32_t threads, uint32_t spread)
      : random_(seed), spread_(spread), threads_(threads), where_(threads, armed_.end()) {}

  void step(uint32_t add_weight) {
    uint32_t what = random_.below(100);
    if (what < add_weight)
      add();
    else if (what < add_weight + 15)
      cancel();
    else
      pop(now_ + random_.below(spread_ / 32 + 1));
    check_next();
  }
  void drain() {
    while (!armed_.empty() && !::testing::Test::HasFatalFailure()) pop(never - 1);
    check_next();
    for (size_t i = 0; i < threads_.size(); ++i)
      EXPECT_EQ(threads_.at(i)->timer_index.load(upcall::relaxed), no_timer);
  }
  size_t peak() const { return peak_; }

 private:
  struct Armed {
    uint32_t thread;
    uint64_t word;
  };
  using Map = std::multimap<uint64_t, Armed>;

  void add() {
    uint32_t i = random_.below(static_cast<uint32_t>(threads_.size()));
    if (where_[i] != armed_.end()) return;
    uint64_t deadline = now_ + random_.below(spread_), word = ++word_ << 1 | 1;
    ASSERT_TRUE(timers_.add(threads_.at(i), deadline, word));
    where_[i] = armed_.insert({deadline, {i, word}});
    if (armed_.size() > peak_) peak_ = armed_.size();
  }
  // Of any thread, armed or not.
  void cancel() {
    uint32_t i = random_.below(static_cast<uint32_t>(threads_.size()));
    timers_.cancel(threads_.at(i));
    EXPECT_EQ(threads_.at(i)->timer_index.load(upcall::relaxed), no_timer);
    if (where_[i] == armed_.end()) return;
    armed_.erase(where_[i]);
    where_[i] = armed_.end();
  }
  // All that is due; among equal deadlines any order is right.
  void pop(uint64_t now) {
    if (now != never - 1) now_ = now;
    while (!armed_.empty() && armed_.begin()->first <= now) {
      uint64_t word = 0;
      Thread* t = timers_.pop_due(now, &word);
      ASSERT_NE(t, nullptr) << "the one for " << armed_.begin()->first << " is due at " << now;
      uint32_t i = t->slot;
      ASSERT_NE(where_[i], armed_.end()) << "thread " << i << " was not armed";
      EXPECT_EQ(where_[i]->first, armed_.begin()->first) << "out of order";
      EXPECT_EQ(where_[i]->second.word, word);
      EXPECT_EQ(t->timer_index.load(upcall::relaxed), no_timer);
      armed_.erase(where_[i]);
      where_[i] = armed_.end();
      check_next();
    }
    uint64_t word = 0;
    ASSERT_EQ(timers_.pop_due(now, &word), nullptr) << "nothing is due at " << now;
  }
  void check_next() { ASSERT_EQ(timers_.next(), armed_.empty() ? never : armed_.begin()->first); }

  Random random_;
  uint32_t spread_;
  Descriptors threads_;
  Timers timers_;
  Map armed_;
  std::vector<Map::iterator> where_;
  uint64_t now_ = 1'000'000, word_ = 0;
  size_t peak_ = 0;
};

TEST(Timers, AgreesWithAMultimap) {
  size_t peak = 0;
  for (uint64_t seed : seeds(12)) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    // Many equal deadlines with a small spread; next to none with a large one.
    Model model(seed, 20 + static_cast<uint32_t>(seed % 3) * 1500, seed % 2 ? 64 : 1u << 30);
    for (int i = 0; i < 6000 && !HasFatalFailure(); ++i) model.step(i / 1500 % 2 ? 20 : 83);
    model.drain();
    if (model.peak() > peak) peak = model.peak();
    if (HasFailure()) return;
  }
  EXPECT_GT(peak, 700u) << "the heap has to grow more than once";
}

}  // namespace

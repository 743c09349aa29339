#include "sched/ready_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sched_test.h"

#if defined(__SANITIZE_THREAD__)
#define UPCALL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UPCALL_TSAN 1
#endif
#endif

namespace {

using upcall::sched::ReadyQueue;
using upcall::sched::Thread;

class ReadyQueueTest : public ::testing::Test {
 protected:
  Thread* t(size_t i) { return descriptors_.at(i); }
  // Slots of what pop() hands out until the queue is empty.
  std::vector<uint32_t> drain() {
    std::vector<uint32_t> order;
    while (Thread* next = queue_.pop()) order.push_back(next->slot);
    return order;
  }
  // Slots of a list linked by next; cut at 100, so that a ring is a failure and not a hang.
  static std::vector<uint32_t> slots_of(Thread* first) {
    std::vector<uint32_t> order;
    for (; first && order.size() < 100; first = first->next) order.push_back(first->slot);
    return order;
  }

  Descriptors descriptors_{64};
  ReadyQueue queue_;
};

using Slots = std::vector<uint32_t>;

TEST_F(ReadyQueueTest, EmptyGivesNothing) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.count(), 0u);
  EXPECT_EQ(queue_.pop(), nullptr);
  uint32_t taken = 7;
  EXPECT_EQ(queue_.steal_half(&taken), nullptr);
  EXPECT_EQ(taken, 0u);
}

TEST_F(ReadyQueueTest, ListIsFirstInFirstOut) {
  for (uint32_t i = 0; i < 5; ++i) {
    queue_.push(t(i));
    EXPECT_EQ(queue_.count(), i + 1);
  }
  EXPECT_EQ(drain(), (Slots{0, 1, 2, 3, 4}));
  EXPECT_TRUE(queue_.empty());
  queue_.push(t(9));  // the tail was forgotten with its list
  EXPECT_EQ(drain(), (Slots{9}));
}

TEST_F(ReadyQueueTest, SlotRunsFirstAndItsFormerThreadGoesToTheEnd) {
  queue_.push(t(0));
  queue_.push_lifo(t(1));
  queue_.push_lifo(t(2));
  queue_.push(t(3));
  EXPECT_EQ(queue_.count(), 4u);
  EXPECT_EQ(drain(), (Slots{2, 0, 1, 3}));
}

TEST_F(ReadyQueueTest, WokenThreadsGoBeforeNewOnesAndTheList) {
  queue_.push(t(0));
  queue_.push_new(t(1));
  queue_.push_woken(t(2));
  queue_.push_woken(t(3));
  queue_.push_lifo(t(4));
  EXPECT_EQ(queue_.count(), 5u);
  EXPECT_EQ(drain(), (Slots{4, 2, 3, 1, 0}));
}

TEST_F(ReadyQueueTest, PrioritiesGoFirstHighestAheadEqualsInOrder) {
  const int32_t priorities[] = {0, 10, 30, 10, 20, 0};
  for (uint32_t i = 0; i < 6; ++i) t(i)->sched_priority = priorities[i];
  for (uint32_t i = 0; i < 6; ++i) queue_.push(t(i));
  EXPECT_TRUE(queue_.beats(t(1)));
  EXPECT_EQ(drain(), (Slots{2, 4, 1, 3, 0, 5}));
  EXPECT_FALSE(queue_.beats(t(0)));
}

TEST_F(ReadyQueueTest, AStoppedThreadStaysFirstOfItsEqualsUnlessItsTurnIsOver) {
  for (uint32_t i = 0; i < 4; ++i) t(i)->sched_priority = 10;
  t(3)->sched_priority = 20;
  queue_.push(t(0));
  queue_.push(t(3));
  EXPECT_TRUE(queue_.beats(t(1)));
  queue_.push_stopped(t(1));  // by the higher one
  EXPECT_EQ(drain(), (Slots{3, 1, 0}));
  queue_.push(t(0));
  EXPECT_FALSE(queue_.beats(t(1))) << "first in, first out: equals wait";
  t(1)->sched_policy = 2;
  EXPECT_TRUE(queue_.beats(t(1))) << "round robin: equals have their turn";
  queue_.push_stopped(t(1));
  EXPECT_EQ(drain(), (Slots{0, 1}));
}

TEST_F(ReadyQueueTest, AThreadIsTakenOutWhereverItStands) {
  t(1)->sched_priority = 5;
  for (uint32_t i = 0; i < 3; ++i) queue_.push(t(i));
  queue_.push_woken(t(3));
  queue_.push_new(t(4));
  queue_.push_lifo(t(5));
  for (uint32_t i : {2u, 1u, 5u, 3u, 4u}) EXPECT_TRUE(queue_.take_out(t(i))) << i;
  EXPECT_FALSE(queue_.take_out(t(2)));
  EXPECT_EQ(queue_.count(), 1u);
  EXPECT_EQ(drain(), (Slots{0}));
}

TEST_F(ReadyQueueTest, WokenThreadsAreStolenFirst) {
  for (uint32_t i = 0; i < 4; ++i) queue_.push(t(i));
  for (uint32_t i = 4; i < 7; ++i) queue_.push_woken(t(i));
  uint32_t taken = 0;
  EXPECT_EQ(slots_of(queue_.steal_half(&taken)), (Slots{4, 5}));
  EXPECT_EQ(taken, 2u);
  EXPECT_EQ(drain(), (Slots{6, 0, 1, 2, 3}));
}

TEST_F(ReadyQueueTest, ListHasItsTurnAlthoughThreadsKeepComingBack) {
  queue_.push(t(0));
  int run = 0;
  do queue_.push_woken(t(1));
  while (queue_.pop()->slot == 1 && ++run < 100);
  EXPECT_LE(run, 32);
}

TEST_F(ReadyQueueTest, SlotAloneIsCountedAndPopped) {
  queue_.push_lifo(t(5));
  EXPECT_EQ(queue_.count(), 1u);
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(drain(), (Slots{5}));
}

// Two threads that wake each other by turns, and one that waits in the list. The limit is repeated here, so that
// it is not raised by mistake: 32, and up to 256 while they change as quickly as here.
TEST_F(ReadyQueueTest, ListHasItsTurnAlthoughTheSlotIsAlwaysFull) {
  constexpr int limit = 256, least = 16;
  for (int round = 0; round < 3; ++round) {
    queue_.push(t(2));
    queue_.push(t(3));
    int run = 0;
    Thread* other = t(1);
    Thread* now = nullptr;
    queue_.push_lifo(t(0));
    while ((now = queue_.pop())->slot < 2) {
      ASSERT_LE(++run, limit) << "the list starves";
      queue_.push_lifo(other);
      other = now;
    }
    EXPECT_EQ(now, t(2));
    EXPECT_GE(run, least) << "the slot hardly has precedence";
    EXPECT_EQ(queue_.pop()->slot, 1u - other->slot) << "after its turn the list waits again";
    EXPECT_EQ(drain(), (Slots{3}));
  }
}

TEST_F(ReadyQueueTest, RotateTakesTheNextAndAppends) {
  EXPECT_EQ(queue_.rotate(t(0)), t(0)) << "nobody else: go on";
  EXPECT_EQ(queue_.count(), 0u);
  queue_.push(t(1));
  queue_.push(t(2));
  EXPECT_EQ(queue_.rotate(t(0)), t(1));
  EXPECT_EQ(queue_.rotate(t(1)), t(2));
  EXPECT_EQ(queue_.rotate(t(2)), t(0));
  EXPECT_EQ(queue_.count(), 2u);
  queue_.push_lifo(t(3));
  EXPECT_EQ(queue_.rotate(t(0)), t(3)) << "the slot first";
  EXPECT_EQ(queue_.count(), 3u);
  EXPECT_EQ(drain(), (Slots{1, 2, 0}));
}

TEST_F(ReadyQueueTest, RotateWithOneListedOrOneInTheSlot) {
  queue_.push(t(1));
  EXPECT_EQ(queue_.rotate(t(0)), t(1));
  EXPECT_EQ(drain(), (Slots{0}));
  queue_.push_lifo(t(1));
  EXPECT_EQ(queue_.rotate(t(0)), t(1));
  EXPECT_EQ(queue_.count(), 1u);
  EXPECT_EQ(drain(), (Slots{0}));
}

TEST_F(ReadyQueueTest, NewThreadsRunNewestFirstBetweenSlotAndList) {
  queue_.push(t(0));
  queue_.push_new(t(1));
  queue_.push_new(t(2));
  queue_.push_lifo(t(3));
  EXPECT_EQ(queue_.count(), 4u);
  EXPECT_EQ(drain(), (Slots{3, 2, 1, 0}));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ReadyQueueTest, RotateAndThievesTakeNewThreadsOldestFirst) {
  for (uint32_t i = 0; i < 4; ++i) queue_.push_new(t(i));
  EXPECT_EQ(queue_.rotate(t(9)), t(0));
  EXPECT_EQ(queue_.count(), 4u);
  queue_.push_new(t(4));
  uint32_t taken = 0;
  EXPECT_EQ(slots_of(queue_.steal_half(&taken)), (Slots{1, 2, 3}));
  EXPECT_EQ(taken, 3u);
  EXPECT_EQ(queue_.count(), 2u);
  EXPECT_EQ(drain(), (Slots{9, 4}));
}

TEST_F(ReadyQueueTest, AStreamOfNewThreadsDoesNotStarveTheList) {
  constexpr uint32_t limit = 256, least = 16;
  queue_.push(t(50));
  uint32_t run = 0;
  queue_.push_new(t(0));
  while (Thread* now = queue_.pop()) {
    if (now == t(50)) break;
    ASSERT_LE(++run, limit) << "the list starves";
    queue_.push_new(t(run));
  }
  EXPECT_GE(run, least);
  EXPECT_EQ(drain(), (Slots{run}));
}

TEST_F(ReadyQueueTest, PushAllAppendsInOrder) {
  for (int before = 0; before < 2; ++before) {
    if (before) queue_.push(t(9));
    t(0)->next = t(1);
    t(1)->next = t(2);
    t(2)->next = t(50);  // what lies behind the last is not the queue's
    queue_.push_all(t(0), t(2), 3);
    queue_.push(t(3));
    EXPECT_EQ(queue_.count(), 4u + static_cast<uint32_t>(before));
    EXPECT_EQ(drain(), before ? (Slots{9, 0, 1, 2, 3}) : (Slots{0, 1, 2, 3}));
  }
}

TEST_F(ReadyQueueTest, StealTakesTheOlderHalf) {
  for (uint32_t n = 1; n <= 9; ++n) {
    for (uint32_t i = 0; i < n; ++i) queue_.push(t(i));
    uint32_t taken = 0;
    Thread* first = queue_.steal_half(&taken);
    Slots stolen, left;
    for (uint32_t i = 0; i < n; ++i) (i < (n + 1) / 2 ? stolen : left).push_back(i);
    EXPECT_EQ(taken, stolen.size());
    EXPECT_EQ(slots_of(first), stolen);
    EXPECT_EQ(queue_.count(), left.size());
    EXPECT_EQ(drain(), left);
    queue_.push(t(20));
    EXPECT_EQ(drain(), (Slots{20})) << "the list is whole after a theft of " << taken;
  }
}

TEST_F(ReadyQueueTest, StealLeavesTheSlotUntilNothingElseIsThere) {
  queue_.push(t(0));
  queue_.push_lifo(t(1));
  t(1)->next = t(40);  // a link from an earlier list
  uint32_t taken = 0;
  EXPECT_EQ(slots_of(queue_.steal_half(&taken)), (Slots{0}));
  EXPECT_EQ(taken, 1u);
  EXPECT_EQ(queue_.count(), 1u);
  EXPECT_EQ(slots_of(queue_.steal_half(&taken)), (Slots{1}));
  EXPECT_EQ(taken, 1u);
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.steal_half(&taken), nullptr);
  EXPECT_EQ(taken, 0u);
}

TEST_F(ReadyQueueTest, StolenListCanBePushedWhole) {
  for (uint32_t i = 0; i < 6; ++i) queue_.push(t(i));
  uint32_t taken = 0;
  Thread* first = queue_.steal_half(&taken);
  ASSERT_EQ(taken, 3u);
  Thread* last = first;
  while (last->next) last = last->next;
  queue_.push_all(first, last, taken);
  EXPECT_EQ(drain(), (Slots{3, 4, 5, 0, 1, 2}));
}

TEST_F(ReadyQueueTest, ResetEmpties) {
  queue_.push(t(0));
  queue_.push_lifo(t(1));
  queue_.reset();
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.pop(), nullptr);
  queue_.push(t(2));
  EXPECT_EQ(drain(), (Slots{2}));
}

// Owner and thief at the same time. Each descriptor is in one hand or in the queue: rax says which, rbx counts how
// often it went in, rdx how often it came out. They are plain words, so a thread handed out twice shows as a wrong
// count, and to ThreadSanitizer as a race.
class ReadyQueueStress : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint64_t held = 0, queued = 1;
  static constexpr size_t threads = 48;

  void put(Thread* t) {
    if (t->rax != held || t->rbx != t->rdx) ++errors_;
    t->rax = queued;
    ++t->rbx;
  }
  void took(Thread* t) {
    if (t->rax != queued || t->rbx != t->rdx + 1) ++errors_;
    t->rax = held;
    ++t->rdx;
  }
  Thread* grab(std::vector<Thread*>& mine, Random& random) {
    std::swap(mine[random.below(static_cast<uint32_t>(mine.size()))], mine.back());
    Thread* t = mine.back();
    mine.pop_back();
    return t;
  }
  void owner_step(std::vector<Thread*>& mine, Random& random);
  void push_some(std::vector<Thread*>& mine, Random& random);
  void thief(uint64_t seed);
  void receive(std::vector<Thread*>& mine);

  Descriptors descriptors_{threads};
  ReadyQueue queue_;
  std::atomic<Thread*> returned_{nullptr};  // from the thief to the owner, linked by wait_next
  std::atomic<uint64_t> stolen_{0}, errors_{0};
  std::atomic<bool> stop_{false};
  uint64_t popped_ = 0, rotated_ = 0;
};

void ReadyQueueStress::push_some(std::vector<Thread*>& mine, Random& random) {
  uint32_t n = 1 + random.below(static_cast<uint32_t>(mine.size()));
  Thread *first = nullptr, *last = nullptr;
  for (uint32_t i = 0; i < n; ++i) {
    Thread* t = grab(mine, random);
    put(t);
    if (last)
      last->next = t;
    else
      first = t;
    last = t;
  }
  queue_.push_all(first, last, n);
}

void ReadyQueueStress::owner_step(std::vector<Thread*>& mine, Random& random) {
  uint32_t what = random.below(18);
  if (what < 5 || mine.empty()) {
    if (Thread* t = queue_.pop()) {
      took(t);
      mine.push_back(t);
      ++popped_;
    }
  } else if (what < 8) {
    Thread* t = grab(mine, random);
    put(t);
    queue_.push(t);
  } else if (what < 11) {
    Thread* t = grab(mine, random);
    put(t);
    queue_.push_lifo(t);
  } else if (what < 15) {
    Thread* t = grab(mine, random);
    put(t);
    Thread* next = queue_.rotate(t);
    took(next);
    mine.push_back(next);
    rotated_ += next != t;
  } else if (what < 17) {
    Thread* t = grab(mine, random);
    put(t);
    queue_.push_new(t);
  } else {
    push_some(mine, random);
  }
}

void ReadyQueueStress::thief(uint64_t seed) {
  Random random(seed);
  while (!stop_.load(std::memory_order_relaxed)) {
    uint32_t taken = 0, seen = 0;
    Thread* t = queue_.steal_half(&taken);
    while (t && seen < threads) {
      Thread* next = t->next;
      took(t);
      ++seen;
      Thread* head = returned_.load(std::memory_order_relaxed);
      do t->wait_next = head;
      while (!returned_.compare_exchange_weak(head, t, std::memory_order_release, std::memory_order_relaxed));
      t = next;
    }
    if (seen != taken) ++errors_;
    if (errors_.load(std::memory_order_relaxed)) return;  // what is in two places must not go on
    stolen_.fetch_add(seen, std::memory_order_relaxed);
    for (uint32_t i = random.below(200); i > 0; --i) upcall::pause_cpu();
  }
}

void ReadyQueueStress::receive(std::vector<Thread*>& mine) {
  Thread* t = returned_.exchange(nullptr, std::memory_order_acquire);
  while (t && mine.size() <= threads) {  // a ring if a thread was handed out twice
    Thread* next = t->wait_next;
    mine.push_back(t);
    t = next;
  }
}

// membarrier(2) orders what ThreadSanitizer cannot see, so under it only the variant with two full fences runs;
// elsewhere both do.
TEST_P(ReadyQueueStress, EachThreadIsHandedOutOnce) {
  upcall::g_have_membarrier = false;
  if (GetParam()) {
#ifdef UPCALL_TSAN
    GTEST_SKIP() << "ThreadSanitizer knows nothing of membarrier(2)";
#endif
    upcall::register_membarrier();
    if (!upcall::g_have_membarrier) GTEST_SKIP() << "this kernel has no private expedited membarrier";
  }
  uint64_t seed = fresh_seed();
  Random random(seed);
  std::vector<Thread*> mine;
  for (size_t i = 0; i < threads; ++i) mine.push_back(descriptors_.at(i));
  std::thread other([&] { thief(seed + 1); });
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto enough = start + std::chrono::seconds(2), at_most = start + std::chrono::seconds(20);
  // On a busy machine the thief may have to wait for its CPU.
  while (Clock::now() < enough || (stolen_.load(std::memory_order_relaxed) == 0 && Clock::now() < at_most)) {
    if (errors_.load(std::memory_order_relaxed)) break;
    for (int i = 0; i < 256; ++i) owner_step(mine, random);
    receive(mine);
  }
  stop_.store(true, std::memory_order_relaxed);
  other.join();
  receive(mine);
  ASSERT_EQ(errors_.load(), 0u) << "a thread was in two hands, or a list had another length than was said";
  EXPECT_EQ(queue_.count(), threads - mine.size());
  while (Thread* t = queue_.pop()) {
    took(t);
    mine.push_back(t);
    ASSERT_LE(mine.size(), threads);
  }
  EXPECT_EQ(errors_.load(), 0u);
  EXPECT_EQ(mine.size(), threads) << "a thread was lost";
  for (size_t i = 0; i < threads; ++i) EXPECT_EQ(descriptors_.at(i)->rax, held);
  EXPECT_GT(stolen_.load(), 0u);
  EXPECT_GT(popped_, 0u);
  EXPECT_GT(rotated_, 0u);
  std::printf("%llu popped, %llu rotated, %llu stolen\n", static_cast<unsigned long long>(popped_),
              static_cast<unsigned long long>(rotated_), static_cast<unsigned long long>(stolen_.load()));
  upcall::g_have_membarrier = false;
}

INSTANTIATE_TEST_SUITE_P(Fences, ReadyQueueStress, ::testing::Values(false, true),
                         [](const auto& fence) { return fence.param ? "Membarrier" : "FullFences"; });

}  // namespace

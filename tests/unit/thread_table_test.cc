#include "sched/thread_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <set>
#include <vector>

#include "sched_test.h"

namespace {

using upcall::sched::first_virtual_tid;
using upcall::sched::no_timer;
using upcall::sched::State;
using upcall::sched::Thread;
using upcall::sched::ThreadTable;

constexpr int32_t tid_end = 1 << 28;

class ThreadTableTest : public ::testing::Test {
 protected:
  Thread* start() {
    Thread* t = table_->allocate();
    if (t) table_->add_live(t);
    return t;
  }
  void end(Thread* t) {
    table_->remove_live(t);
    table_->free(t);
  }
  std::vector<Thread*> start_many(size_t n) {
    std::vector<Thread*> all;
    for (size_t i = 0; i < n; ++i) all.push_back(start());
    return all;
  }
  size_t listed() {
    size_t n = 0;
    table_->find_if([&](Thread*) { return ++n > 100'000; });
    return n;
  }

  // Too large for the stack of a test.
  std::unique_ptr<ThreadTable> table_ = std::make_unique<ThreadTable>();
};

TEST_F(ThreadTableTest, NewDescriptorIsBlank) {
  Thread* t = table_->allocate();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t) % alignof(Thread), 0u);
  EXPECT_EQ(t->state.load(upcall::relaxed), State::exited);
  EXPECT_EQ(t->wait_word.load(upcall::relaxed) & 1, 0u);
  EXPECT_EQ(t->timer_index.load(upcall::relaxed), no_timer);
  EXPECT_EQ(t->next, nullptr);
  EXPECT_EQ(t->rip, 0u);
  EXPECT_EQ(t->signals.pending, 0u);
  EXPECT_EQ(table_->live(), 0u) << "allocated is not live";
}

// Late claims of a wait must fail after the descriptor went to another thread.
TEST_F(ThreadTableTest, WaitSequenceSurvivesReuseAndAllElseIsWiped) {
  Thread* t = start();
  uint64_t word = upcall::sched::begin_wait(t);
  t->rip = 1, t->rax = 2, t->clear_child_tid = reinterpret_cast<uint32_t*>(t), t->is_main = true;
  t->timer_index.store(3, upcall::relaxed), t->signals.pending = 4, t->restore_mask = true, t->name[0] = 'x';
  end(t);
  Thread* again = start();
  ASSERT_EQ(again, t);
  EXPECT_EQ(t->wait_word.load(upcall::relaxed), word & ~1ul);
  EXPECT_FALSE(upcall::sched::claim_wait(t, word));
  EXPECT_GT(upcall::sched::begin_wait(t), word);
  EXPECT_FALSE(upcall::sched::claim_wait(t, word));
  EXPECT_EQ(t->rip, 0u);
  EXPECT_EQ(t->rax, 0u);
  EXPECT_EQ(t->clear_child_tid, nullptr);
  EXPECT_FALSE(t->is_main);
  EXPECT_EQ(t->timer_index.load(upcall::relaxed), no_timer);
  EXPECT_EQ(t->signals.pending, 0u);
  EXPECT_FALSE(t->restore_mask);
  EXPECT_EQ(t->name[0], '\0');
}

TEST_F(ThreadTableTest, IdsAreUniqueAndInRange) {
  std::set<int32_t> ids;
  std::set<Thread*> distinct;
  std::vector<Thread*> all = start_many(3000);
  for (Thread* t : all) {
    ASSERT_NE(t, nullptr);
    EXPECT_GE(t->tid, first_virtual_tid);
    EXPECT_LT(t->tid, tid_end);
    ids.insert(t->tid);
    distinct.insert(t);
  }
  EXPECT_EQ(ids.size(), all.size());
  EXPECT_EQ(distinct.size(), all.size());
  EXPECT_EQ(table_->live(), all.size());
  EXPECT_EQ(listed(), all.size());
  for (Thread* t : all) EXPECT_EQ(table_->find(t->tid), t);
}

TEST_F(ThreadTableTest, FindAnswersForTheLiveOnly) {
  std::vector<Thread*> all = start_many(5);
  int32_t gone = all[2]->tid;
  EXPECT_EQ(table_->remove_live(all[2]), 4u);
  EXPECT_EQ(table_->find(gone), nullptr) << "from remove_live on, before its memory is free";
  table_->free(all[2]);
  EXPECT_EQ(table_->find(gone), nullptr);
  for (size_t i : {0u, 1u, 3u, 4u}) EXPECT_EQ(table_->find(all[i]->tid), all[i]);
  EXPECT_EQ(listed(), 4u);
  Thread* next = start();
  EXPECT_EQ(next, all[2]) << "the slot is used again";
  EXPECT_EQ(table_->find(gone), nullptr) << "an old id does not find the new thread";
  EXPECT_EQ(table_->find(next->tid), next);
}

TEST_F(ThreadTableTest, FindOfWhatIsNoId) {
  int32_t odd[] = {INT_MIN, -1, 0, 1, first_virtual_tid - 1, tid_end - 1, tid_end, INT_MAX};
  for (int32_t tid : odd) EXPECT_EQ(table_->find(tid), nullptr) << tid << " in an empty table";
  Thread* t = start();
  for (int32_t tid : odd) EXPECT_EQ(table_->find(tid), nullptr) << tid;
  EXPECT_EQ(table_->find(t->tid + 1), nullptr) << "a slot that nobody uses";
  EXPECT_EQ(table_->find(t->tid + (1 << 20)), nullptr) << "another generation";
}

TEST_F(ThreadTableTest, MainIsFoundByTheProcessId) {
  Thread* m = start();
  Thread* other = start();
  int32_t virtual_id = m->tid;
  table_->set_main(m, 1234);
  EXPECT_EQ(table_->find(1234), m);
  EXPECT_EQ(table_->find(virtual_id), nullptr);
  EXPECT_EQ(table_->find(other->tid), other);
  end(m);
  EXPECT_EQ(table_->find(1234), nullptr);
  EXPECT_EQ(table_->find(0), nullptr);
  EXPECT_EQ(table_->find(other->tid), other);
}

TEST_F(ThreadTableTest, RemovalFromAnyPlaceOfTheList) {
  for (size_t victim = 0; victim < 3; ++victim) {
    std::vector<Thread*> all = start_many(3);
    end(all[victim]);
    EXPECT_EQ(listed(), 2u);
    for (size_t i = 0; i < 3; ++i)
      if (i != victim) {
        EXPECT_EQ(table_->find_if([&](Thread* t) { return t == all[i]; }), all[i]);
        end(all[i]);
      }
    EXPECT_EQ(listed(), 0u);
    EXPECT_EQ(table_->live(), 0u);
  }
}

TEST_F(ThreadTableTest, OneThreadAfterAnotherHasFreshIds) {
  Thread* m = start();  // as in a process: the first slot is the main thread's
  std::set<int32_t> ids{m->tid};
  for (int i = 0; i < 200; ++i) {
    Thread* t = start();
    EXPECT_LT(t->slot, 64u) << "a slot is used again";
    EXPECT_TRUE(ids.insert(t->tid).second) << "id " << t->tid << " came back after " << i << " threads";
    EXPECT_EQ(table_->find(t->tid), t);
    end(t);
  }
}

TEST_F(ThreadTableTest, BatchesHaveFreshIds) {
  std::vector<int32_t> before;
  for (int round = 0; round < 20; ++round) {
    std::vector<Thread*> all = start_many(100);
    for (int32_t old : before) EXPECT_EQ(table_->find(old), nullptr) << "round " << round;
    before.clear();
    for (Thread* t : all) {
      EXPECT_LT(t->slot, 128u);
      before.push_back(t->tid);
    }
    while (!all.empty()) end(all.back()), all.pop_back();
  }
}

// A generation belongs to its slot. One that counted the allocations of all slots failed here: a slot whose
// turn comes 250 allocations later has the id it had before.
TEST_F(ThreadTableTest, BatchOf250HasFreshIds) {
  start();
  std::vector<Thread*> all = start_many(250);
  std::vector<int32_t> before;
  for (Thread* t : all) before.push_back(t->tid);
  while (!all.empty()) end(all.back()), all.pop_back();
  all = start_many(250);
  size_t stale = 0;
  for (int32_t old : before) stale += table_->find(old) != nullptr;
  EXPECT_EQ(stale, 0u) << "ids of joined threads find the threads of the next batch";
}

// The id is in place from allocate on, but not found before add_live, nor after a failed creation.
TEST_F(ThreadTableTest, AllocatedIsNotFoundBeforeItLivesNorAfterItsCreationFailed) {
  Thread* t = table_->allocate();
  int32_t tid = t->tid;
  EXPECT_EQ(table_->find(tid), nullptr) << "not live yet";
  table_->free(t);
  EXPECT_EQ(table_->find(tid), nullptr) << "never lived";
}

TEST_F(ThreadTableTest, RandomComingAndGoing) {
  for (uint64_t seed : seeds(5)) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    table_ = std::make_unique<ThreadTable>();
    std::vector<Thread*> alive;
    std::set<int32_t> ids;
    uint32_t highest = 0, most = 0;
    for (int i = 0; i < 20'000; ++i) {
      if (alive.empty() || random.below(100) < (i / 4000 % 2 ? 42u : 55u)) {
        Thread* t = start();
        ASSERT_NE(t, nullptr);
        ASSERT_TRUE(ids.insert(t->tid).second) << "two live threads have the id " << t->tid;
        ASSERT_TRUE(t->tid >= first_virtual_tid && t->tid < tid_end) << t->tid;
        alive.push_back(t);
        highest = std::max(highest, t->slot);
        most = std::max(most, static_cast<uint32_t>(alive.size()));
      } else {
        std::swap(alive[random.below(static_cast<uint32_t>(alive.size()))], alive.back());
        Thread* t = alive.back();
        alive.pop_back();
        int32_t tid = t->tid;
        ASSERT_EQ(table_->find(tid), t);
        end(t);
        ids.erase(tid);
        ASSERT_EQ(table_->find(tid), nullptr);
      }
      ASSERT_EQ(table_->live(), alive.size());
    }
    EXPECT_EQ(listed(), alive.size());
    for (Thread* t : alive) EXPECT_EQ(table_->find(t->tid), t);
    EXPECT_LT(highest, (most + 63) / 64 * 64) << "slots are used again before there are more";
  }
}

TEST_F(ThreadTableTest, KeepOnlyLeavesTheSurvivor) {
  std::vector<Thread*> all = start_many(150);
  Thread* survivor = all[77];
  std::vector<int32_t> ids;
  for (Thread* t : all) {
    ids.push_back(t->tid);
    t->state.store(State::waiting, upcall::relaxed);
  }
  survivor->state.store(State::running, upcall::relaxed);
  table_->keep_only(survivor);
  EXPECT_EQ(table_->live(), 1u);
  EXPECT_EQ(listed(), 1u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(table_->find(ids[i]), all[i] == survivor ? survivor : nullptr);
    EXPECT_EQ(all[i]->state.load(upcall::relaxed), all[i] == survivor ? State::running : State::exited);
  }
  std::set<Thread*> again;
  for (int i = 0; i < 149; ++i) {
    Thread* t = start();
    EXPECT_LT(t->slot, 192u) << "the descriptors of the others are free";
    EXPECT_NE(t, survivor);
    again.insert(t);
  }
  EXPECT_EQ(again.size(), 149u);
  EXPECT_EQ(table_->live(), 150u);
}

// fork while another kernel thread is inside the table: the child has the lock taken and nobody to release it.
TEST_F(ThreadTableTest, KeepOnlyBreaksTheLock) {
  std::vector<Thread*> all = start_many(3);
  table_->find_if([&](Thread*) {
    table_->keep_only(all[1]);
    EXPECT_NE(start(), nullptr);  // hangs if the lock is still held
    return true;
  });
  EXPECT_EQ(table_->live(), 2u);
  EXPECT_EQ(table_->find(all[1]->tid), all[1]);
}

}  // namespace

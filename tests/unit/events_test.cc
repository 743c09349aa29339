#include "activation/events.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"

namespace {

using namespace upcall::activation;  // NOLINT

TEST(Events, NumberedCountedAndKept) {
  reset_events();
  EXPECT_EQ(last_event(), 0u);
  deliver(new_event(Upcall::add_processor, 3, 7, 0));
  Event lost = new_event(Upcall::activation_blocked, 3, 7, 9);  // another one has won: never delivered
  deliver(new_event(Upcall::activation_unblocked, 3, 7, 11));
  EXPECT_EQ(lost.sequence, 2u);
  EXPECT_EQ(last_event(), 3u);
  Event e;
  ASSERT_TRUE(read_event(1, &e));
  EXPECT_EQ(e.kind, Upcall::add_processor);
  EXPECT_FALSE(read_event(2, &e));
  EXPECT_FALSE(read_event(4, &e));
  ASSERT_TRUE(read_event(3, &e));
  EXPECT_EQ(e.kind, Upcall::activation_unblocked);
  EXPECT_EQ(e.processor, 3u);
  EXPECT_EQ(e.activation, 7u);
  EXPECT_EQ(e.thread, 11);
  EXPECT_GE(e.time, events_began());
  EXPECT_EQ(upcalls(Upcall::add_processor), 1u);
  EXPECT_EQ(upcalls(Upcall::activation_blocked), 0u);
  EXPECT_EQ(upcalls(Upcall::activation_unblocked), 1u);
}

TEST(Events, TheRingKeepsTheLast) {
  reset_events();
  Event late = new_event(Upcall::add_processor, 0, 0, 0);
  for (uint32_t i = 0; i < 3 * ring_events; ++i) deliver(new_event(Upcall::processor_preempted, 0, i, 1));
  deliver(late);  // counted, but its place is taken by a newer one
  Event e;
  uint32_t kept = 0;
  for (uint64_t n = 1; n <= last_event(); ++n)
    if (read_event(n, &e)) {
      EXPECT_EQ(e.sequence, n);
      EXPECT_EQ(e.activation, n - 2);
      ++kept;
    }
  EXPECT_EQ(kept, ring_events);
  EXPECT_EQ(upcalls(Upcall::add_processor), 1u);
  EXPECT_EQ(upcalls(Upcall::processor_preempted), 3u * ring_events);
  reset_events();
  for (uint64_t n = 1; n <= 3 * ring_events + 1; ++n) EXPECT_FALSE(read_event(n, &e)) << n;
  EXPECT_EQ(upcalls(Upcall::processor_preempted), 0u);
}

TEST(Events, NeverHalfOfTwo) {
  reset_events();
  constexpr uint32_t each = 20'000, writers = 3;
  upcall::atomic<uint32_t> running{writers};
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < writers; ++w)
    threads.emplace_back([&, w] {
      for (uint32_t i = 0; i < each; ++i)
        deliver(new_event(Upcall::activation_blocked, w, i, static_cast<int32_t>(w * each + i)));
      running.fetch_sub(1, upcall::release);
    });
  uint64_t read = 0;
  bool more;
  do {
    more = running.load(upcall::acquire);  // once more after the last has ended
    uint64_t last = last_event();
    Event e;
    for (uint64_t n = last > 64 ? last - 64 : 1; n <= last; ++n)
      if (read_event(n, &e)) {
        ASSERT_EQ(e.sequence, n);
        ASSERT_EQ(e.thread, static_cast<int32_t>(e.processor * each + e.activation));
        ++read;
      }
  } while (more);
  for (auto& t : threads) t.join();
  EXPECT_EQ(last_event(), each * writers);
  EXPECT_EQ(upcalls(Upcall::activation_blocked), each * writers);
  EXPECT_GT(read, 0u);
}

TEST(Histogram, PowersOfTwo) {
  EXPECT_EQ(Histogram::bucket_of(0), 0u);
  EXPECT_EQ(Histogram::bucket_of(1), 0u);
  for (uint32_t b = 1; b < Histogram::buckets; ++b) {
    EXPECT_EQ(Histogram::bucket_of(1ull << b), b);
    EXPECT_EQ(Histogram::bucket_of((1ull << b) - 1), b - 1);
  }
  EXPECT_EQ(Histogram::bucket_of(~0ull), Histogram::buckets - 1);
  Histogram h;
  h.add(1000);
  h.add(1023);
  h.add(1024);
  EXPECT_EQ(h.count[9], 2u);
  EXPECT_EQ(h.count[10], 1u);
}

TEST(Latency, CountsInNanoseconds) {
  reset_events();
  const auto clock = upcall::kernel::now;
  uint64_t before_it = clock(), began = upcall::arch::tsc(), after_it = clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  uint64_t after_least = clock() - after_it;
  uint64_t measured = ns_since(began);
  uint64_t after_most = clock() - before_it;
  EXPECT_GE(measured, after_least - after_least / 100);
  EXPECT_LE(measured, after_most + after_most / 100);
  EXPECT_EQ(ns_since(~0ull), 0u);
}

}  // namespace

// abi: threads=1020
// Five hundred waiters: one broadcast wakes all, single signals wake one each; std::condition_variable waits with and
// without time limits.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "abi.h"

constexpr int kWaiters = 500;
static std::mutex mutex;
static std::condition_variable cond, arrived;
static int waiting, tickets;
static bool go;

static void broadcast() {
  waiting = 0, go = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiters; ++i)
    threads.emplace_back([] {
      std::unique_lock hold(mutex);
      if (++waiting == kWaiters) arrived.notify_one();
      cond.wait(hold, [] { return go; });
      --waiting;
    });
  std::unique_lock hold(mutex);
  arrived.wait(hold, [] { return waiting == kWaiters; });
  go = true;
  cond.notify_all();
  hold.unlock();
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(waiting, 0);
}

static void singly() {
  waiting = tickets = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiters; ++i)
    threads.emplace_back([] {
      std::unique_lock hold(mutex);
      if (++waiting == kWaiters) arrived.notify_one();
      while (tickets == 0) cond.wait(hold);
      --tickets;
    });
  {
    std::unique_lock hold(mutex);
    arrived.wait(hold, [] { return waiting == kWaiters; });
  }
  for (int i = 0; i < kWaiters; ++i) {
    {
      std::lock_guard hold(mutex);
      ++tickets;
    }
    cond.notify_one();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(tickets, 0);
}

static void timed() {
  using namespace std::chrono_literals;
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i)
    threads.emplace_back([i] {
      std::unique_lock hold(mutex);
      const int64_t begin = now_ns();
      CHECK(!cond.wait_for(hold, (5 + i) * 1ms, [] { return false; }));
      CHECK(now_ns() - begin >= (5 + i) * kMs);
      CHECK(cond.wait_until(hold, std::chrono::system_clock::now() - 1s) == std::cv_status::timeout);
    });
  for (std::thread& thread : threads) thread.join();
}

int main() {
  broadcast();
  singly();
  timed();
}

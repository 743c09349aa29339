// abi: threads=30
// C++20's barrier, latch, semaphores, atomic wait, jthread with stop tokens, shared_mutex.
#include <barrier>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>

#include "abi.h"

static void barrier_and_latch() {
  std::atomic<int> rounds{0};
  const auto on_completion = [&rounds]() noexcept { ++rounds; };
  std::barrier barrier(6, on_completion);
  std::latch latch(6);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        CHECK(rounds >= round);
        barrier.arrive_and_wait();
      }
      latch.count_down();
    });
  latch.wait();
  CHECK_EQ(rounds, 200);
}

static void atomic_wait() {
  std::atomic<int> ball{0};
  std::vector<std::jthread> threads;
  for (int me = 0; me < 4; ++me)
    threads.emplace_back([&ball, me] {
      for (int round = 0; round < 300; ++round) {
        int now;
        while ((now = ball.load()) % 4 != me) ball.wait(now);
        ball.store(now + 1);
        ball.notify_all();
      }
    });
  threads.clear();
  CHECK_EQ(ball, 1200);
}

static void semaphores() {
  std::counting_semaphore<3> slots(3);
  std::atomic<int> inside{0}, passes{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 10; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        slots.acquire();
        CHECK(++inside <= 3);
        ++passes;
        --inside;
        slots.release();
      }
    });
  threads.clear();
  CHECK_EQ(passes, 1000);
  std::binary_semaphore never(0);
  CHECK(!never.try_acquire_for(std::chrono::milliseconds(10)));
}

static void stop_tokens() {
  std::mutex mutex;
  std::condition_variable_any cond;
  std::atomic<int> stopped{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i)
    threads.emplace_back([&](std::stop_token token) {
      std::unique_lock hold(mutex);
      CHECK(!cond.wait(hold, token, [] { return false; }));
      ++stopped;
    });
  settle();
  threads.clear();
  CHECK_EQ(stopped, 5);
}

static void shared() {
  std::shared_mutex mutex;
  int value = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        if ((round + i) % 4 == 0) {
          std::unique_lock hold(mutex);
          ++value;
        } else {
          std::shared_lock hold(mutex);
          CHECK(value >= 0);
        }
      }
    });
  threads.clear();
  CHECK_EQ(value, 300);
}

int main() {
  barrier_and_latch();
  atomic_wait();
  semaphores();
  stop_tokens();
  shared();
}

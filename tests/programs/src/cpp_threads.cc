// A C++ program that uses threads as if they cost nothing, and checks its own results: 10,000 std::thread
// alive at once, 10,000 std::async, hand-offs through mutex and condition variable, thread-local objects,
// exceptions through futures, and creation and joining one after the other.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 10000;
int failures = 0;

void expect(const char* what, long got, long want) {
  if (got == want) {
    std::printf("%s %ld\n", what, got);
  } else {
    std::printf("WRONG %s: %ld instead of %ld\n", what, got, want);
    ++failures;
  }
}

std::atomic<long> objects_destroyed{0};

struct Local {
  long value = 0;
  ~Local() { objects_destroyed += value != 0; }
};
thread_local Local local;

// All threads are alive before one may go on, and each leaves its number.
void all_at_once() {
  std::mutex mutex;
  std::condition_variable everybody, go;
  int arrived = 0;
  bool open = false;
  long sum = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      local.value = i + 1;
      std::unique_lock lock(mutex);
      if (++arrived == kThreads) everybody.notify_one();
      go.wait(lock, [&] { return open; });
      sum += local.value;
    });
  }
  {
    std::unique_lock lock(mutex);
    everybody.wait(lock, [&] { return arrived == kThreads; });
    open = true;
  }
  go.notify_all();
  for (auto& thread : threads) thread.join();
  expect("threads alive at once", arrived, kThreads);
  expect("sum of thread-local numbers", sum, static_cast<long>(kThreads) * (kThreads + 1) / 2);
  expect("thread-local objects destroyed", objects_destroyed.load(), kThreads);
}

void futures() {
  constexpr int kWave = 500;
  long sum = 0, thrown = 0;
  for (int wave = 0; wave < kThreads / kWave; ++wave) {
    std::vector<std::future<long>> results;
    for (int i = 0; i < kWave; ++i) {
      const long n = wave * kWave + i;
      results.push_back(std::async(std::launch::async, [n] {
        if (n % 100 == 99) throw std::runtime_error(std::to_string(n));
        std::vector<long> numbers(64);
        std::iota(numbers.begin(), numbers.end(), n);
        return std::accumulate(numbers.begin(), numbers.end(), 0L);
      }));
    }
    for (auto& result : results) {
      try {
        sum += result.get();
      } catch (const std::runtime_error& error) {
        sum += std::stol(error.what()), ++thrown;
      }
    }
  }
  long want = 0;
  for (long n = 0; n < kThreads; ++n) want += n % 100 == 99 ? n : 64 * n + 63 * 64 / 2;
  expect("sum of futures", sum, want);
  expect("exceptions through futures", thrown, kThreads / 100);
}

// Two threads take turns: neither may run twice in a row.
void turns() {
  constexpr long kTurns = 20000;
  std::mutex mutex;
  std::condition_variable changed;
  long turn = 0, wrong = 0;
  auto player = [&](long me) {
    for (long i = 0; i < kTurns; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn % 2 == me; });
      wrong += turn != 2 * i + me;
      ++turn;
      changed.notify_all();
    }
  };
  std::thread even(player, 0), odd(player, 1);
  even.join();
  odd.join();
  expect("turns", turn, 2 * kTurns);
  expect("turns out of order", wrong, 0);
}

void one_after_the_other() {
  long sum = 0;
  for (int i = 0; i < kThreads; ++i) std::thread([&sum, i] { sum += i; }).join();
  expect("sum of joined threads", sum, static_cast<long>(kThreads) * (kThreads - 1) / 2);
}

}  // namespace

int main() {
  all_at_once();
  futures();
  turns();
  one_after_the_other();
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

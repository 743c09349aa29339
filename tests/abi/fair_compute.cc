// abi: threads=6
// Threads that only compute all get on: after the same time none has less than a fifth of another's share.
#include <algorithm>

#include "abi.h"

int main() {
  constexpr int kThreads = 6;
  static std::atomic<bool> go{false}, stop{false};
  static struct alignas(64) { volatile uint64_t value; } counts[kThreads];
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start([i] {
      while (!go) sched_yield();
      while (!stop.load(std::memory_order_relaxed)) counts[i].value = counts[i].value + 1;
    }));
  go = true;
  nap(900 * kMs);
  stop = true;
  join_all(threads);
  uint64_t least = ~uint64_t{0}, most = 0;
  for (const auto& count : counts) {
    least = std::min(least, uint64_t{count.value});
    most = std::max(most, uint64_t{count.value});
  }
  if (least * 5 < most) FAIL("shares from %llu to %llu", (unsigned long long)least, (unsigned long long)most);
}

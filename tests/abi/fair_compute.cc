// abi: threads=6
// Threads that only compute all get on: after the same time none has less than a fifth of another's share. Other programs
// on one of the CPUs take from the threads there: only a difference that shows every time is ours.
#include <algorithm>

#include "abi.h"

constexpr int kThreads = 6;

static bool measure(uint64_t* least, uint64_t* most) {
  static std::atomic<bool> go, stop;
  static struct alignas(64) { volatile uint64_t value; } counts[kThreads];
  go = stop = false;
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i) {
    counts[i].value = 0;
    threads.push_back(start([i] {
      while (!go) sched_yield();
      while (!stop.load(std::memory_order_relaxed)) counts[i].value = counts[i].value + 1;
    }));
  }
  go = true;
  nap(900 * kMs);
  stop = true;
  join_all(threads);
  *least = ~uint64_t{0}, *most = 0;
  for (const auto& count : counts) {
    *least = std::min(*least, uint64_t{count.value});
    *most = std::max(*most, uint64_t{count.value});
  }
  return *least * 5 >= *most;
}

int main() {
  uint64_t least = 0, most = 0;
  for (int tries = 0; tries < 6; ++tries)
    if (measure(&least, &most)) return 0;
  FAIL("shares from %llu to %llu", (unsigned long long)least, (unsigned long long)most);
}

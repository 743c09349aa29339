// abi: threads=8
// sched_yield lets the others run: of threads that only yield, none starves, and a waker gets through the crowd.
#include <sched.h>
#include <algorithm>

#include "abi.h"

int main() {
  constexpr int kThreads = 8;
  static std::atomic<bool> go{false}, stop{false};
  static std::atomic<int64_t> counts[kThreads];
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start([i] {
      while (!go) sched_yield();
      while (!stop) {
        CHECK_EQ(sched_yield(), 0);
        ++counts[i];
      }
    }));
  go = true;
  nap(300 * kMs);  // the sleeper must come through all those yields
  stop = true;
  join_all(threads);
  int64_t least = counts[0], most = counts[0];
  for (const auto& count : counts) {
    least = std::min<int64_t>(least, count);
    most = std::max<int64_t>(most, count);
  }
  CHECK(least > 10);
  if (least * 20 < most) FAIL("yields from %lld to %lld", (long long)least, (long long)most);
}

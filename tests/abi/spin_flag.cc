// abi: threads=5
// A thread that spins on a flag without a call of any kind hangs no program: the setter gets its turn.
#include "abi.h"

int main() {
  static std::atomic<int> flag{0};
  std::vector<pthread_t> spinners;
  for (int i = 0; i < 4; ++i)
    spinners.push_back(start([i] {
      while (flag.load(std::memory_order_relaxed) <= i) {
      }
    }));
  const pthread_t setter = start([] {
    for (int i = 1; i <= 4; ++i) {
      burn(5 * kMs);
      flag = i;
    }
  });
  while (flag.load(std::memory_order_relaxed) < 4) {
  }
  join_all(spinners);
  join(setter);
}

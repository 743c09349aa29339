// abi: threads=301 upcalls=100 descriptors=calls
// 300 threads blocked in read at once, each on a pipe of its own; the writer is a thread like them.
#include "abi.h"

int main() {
  constexpr int kReaders = 300;
  static int ends[kReaders][2];
  static std::atomic<int> entered{0}, sum{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < kReaders; ++i) {
    CHECK_EQ(pipe(ends[i]), 0);
    threads.push_back(start([i] {
      ++entered;
      int value = 0;
      CHECK_EQ(read(ends[i][0], &value, sizeof value), sizeof value);
      CHECK_EQ(value, i);
      sum += value;
    }));
  }
  while (entered < kReaders) nap(kMs);
  settle();
  CHECK_EQ(sum, 0);
  join(start([] {
    for (int i = kReaders - 1; i >= 0; --i) CHECK_EQ(write(ends[i][1], &i, sizeof i), sizeof i);
  }));
  join_all(threads);
  CHECK_EQ(sum, kReaders * (kReaders - 1) / 2);
}

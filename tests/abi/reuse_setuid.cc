// abi: threads=500 reused=100
// setuid, for which glibc signals every thread and waits for all of them, returns while threads end and begin.
#include "abi.h"

int main() {
  join(start([] {}));
  std::atomic<bool> stop{false};
  std::vector<pthread_t> makers;
  for (int i = 0; i < 2; ++i)
    makers.push_back(start([&] {
      while (!stop) join(start([] {}));
    }));
  const int64_t end = now_ns() + kSecond;
  for (int i = 1; now_ns() < end; ++i) {
    CHECK_EQ(setuid(getuid()), 0);
    if (i % 64 == 0) nap(kMs / 10);
  }
  stop = true;
  join_all(makers);
}

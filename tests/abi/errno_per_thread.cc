// abi: threads=20
// errno belongs to the thread, across switches and preemption.
#include <fcntl.h>

#include "abi.h"

int main() {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 20; ++i)
    threads.push_back(start([i] {
      for (int round = 0; round < 100; ++round) {
        if (i % 2 == 0)
          CHECK_EQ(close(-1), -1);
        else
          CHECK_EQ(open("/nonexistent/file", O_RDONLY), -1);
        const int expected = i % 2 == 0 ? EBADF : ENOENT;
        burn(10'000);
        CHECK_EQ(errno, expected);
        sched_yield();
        CHECK_EQ(errno, expected);
      }
    }));
  join_all(threads);
}

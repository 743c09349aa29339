// abi: threads=60
// fork while other threads are made, end, are joined, detached and cancelled: the child is whole (POSIX fork), and its own
// threads can be made with the stacks and lists that its parent's were in the middle of changing.
#include "process.h"

int main() {
  std::atomic<bool> stop{false};
  std::vector<pthread_t> busy;
  for (int i = 0; i < 3; ++i)
    busy.push_back(start([&stop, i] {
      for (int n = 0; !stop || n < 20; ++n) {
        const pthread_t other = start([i] {
          if (i == 2) nap(kSecond);
        });
        if (i == 1) {
          pthread_detach(other);
          nap(100'000);
          continue;
        }
        if (i == 2) pthread_cancel(other);
        join(other);
      }
    }));
  for (int round = 0; round < 12; ++round)
    run_child([] {
      CHECK_EQ(kernel_threads(), 1);
      for (int i = 0; i < 3; ++i) use_threads(3);
      const pthread_t cancelled = start([] { nap(1000 * kSecond); });
      pthread_cancel(cancelled);
      CHECK(join(cancelled) == PTHREAD_CANCELED);
      pthread_attr_t large;
      pthread_attr_init(&large);
      pthread_attr_setstacksize(&large, 3u << 20);
      join(start([] {}, &large));
    });
  stop = true;
  join_all(busy);
}

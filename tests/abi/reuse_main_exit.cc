// abi: threads=60 stdout=left
// main leaves by pthread_exit while threads have finished, joined and not; the last thread's end is the process's,
// with exit handlers and status 0.
#include "abi.h"

static pthread_t unjoined;

int main() {
  atexit([] { printf("left\n"); });
  for (int i = 0; i < 40; ++i) join(start([] {}));
  for (int i = 0; i < 10; ++i) start([] {});
  std::atomic<bool> done{false};
  unjoined = start([&done] { done = true; });
  while (!done) sched_yield();
  nap(kMs);
  pthread_detach(start([] {
    nap(20 * kMs);
    CHECK_EQ(pthread_join(unjoined, nullptr), 0);
    for (int i = 0; i < 10; ++i) join(start([] {}));
    start([] { nap(5 * kMs); });
  }));
  pthread_exit(nullptr);
}

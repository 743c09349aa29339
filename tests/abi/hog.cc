// abi: threads=4 timeout=60
// Other programs compute on every CPU at the same nice value: a thread that blocks, in a call or unseen, still gives its
// processor to one that computes, within a second.
#include "mixed.h"

static void compute_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  for (;;) burn(kSecond);
}

int main() {
  cpu_set_t all;
  CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  std::vector<pid_t> hogs;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) hogs.push_back(start_beside([cpu](pid_t) { compute_on(cpu); }));
  nap(20 * kMs);
  for (bool unseen : {false, true}) {
    const int64_t waited = longest_takeover(20, unseen);
    dprintf(2, "beside %zu hogs, blocked %s: %.1f ms at most until the other thread computed\n", hogs.size(),
            unseen ? "unseen" : "in a call", static_cast<double>(waited) / 1e6);
    CHECK(waited < kSecond);
  }
  for (pid_t hog : hogs) end_beside(hog);
}

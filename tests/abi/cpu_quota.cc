// abi: threads=12 timeout=60
// A control group stops all kernel threads of the program for most of the time (a quota of 30 % of one CPU): its threads
// block, wait and compute as ever, only later.
#include "cgroup.h"
#include "mixed.h"

int main() {
  ControlGroup group("cpu");
  if (group.version2()) {
    group.set("cpu.max", "15000 50000");
  } else {
    group.set("cpu.cfs_period_us", "50000");
    group.set("cpu.cfs_quota_us", "15000");
  }
  group.enter();
  mixed_work();
  for (bool unseen : {false, true}) {
    const int64_t waited = longest_takeover(10, unseen);
    dprintf(2, "blocked %s: %.1f ms at most until the other thread computed\n",
            unseen ? "unseen" : "in a call", static_cast<double>(waited) / 1e6);
    CHECK(waited < kSecond);
  }
}

// abi: threads=4 events=bpf plain=skip counters=bpf_loaded:1-1,detached_by_sentinel:0-0,detached_by_monitor:0-0,detached_by_bpf:0-0
// Threads that compute beside other processes that compute are preempted often and block never: none loses its processor.
#include <sys/resource.h>

#include "bpf.h"
#include "hogs.h"

int main() {
  need_events();
  const std::vector<pid_t> hogs = start_hogs();
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start([] { burn(300 * kMs * time_factor()); }));
  join_all(threads);
  // The case that is meant has happened; whether the sentinel has had the CPU to see it is luck.
  rusage used;
  CHECK_EQ(getrusage(RUSAGE_SELF, &used), 0);
  CHECK(used.ru_nivcsw >= 10);
  end_hogs(hogs);
}

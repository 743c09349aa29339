// abi: threads=4 events=bpf plain=skip counters=bpf_loaded:1-1,detached_by_sentinel:0-0,detached_by_monitor:0-0,detached_by_bpf:0-0
// Threads that compute beside other processes that compute are preempted often and block never: none loses its processor.
#include <sys/prctl.h>
#include <sys/resource.h>

#include "bpf.h"

int main() {
  need_events();
  std::vector<pid_t> hogs;
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 0; i < cpus; ++i) {
    hogs.push_back(fork());
    CHECK(hogs.back() >= 0);
    if (hogs.back() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) burn(kSecond);
    }
  }
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start([] { burn(300 * kMs * time_factor()); }));
  join_all(threads);
  // The case that is meant has happened; whether the sentinel has had the CPU to see it is luck.
  rusage used;
  CHECK_EQ(getrusage(RUSAGE_SELF, &used), 0);
  CHECK(used.ru_nivcsw >= 10);
  for (const pid_t hog : hogs) {
    CHECK_EQ(kill(hog, SIGKILL), 0);
    CHECK_EQ(waitpid(hog, nullptr, 0), hog);
  }
}

// abi: threads=6
// getrusage(2), times(2), wait4(2): what a child and its threads have used counts among its parent's children once it was waited
// for, not before, whichever thread waits; a child's own begin at nothing.
#include <sys/resource.h>
#include <sys/times.h>

#include "process.h"

namespace {

int64_t used(const rusage& usage) {
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * kSecond +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

int64_t childrens() {
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
  return used(usage);
}

}  // namespace

int main() {
  Crowd crowd;
  const int64_t before = childrens();
  const pid_t child = start_child([] {
    std::vector<pthread_t> threads;
    for (int i = 0; i < 3; ++i)
      threads.push_back(start([] {
        while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < 15 * kMs) burn(kMs / 2);
      }));
    join_all(threads);
    run_child([] {
      while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < 15 * kMs) burn(kMs / 2);
    });
  });
  siginfo_t info;
  CHECK_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  CHECK_EQ(childrens(), before);
  join(start([&] {
    rusage usage = {};
    int status = 0;
    CHECK_EQ(wait4(child, &status, 0, &usage), child);
    CHECK_EQ(status, 0);
    CHECK(used(usage) >= 25 * kMs);  // with its own child's; the kernel rounds
  }));
  CHECK(childrens() - before >= 25 * kMs);
  tms now;
  times(&now);
  CHECK(now.tms_cutime + now.tms_cstime >= 2);
  run_child([] { CHECK_EQ(childrens(), 0); });
  crowd.end();
}

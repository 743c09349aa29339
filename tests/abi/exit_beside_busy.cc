// abi: threads=4
// A process with threads has ended soon after its exit, also where other processes keep all CPUs busy: as soon, nearly, as
// one that has only run for itself.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

#include "hogs.h"

namespace {

// Threads that compute, and one that wants its processor now and then.
void use_threads() {
  std::vector<pthread_t> threads;
  std::atomic<bool> stop{false};
  for (int i = 0; i < 3; ++i)
    threads.push_back(start([&] {
      while (!stop) burn(100'000);
    }));
  for (int i = 0; i < 5; ++i) {
    nap(kMs);
    threads.push_back(start([] { sched_yield(); }));
  }
  stop = true;
  join_all(threads);
}

// Nanoseconds from the exit of a child to the end of waitpid for it, the median of some.
int64_t exit_time(bool with_threads) {
  std::vector<int64_t> times;
  for (int i = 0; i < 9; ++i) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      if (with_threads) use_threads();
      const int64_t now = now_ns();
      CHECK_EQ(write(ends[1], &now, sizeof now), sizeof now);
      _exit(0);
    }
    int64_t left = 0;
    CHECK_EQ(read(ends[0], &left, sizeof left), sizeof left);
    CHECK_EQ(waitpid(child, nullptr, 0), child);
    times.push_back(now_ns() - left);
    close(ends[0]), close(ends[1]);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  rlimit nice;
  CHECK_EQ(getrlimit(RLIMIT_NICE, &nice), 0);
  if (geteuid() != 0 && nice.rlim_cur < 20) skip("this user may not raise the class of a kernel thread");
  const std::vector<pid_t> hogs = start_hogs();
  use_threads();
  int64_t alone = 0, crowd = 0;
  bool soon = false;
  for (int tries = 0; tries < 3 && !soon; ++tries) {  // others may keep the CPUs busy, too
    alone = exit_time(false);
    crowd = exit_time(true);
    soon = crowd <= 4 * alone + 40 * kMs;
  }
  end_hogs(hogs);
  if (!soon)
    FAIL("%.1f ms with threads, %.1f ms without", static_cast<double>(crowd) / 1e6,
         static_cast<double>(alone) / 1e6);
}

// abi: threads=4
// --share threads: four threads that compute beside another program have about four fifths of the CPU, as kernel threads
// have, where the system allows it (one line says so where not); children start with the program's own nice value.
#include <spawn.h>
#include <sys/resource.h>

#include "mixed.h"

extern char** environ;

static double share_of_four() {
  const pid_t hog = start_beside([](pid_t) {
    for (;;) burn(kSecond);
  });
  clockid_t clock;
  CHECK_EQ(clock_getcpuclockid(hog, &clock), 0);
  std::atomic<bool> stop{false};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i)
    threads.push_back(start([&] {
      while (!stop) burn(kMs);
    }));
  nap(200 * kMs);
  const int64_t other = now_ns(clock), own = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  nap(1500 * kMs);
  const double others = static_cast<double>(now_ns(clock) - other);
  const double ours = static_cast<double>(now_ns(CLOCK_PROCESS_CPUTIME_ID) - own);
  // While they weigh more.
  const int nice_value = getpriority(PRIO_PROCESS, 0);
  const std::string check = "test $(nice) = " + std::to_string(nice_value);
  const char* words[] = {"sh", "-c", check.c_str(), nullptr};
  for (int i = 0; i < 5; ++i) {
    pid_t child;
    CHECK_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(words), environ), 0);
    wait_exit(child, 0);
    const pid_t forked = fork();
    CHECK(forked >= 0);
    if (forked == 0) _exit(getpriority(PRIO_PROCESS, 0) == nice_value ? 6 : 1);
    wait_exit(forked, 6);
    nap(5 * kMs);
  }
  stop = true;
  join_all(threads);
  end_beside(hog);
  return ours / (ours + others);
}

int main() {
  if (on_upcall() && !getenv("UPCALL_SHARE")) {
    CHECK_EQ(setenv("UPCALL_SHARE", "threads", 1), 0);
    execl("/proc/self/exe", "share_threads", nullptr);
    FAIL("exec: errno %d", errno);
  }
  // All on one CPU, also where Upcall was told to use two processors.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_NICE, &limit), 0);
  const bool allowed = geteuid() == 0 || limit.rlim_cur >= 27;
  double share = 0;
  const int warnings = lines_with("may not raise its weight", [&] { share = share_of_four(); });
  dprintf(2, "share of four threads beside one: %.0f %%\n", 100 * share);
  CHECK_EQ(warnings, on_upcall() && !allowed ? 1 : 0);
  if (allowed || !on_upcall()) CHECK(share > 0.65 && share < 0.95);
}

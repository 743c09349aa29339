// abi: threads=2
// Process CPU time and getrusage grow with computing; a thread's own CPU clock grows while it computes, hardly
// while it sleeps, and never runs backwards, though it moves between processors.
#include <sys/resource.h>

#include "abi.h"

static int64_t user_ns() {
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * kSecond +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

int main() {
  const int64_t begin = user_ns(), process_begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  join(start([] {
    const int64_t end = now_ns(CLOCK_PROCESS_CPUTIME_ID) + 100 * kMs;
    while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < end) burn(kMs);
  }));
  CHECK(now_ns(CLOCK_PROCESS_CPUTIME_ID) - process_begin >= 100 * kMs);
  CHECK(user_ns() - begin >= 60 * kMs);
  std::atomic<bool> stop{false};
  const pthread_t other = start([&stop] {
    while (!stop) burn(kMs);
  });
  join(start([] {
    const int64_t first = now_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t last = first;
    for (int i = 0; i < 50; ++i) {
      burn(2 * kMs);
      sched_yield();
      const int64_t now = now_ns(CLOCK_THREAD_CPUTIME_ID);
      CHECK(now >= last);
      last = now;
    }
    CHECK(last - first >= 10 * kMs);
    nap(150 * kMs);
    const int64_t slept = now_ns(CLOCK_THREAD_CPUTIME_ID) - last;
    if (slept > 75 * kMs) FAIL("%lld ns of CPU time while asleep", (long long)slept);
    clockid_t clock;
    CHECK_EQ(pthread_getcpuclockid(pthread_self(), &clock), 0);
    CHECK(now_ns(clock) >= last);
    rusage usage;
    CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  }));
  stop = true;
  join(other);
}

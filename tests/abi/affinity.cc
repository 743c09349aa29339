// abi: threads=4
// The affinity that the program sees is the one it was started with, in main and in threads; sched_getcpu names a
// CPU of it.
#include <sched.h>

#include "abi.h"

static void check(const cpu_set_t& original) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  CHECK(CPU_EQUAL(&set, &original));
  CPU_ZERO(&set);
  CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
  CHECK(CPU_EQUAL(&set, &original));
  CPU_ZERO(&set);
  CHECK_EQ(sched_getaffinity(gettid(), sizeof set, &set), 0);
  CHECK(CPU_EQUAL(&set, &original));
  for (int i = 0; i < 20; ++i) {
    const int cpu = sched_getcpu();
    CHECK(cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &original));
    sched_yield();
  }
}

int main() {
  cpu_set_t original;
  CPU_ZERO(&original);
  CHECK_EQ(sched_getaffinity(getpid(), sizeof original, &original), 0);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &original)) printf("%d\n", i);
  printf("%ld\n", sysconf(_SC_NPROCESSORS_ONLN));
  check(original);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start([&original] { check(original); }));
  join_all(threads);
  const pid_t child = fork();
  if (child == 0) {
    check(original);
    _exit(0);
  }
  wait_exit(child, 0);
}

// How a program's threads share a CPU with another program.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

enum { COMPUTING = 4 };

static atomic_bool stop;

static void* compute(void* argument) {
  while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
  }
  return argument;
}

static double cpu_ns(clockid_t clock) {
  struct timespec t;
  EXPECT(clock_gettime(clock, &t) == 0, "clock_gettime of another process");
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Four threads compute beside a process with one that does, at the same nice value: what they have of the CPU time of both.
struct result fair_share(const struct options* options) {
  pid_t hog = fork();
  if (hog == 0) {
    pid_t parent = getppid();
    for (uint64_t i = 0;; ++i)
      if (i % (1u << 24) == 0 && getppid() != parent) _exit(0);
  }
  EXPECT(hog > 0, "fork");
  clockid_t others;
  EXPECT(clock_getcpuclockid(hog, &others) == 0, "clock_getcpuclockid");
  pthread_t threads[COMPUTING];
  for (int i = 0; i < COMPUTING; ++i) threads[i] = start_thread(compute, NULL);
  // The kernel, and --share threads, have some time to notice.
  struct timespec pause = {0, 200000000};
  nanosleep(&pause, NULL);
  double own = -cpu_ns(CLOCK_PROCESS_CPUTIME_ID), other = -cpu_ns(others);
  uint64_t length = duration(options);
  struct timespec span = {(time_t)(length / 1000000000), (long)(length % 1000000000)};
  nanosleep(&span, NULL);
  own += cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  other += cpu_ns(others);
  atomic_store(&stop, true);
  for (int i = 0; i < COMPUTING; ++i) join_thread(threads[i]);
  kill(hog, SIGKILL);
  EXPECT(waitpid(hog, NULL, 0) == hog, "waitpid");
  return (struct result){.value = 100 * own / (own + other), .count = COMPUTING};
}

// The same with `upcall run --share threads`, which is read when the runtime is loaded.
struct result fair_share_threads(const struct options* options) {
  if (getenv("UPCALL_SHARE") == NULL) {
    setenv("UPCALL_SHARE", "threads", 1);
    execv("/proc/self/exe", worker_arguments);
    EXPECT(false, "exec");
  }
  return fair_share(options);
}

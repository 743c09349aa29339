// abi: threads=12 timeout=30
// A program that is itself SCHED_FIFO, on one CPU: whoever computes keeps that CPU from all that is not real-time, and still
// blocked threads give their processor to others, sleepers of equal priority have their turn, and a signal of the process is
// handled while the only thread that may handle it computes.
#include <sys/time.h>

#include "mixed.h"

static std::atomic<int> alarms{0};

int main() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  sched_param param = {};
  param.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) skip("no permission to use real-time priorities");
  mixed_work();
  for (bool unseen : {false, true}) CHECK(longest_takeover(10, unseen) < kSecond);
  install(SIGALRM, [](int) { ++alarms; });
  const itimerval timer = {{0, 20'000}, {0, 20'000}};
  CHECK_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
  const int64_t begin = now_ns();
  while (alarms < 5) burn(kMs);
  CHECK(now_ns() - begin < kSecond);
  const itimerval off = {};
  CHECK_EQ(setitimer(ITIMER_REAL, &off, nullptr), 0);
  CHECK_EQ(sched_getscheduler(0), SCHED_FIFO);
  // So are its children, to the kernel's knowledge.
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(sched_getscheduler(0) == SCHED_FIFO ? 7 : 1);
  wait_exit(child, 7);
}

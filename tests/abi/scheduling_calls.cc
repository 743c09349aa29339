// abi: threads=3
// Scheduling parameters of plain threads: SCHED_OTHER is what they have, what the kernel refuses is refused,
// explicit inheritance works, nice can be read.
#include <sched.h>
#include <sys/resource.h>

#include "abi.h"

static void check() {
  int policy = -1;
  sched_param parameter = {};
  CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &parameter), 0);
  CHECK_EQ(policy, SCHED_OTHER);
  CHECK_EQ(parameter.sched_priority, 0);
  CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
  CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameter), 0);
  parameter.sched_priority = 5;
  CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameter), EINVAL);
  CHECK_EQ(pthread_setschedparam(pthread_self(), 999, &parameter), EINVAL);
  errno = 0;
  const int nice_value = getpriority(PRIO_PROCESS, 0);
  CHECK_EQ(errno, 0);
  CHECK(nice_value >= -20 && nice_value < 20);
  CHECK_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())), nice_value);
}

int main() {
  check();
  join(start(check));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  sched_param parameter = {};
  CHECK_EQ(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED), 0);
  CHECK_EQ(pthread_attr_setschedpolicy(&attributes, SCHED_OTHER), 0);
  CHECK_EQ(pthread_attr_setschedparam(&attributes, &parameter), 0);
  join(start(check, &attributes));
  const pthread_t other = start([] { nap(30 * kMs); });
  int policy = -1;
  CHECK_EQ(pthread_getschedparam(other, &policy, &parameter), 0);
  CHECK_EQ(policy, SCHED_OTHER);
  join(other);
}

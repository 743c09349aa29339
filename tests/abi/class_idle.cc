// abi: threads=12 timeout=60
// A program that is itself SCHED_IDLE: no sentinel can be below it. Its threads block, wait and compute as ever.
#include "mixed.h"

int main() {
  const sched_param none = {};
  CHECK_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
  mixed_work();
  for (bool unseen : {false, true}) CHECK(longest_takeover(10, unseen) < kSecond);
  CHECK_EQ(sched_getscheduler(0), SCHED_IDLE);
  join(start([] { CHECK_EQ(sched_getscheduler(0), SCHED_IDLE); }));
}

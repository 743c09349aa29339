// abi: threads=2
// A waiter that was moved to another word still times out, and leaves no trace in either queue.
#include <limits.h>

#include "abi.h"

static uint32_t first = 0, second = 0;

int main() {
  const pthread_t timed = start([] {
    const timespec timeout = to_timespec(80 * kMs);
    CHECK_ERRNO(futex(&first, FUTEX_WAIT_PRIVATE, 0, &timeout), ETIMEDOUT);
  });
  const pthread_t patient = start([] { CHECK_EQ(futex(&first, FUTEX_WAIT_PRIVATE, 0), 0); });
  settle();
  CHECK_EQ(futex(&first, FUTEX_REQUEUE_PRIVATE, 0, reinterpret_cast<void*>(uintptr_t{INT_MAX}), &second), 2);
  join(timed);
  CHECK_EQ(futex(&first, FUTEX_WAKE_PRIVATE, INT_MAX), 0);
  CHECK_EQ(futex(&second, FUTEX_WAKE_PRIVATE, INT_MAX), 1);
  join(patient);
}

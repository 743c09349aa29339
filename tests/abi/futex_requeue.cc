// abi: threads=16
// REQUEUE and CMP_REQUEUE: how many are woken, how many moved, that the moved wait at the other word, EAGAIN.
#include <limits.h>

#include "abi.h"

static uint32_t first = 0, second = 0;
static std::atomic<int> woken{0};

static const void* number(uintptr_t value) { return reinterpret_cast<const void*>(value); }

static void run(bool compare) {
  std::vector<pthread_t> threads;
  woken = 0;
  for (int i = 0; i < 8; ++i)
    threads.push_back(start([] {
      CHECK_EQ(futex(&first, FUTEX_WAIT_PRIVATE, 0), 0);
      ++woken;
    }));
  settle();
  if (compare) {
    CHECK_ERRNO(futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 1, number(INT_MAX), &second, 99), EAGAIN);
    CHECK_EQ(futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 2, number(3), &second, 0), 5);
  } else {
    CHECK_EQ(futex(&first, FUTEX_REQUEUE_PRIVATE, 2, number(3), &second), 5);
  }
  for (int i = 0; i < 5000 && woken < 2; ++i) nap(kMs);
  settle();
  CHECK_EQ(woken, 2);
  CHECK_EQ(futex(&first, FUTEX_WAKE_PRIVATE, INT_MAX), 3);
  for (int i = 0; i < 5000 && woken < 5; ++i) nap(kMs);
  settle();
  CHECK_EQ(woken, 5);
  CHECK_EQ(futex(&first, FUTEX_WAKE_PRIVATE, INT_MAX), 0);
  CHECK_EQ(futex(&second, FUTEX_WAKE_PRIVATE, 1), 1);
  CHECK_EQ(futex(&second, FUTEX_WAKE_PRIVATE, INT_MAX), 2);
  join_all(threads);
}

int main() {
  run(false);
  run(true);
}

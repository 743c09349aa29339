// abi: threads=6
// futex(2), signal(7): FUTEX_WAIT without a time-out is restarted after a handler with SA_RESTART; with one the kernel
// ends it with EINTR, as nanosleep. Private and shared words, FUTEX_WAIT and FUTEX_WAIT_BITSET.
#include "interrupt.h"

static uint32_t word = 0;
static const timespec minutes = {1000, 0};

static long wait_once(int operation, const timespec* time) {
  return with_errno(futex(&word, operation, 0, time, nullptr, FUTEX_BITSET_MATCH_ANY));
}

static void wake_private() {
  while (futex(&word, FUTEX_WAKE_PRIVATE, 1) == 0) nap(kMs / 4);
}
static void wake_shared() {
  while (futex(&word, FUTEX_WAKE, 1) == 0) nap(kMs / 4);
}

int main() {
  const timespec late = after_ns(1000 * kSecond);
  try_signals({
      {"wait", [] { return wait_once(FUTEX_WAIT_PRIVATE, nullptr); }, wake_private, 0, Restart::yes},
      {"wait, timed", [] { return wait_once(FUTEX_WAIT_PRIVATE, &minutes); }, wake_private, 0,
       Restart::never},
      {"wait bitset", [] { return wait_once(FUTEX_WAIT_BITSET_PRIVATE, nullptr); }, wake_private, 0,
       Restart::yes},
      {"wait bitset, timed", [&] { return wait_once(FUTEX_WAIT_BITSET_PRIVATE, &late); }, wake_private, 0,
       Restart::never},
      {"shared wait", [] { return wait_once(FUTEX_WAIT, nullptr); }, wake_shared, 0, Restart::yes},
      {"shared wait, timed", [] { return wait_once(FUTEX_WAIT, &minutes); }, wake_shared, 0, Restart::never},
      {"shared wait bitset", [&] { return wait_once(FUTEX_WAIT_BITSET, &late); }, wake_shared, 0,
       Restart::never},
  });
}

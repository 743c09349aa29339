// abi: threads=16
// Joining is a cancellation point (pthread_join(3)): the thread that was to be joined stays joinable, by the next one,
// with its value. pthread_tryjoin_np is none.
#include <threads.h>

#include "cancel.h"

static std::vector<Point> points(pthread_t target) {
  static timespec late, late_monotonic;
  late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  late_monotonic = after_ns(1000 * kSecond);
  return {
      {"pthread_join", [target] { pthread_join(target, nullptr); }},
      {"pthread_timedjoin_np", [target] { pthread_timedjoin_np(target, nullptr, &late); }},
      {"pthread_clockjoin_np",
       [target] { pthread_clockjoin_np(target, nullptr, CLOCK_MONOTONIC, &late_monotonic); }},
      {"thrd_join",
       [target] {
         int result;
         thrd_join(target, &result);
       }},
  };
}

static void* until(void* go) {
  while (!*static_cast<std::atomic<bool>*>(go)) nap(kMs);
  return go;
}

int main() {
  static std::atomic<bool> go;
  // A default thread, and one that ends through glibc.
  for (const bool with_attributes : {false, true}) {
    pthread_attr_t attributes;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    go = false;
    pthread_t target;
    CHECK_EQ(pthread_create(&target, with_attributes ? &attributes : nullptr, until, &go), 0);
    // One at a time: only one thread may join another.
    for (const Point& point : points(target)) {
      cancel_pending({point});
      if (point.name == std::string("pthread_join") || with_attributes) cancel_blocked({point});
    }
    not_cancelled(
        {{"pthread_tryjoin_np", [target] { CHECK_EQ(pthread_tryjoin_np(target, nullptr), EBUSY); }}});
    go = true;
    CHECK(join(target) == &go);
  }
}

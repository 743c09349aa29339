// abi: threads=18
// Sleeping is a cancellation point, whatever function and clock (pthreads(7)); a sleep of no length is one as well.
#include <threads.h>

#include "cancel.h"

static std::vector<Point> points(time_t seconds) {
  const auto clock = [seconds](clockid_t id, int flags) {
    return [seconds, id, flags] {
      timespec t = flags ? after_ns(seconds * kSecond, id) : timespec{seconds, 0};
      clock_nanosleep(id, flags, &t, nullptr);
    };
  };
  return {
      {"sleep", [seconds] { sleep(seconds ? static_cast<unsigned>(seconds) : 1); }},
      {"usleep", [seconds] { usleep(seconds ? 900'000'000 : 0); }},
      {"nanosleep",
       [seconds] {
         const timespec t = {seconds, 0};
         timespec left;
         nanosleep(&t, &left);
       }},
      {"clock_nanosleep, CLOCK_REALTIME", clock(CLOCK_REALTIME, 0)},
      {"clock_nanosleep, CLOCK_REALTIME, absolute", clock(CLOCK_REALTIME, TIMER_ABSTIME)},
      {"clock_nanosleep, CLOCK_MONOTONIC", clock(CLOCK_MONOTONIC, 0)},
      {"clock_nanosleep, CLOCK_MONOTONIC, absolute", clock(CLOCK_MONOTONIC, TIMER_ABSTIME)},
      {"clock_nanosleep, CLOCK_BOOTTIME", clock(CLOCK_BOOTTIME, 0)},
      {"clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID", clock(CLOCK_PROCESS_CPUTIME_ID, 0)},
      {"thrd_sleep",
       [seconds] {
         const timespec t = {seconds, 0};
         thrd_sleep(&t, nullptr);
       }},
  };
}

int main() {
  cancel_pending(points(0));
  cancel_blocked(points(1000));
}

// abi: threads=3
// timedlock (realtime) and clocklock (monotonic, realtime) time out no sooner than asked, and get a freed mutex.
#include "abi.h"

int main() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  join(start([&mutex] {
    int64_t begin = now_ns();
    timespec deadline = after_ns(40 * kMs, CLOCK_REALTIME);
    CHECK_EQ(pthread_mutex_timedlock(&mutex, &deadline), ETIMEDOUT);
    CHECK(now_ns() - begin >= 39 * kMs);
    for (clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
      begin = now_ns();
      deadline = after_ns(40 * kMs, clock);
      CHECK_EQ(pthread_mutex_clocklock(&mutex, clock, &deadline), ETIMEDOUT);
      CHECK(now_ns() - begin >= 39 * kMs);
      CHECK(now_ns() - begin < 5 * kSecond);
    }
    deadline = {-1, 0};
    CHECK_EQ(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &deadline), ETIMEDOUT);
    deadline = {0, kSecond};
    CHECK_EQ(pthread_mutex_timedlock(&mutex, &deadline), EINVAL);
  }));
  const auto waiter = [&mutex](clockid_t clock) {
    const timespec deadline = after_ns(15 * kSecond, clock);
    CHECK_EQ(pthread_mutex_clocklock(&mutex, clock, &deadline), 0);
    nap(kMs);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  };
  const pthread_t a = start([&] { waiter(CLOCK_MONOTONIC); }), b = start([&] { waiter(CLOCK_REALTIME); });
  settle();
  pthread_mutex_unlock(&mutex);
  join(a);
  join(b);
}

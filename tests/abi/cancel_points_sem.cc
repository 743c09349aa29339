// abi: threads=18
// sem_wait, sem_timedwait and sem_clockwait are cancellation points (pthreads(7)), of private and of shared semaphores.
// One that is cancelled has taken nothing, also where it needed not wait, and is no waiter any more.
#include <semaphore.h>

#include "cancel.h"

static std::vector<Point> points(sem_t* s) {
  static timespec late, late_monotonic;
  late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  late_monotonic = after_ns(1000 * kSecond);
  return {
      {"sem_wait", [s] { sem_wait(s); }},
      {"sem_timedwait", [s] { sem_timedwait(s, &late); }},
      {"sem_clockwait", [s] { sem_clockwait(s, CLOCK_MONOTONIC, &late_monotonic); }},
  };
}

static int value(sem_t* s) {
  int n = -1;
  CHECK_EQ(sem_getvalue(s, &n), 0);
  return n;
}

int main() {
  for (const int shared : {0, 1}) {
    sem_t s;
    CHECK_EQ(sem_init(&s, shared, 2), 0);
    // Of sem_clockwait nobody says whether it is one where it needs not wait.
    std::vector<Point> not_waiting = points(&s);
    not_waiting.pop_back();
    cancel_pending(not_waiting);
    CHECK_EQ(value(&s), 2);
    CHECK_EQ(sem_wait(&s), 0);
    CHECK_EQ(sem_wait(&s), 0);
    cancel_pending(points(&s));
    cancel_blocked(points(&s));
    // Each post is for those who still wait.
    CHECK_EQ(sem_post(&s), 0);
    CHECK_EQ(value(&s), 1);
    CHECK_EQ(sem_trywait(&s), 0);
    std::atomic<int> got{0};
    std::vector<pthread_t> rest;
    for (int i = 0; i < 2; ++i)
      rest.push_back(start([&] {
        CHECK_EQ(sem_wait(&s), 0);
        ++got;
      }));
    settle();
    CHECK_EQ(sem_post(&s), 0);
    CHECK_EQ(sem_post(&s), 0);
    join_all(rest);
    CHECK_EQ(got, 2);
    CHECK_EQ(value(&s), 0);
    CHECK_EQ(sem_destroy(&s), 0);
  }
}

// abi: threads=2
// Timed waits of condition variables on both clocks: never early, mutex held again, a signal in time is seen.
#include "abi.h"

static void time_out(pthread_cond_t* cond, clockid_t clock, bool explicit_clock) {
  pthread_mutex_t mutex;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutex_lock(&mutex);
  const timespec deadline = after_ns(30 * kMs, clock);
  int error = 0;
  while (error == 0)
    error = explicit_clock ? pthread_cond_clockwait(cond, &mutex, clock, &deadline)
                           : pthread_cond_timedwait(cond, &mutex, &deadline);
  CHECK_EQ(error, ETIMEDOUT);
  const timespec end = after_ns(0, clock);
  CHECK(end.tv_sec > deadline.tv_sec || (end.tv_sec == deadline.tv_sec && end.tv_nsec >= deadline.tv_nsec));
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

int main() {
  pthread_cond_t realtime = PTHREAD_COND_INITIALIZER, monotonic;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  CHECK_EQ(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
  CHECK_EQ(pthread_cond_init(&monotonic, &attributes), 0);
  const pthread_t other = start([&] {
    time_out(&monotonic, CLOCK_MONOTONIC, false);
    time_out(&realtime, CLOCK_REALTIME, true);
  });
  time_out(&realtime, CLOCK_REALTIME, false);
  time_out(&realtime, CLOCK_MONOTONIC, true);
  join(other);

  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  bool ready = false;
  const pthread_t waiter = start([&] {
    pthread_mutex_lock(&mutex);
    const timespec deadline = after_ns(15 * kSecond);
    while (!ready) CHECK_EQ(pthread_cond_timedwait(&monotonic, &mutex, &deadline), 0);
    pthread_mutex_unlock(&mutex);
  });
  settle();
  pthread_mutex_lock(&mutex);
  ready = true;
  pthread_cond_signal(&monotonic);
  pthread_mutex_unlock(&mutex);
  join(waiter);
}

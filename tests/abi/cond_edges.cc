// abi: threads=3
// Condition variables at the edges: a thread alone, deadlines long past, times and clocks that do not exist, mutexes
// that are not held, that are recursive, or whose owner has died.
#include "abi.h"

static pthread_mutex_t make_mutex(int type, bool robust = false) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  return mutex;
}

static void past_and_invalid() {
  pthread_mutex_t mutex = make_mutex(PTHREAD_MUTEX_ERRORCHECK);
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  for (const timespec past : {timespec{0, 0}, timespec{1, 0}, timespec{-5, 0}, to_timespec(now_ns())}) {
    CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
    CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
  }
  for (const timespec bad : {timespec{1, -1}, timespec{1, kSecond}}) {
    CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &bad), EINVAL);
    CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &bad), EINVAL);
  }
  const timespec soon = after_ns(kMs);
  CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &soon), EINVAL);
  const int64_t begin = now_ns();
  const timespec later = after_ns(20 * kMs);
  int error;
  do error = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &later);
  while (error == 0);
  CHECK_EQ(error, ETIMEDOUT);
  CHECK(now_ns() - begin >= 20 * kMs);
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQ(pthread_cond_wait(&cond, &mutex), EPERM);
  CHECK_EQ(pthread_cond_signal(&cond), 0);
  CHECK_EQ(pthread_cond_broadcast(&cond), 0);
  CHECK_EQ(pthread_cond_destroy(&cond), 0);
}

static void recursive() {
  static pthread_mutex_t mutex = make_mutex(PTHREAD_MUTEX_RECURSIVE);
  static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  static bool ready;
  ready = false;
  const pthread_t thread = start([] {
    settle();
    pthread_mutex_lock(&mutex);
    ready = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
  });
  pthread_mutex_lock(&mutex);
  while (!ready) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQ(pthread_mutex_unlock(&mutex), EPERM);
  join(thread);
}

static void owner_died() {
  static pthread_mutex_t mutex = make_mutex(PTHREAD_MUTEX_NORMAL, true);
  static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  static bool waiting = false, ready = false;
  const pthread_t waiter = start([] {
    pthread_mutex_lock(&mutex);
    waiting = true;
    int error = 0;
    while (!ready && error == 0) error = pthread_cond_wait(&cond, &mutex);
    CHECK_EQ(error, EOWNERDEAD);
    CHECK_EQ(pthread_mutex_consistent(&mutex), 0);
    pthread_mutex_unlock(&mutex);
  });
  const pthread_t victim = start([] {
    for (;;) {
      pthread_mutex_lock(&mutex);
      if (waiting) break;
      pthread_mutex_unlock(&mutex);
      nap(kMs);
    }
    ready = true;
    pthread_cond_broadcast(&cond);  // ends as the owner
  });
  join(victim);
  join(waiter);
}

int main() {
  past_and_invalid();  // one thread
  recursive();
  past_and_invalid();
  owner_died();
}

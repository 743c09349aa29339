// abi: threads=8
// POSIX: pthread_mutex_lock, pthread_cond_wait, pthread_rwlock_*, pthread_barrier_wait and pthread_join never answer
// EINTR: after the handler the wait goes on. sem_wait(3) does end with EINTR, unless the handler has SA_RESTART;
// sem_timedwait as glibc has it: always.
#include <semaphore.h>

#include "interrupt.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static bool signalled = false;
static std::atomic<bool> locked{false};

static long lock_once(bool timed) {
  const timespec late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  const int result = timed ? pthread_mutex_timedlock(&mutex, &late) : pthread_mutex_lock(&mutex);
  if (result != 0) return -result;
  locked = true;
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  return 0;
}

// The main thread holds them, but for a moment.
static void let_it_have_the_mutex() {
  locked = false;
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  while (!locked) nap(kMs / 4);
  CHECK_EQ(pthread_mutex_lock(&mutex), 0);
}

static void let_it_have_the_lock() {
  locked = false;
  CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
  while (!locked) nap(kMs / 4);
  CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
}

static long share_once(bool write) {
  const int result = write ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock);
  if (result != 0) return -result;
  locked = true;
  CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
  return 0;
}

static long wait_once(bool timed) {
  const timespec late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  CHECK_EQ(pthread_mutex_lock(&guard), 0);
  int result = 0;
  while (!signalled && result == 0)
    result = timed ? pthread_cond_timedwait(&cond, &guard, &late) : pthread_cond_wait(&cond, &guard);
  signalled = false;
  CHECK_EQ(pthread_mutex_unlock(&guard), 0);
  return -result;
}

static void signal_it() {
  CHECK_EQ(pthread_mutex_lock(&guard), 0);
  signalled = true;
  CHECK_EQ(pthread_cond_signal(&cond), 0);
  CHECK_EQ(pthread_mutex_unlock(&guard), 0);
}

static void post() { CHECK_EQ(sem_post(&semaphore), 0); }

int main() {
  CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
  CHECK_EQ(pthread_barrier_init(&barrier, nullptr, 2), 0);
  CHECK_EQ(pthread_mutex_lock(&mutex), 0);
  CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
  const timespec late = after_ns(1000 * kSecond, CLOCK_REALTIME), late_monotonic = after_ns(1000 * kSecond);
  static pthread_t sleeper;
  static std::atomic<bool> wake{false};
  try_signals({
      {"mutex_lock", [] { return lock_once(false); }, let_it_have_the_mutex, 0, Restart::hidden},
      {"mutex_timedlock", [] { return lock_once(true); }, let_it_have_the_mutex, 0, Restart::hidden},
      {"cond_wait", [] { return wait_once(false); }, signal_it, 0, Restart::hidden},
      {"cond_timedwait", [] { return wait_once(true); }, signal_it, 0, Restart::hidden},
      {"rwlock_wrlock", [] { return share_once(true); }, let_it_have_the_lock, 0, Restart::hidden},
      {"rwlock_rdlock", [] { return share_once(false); }, let_it_have_the_lock, 0, Restart::hidden},
      {"barrier_wait",
       [] {
         const int result = pthread_barrier_wait(&barrier);
         return result == PTHREAD_BARRIER_SERIAL_THREAD ? 0l : static_cast<long>(result);
       },
       [] { pthread_barrier_wait(&barrier); }, 0, Restart::hidden},
      {"join",
       [] {
         wake = false;
         sleeper = start([] {
           while (!wake) nap(kMs / 2);
         });
         return static_cast<long>(-pthread_join(sleeper, nullptr));
       },
       [] { wake = true; }, 0, Restart::hidden},
      {"sem_wait", [] { return with_errno(sem_wait(&semaphore)); }, post, 0, Restart::yes},
      {"sem_timedwait", [&] { return with_errno(sem_timedwait(&semaphore, &late)); }, post, 0,
       Restart::never},
      {"sem_clockwait",
       [&] { return with_errno(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &late_monotonic)); }, post, 0,
       Restart::never},
  });
}

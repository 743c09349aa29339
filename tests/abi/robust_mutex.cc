// abi: threads=3
// A private robust mutex whose owner ends: EOWNERDEAD to the next (also to one that waits), usable once made
// consistent, ENOTRECOVERABLE when not.
#include "abi.h"

static pthread_mutex_t make() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  CHECK_EQ(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
  pthread_mutex_t mutex;
  CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  return mutex;
}

int main() {
  static pthread_mutex_t a = make(), b = make(), c = make();
  join(start([] {
    CHECK_EQ(pthread_mutex_lock(&a), 0);
    CHECK_EQ(pthread_mutex_lock(&b), 0);
  }));
  CHECK_EQ(pthread_mutex_lock(&a), EOWNERDEAD);
  CHECK_EQ(pthread_mutex_consistent(&a), 0);
  CHECK_EQ(pthread_mutex_unlock(&a), 0);
  CHECK_EQ(pthread_mutex_lock(&a), 0);
  CHECK_EQ(pthread_mutex_unlock(&a), 0);
  CHECK_EQ(pthread_mutex_trylock(&b), EOWNERDEAD);
  CHECK_EQ(pthread_mutex_unlock(&b), 0);
  CHECK_EQ(pthread_mutex_lock(&b), ENOTRECOVERABLE);

  static std::atomic<bool> held{false};
  const pthread_t owner = start([] {
    CHECK_EQ(pthread_mutex_lock(&c), 0);
    held = true;
    nap(50 * kMs);
  });
  const pthread_t waiter = start([] {
    while (!held) sched_yield();
    CHECK_EQ(pthread_mutex_lock(&c), EOWNERDEAD);
    CHECK_EQ(pthread_mutex_consistent(&c), 0);
    CHECK_EQ(pthread_mutex_unlock(&c), 0);
  });
  join(owner);
  join(waiter);
}

// abi: threads=9
// POSIX fork: the child has copies of mutexes "in the state they were in". Normal ones of the forking thread it may unlock;
// recursive and error-checking ones stay locked, as glibc knows their owner by an id that the child does not have. rwlocks,
// spin locks, semaphores and keys' values are as they were. A condition that others waited for can be used anew.
#include <semaphore.h>

#include "process.h"

namespace {

pthread_mutex_t make(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutex_t mutex;
  CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  return mutex;
}

pthread_mutex_t normal = make(PTHREAD_MUTEX_NORMAL), recursive = make(PTHREAD_MUTEX_RECURSIVE),
                checked = make(PTHREAD_MUTEX_ERRORCHECK), others = make(PTHREAD_MUTEX_ERRORCHECK);
pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER, writer = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t waited_for = PTHREAD_COND_INITIALIZER;
pthread_mutex_t waiters_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_spinlock_t spin;
sem_t semaphore;
pthread_key_t key;
bool go = false;

void check_child() {
  CHECK_EQ(pthread_mutex_unlock(&normal), 0);
  CHECK_EQ(pthread_mutex_lock(&normal), 0);
  CHECK_EQ(pthread_mutex_trylock(&recursive), EBUSY);
  CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
  CHECK_EQ(pthread_mutex_trylock(&others), EBUSY);
  CHECK_EQ(pthread_mutex_unlock(&others), EPERM);
  CHECK_EQ(pthread_mutex_trylock(&checked), EBUSY);
  CHECK_EQ(pthread_mutex_unlock(&checked), EPERM);
  CHECK_EQ(pthread_rwlock_trywrlock(&readers), EBUSY);
  CHECK_EQ(pthread_rwlock_unlock(&readers), 0);
  CHECK_EQ(pthread_rwlock_trywrlock(&readers), 0);
  CHECK_EQ(pthread_rwlock_tryrdlock(&writer), EBUSY);
  CHECK_EQ(pthread_rwlock_unlock(&writer), 0);
  CHECK_EQ(pthread_spin_trylock(&spin), EBUSY);
  CHECK_EQ(pthread_spin_unlock(&spin), 0);
  int value;
  CHECK(sem_getvalue(&semaphore, &value) == 0 && value == 2);
  CHECK(pthread_getspecific(key) == &key);
  // Nobody waits any more.
  CHECK_EQ(pthread_cond_init(&waited_for, nullptr), 0);
  pthread_mutex_init(&waiters_mutex, nullptr);
  bool told = false;
  const pthread_t waiter = start([&] {
    pthread_mutex_lock(&waiters_mutex);
    while (!told) pthread_cond_wait(&waited_for, &waiters_mutex);
    pthread_mutex_unlock(&waiters_mutex);
    CHECK_EQ(pthread_mutex_trylock(&normal), EBUSY);
    CHECK(pthread_getspecific(key) == nullptr);
    CHECK_EQ(sem_post(&semaphore), 0);
  });
  pthread_mutex_lock(&waiters_mutex);
  told = true;
  pthread_cond_signal(&waited_for);
  pthread_mutex_unlock(&waiters_mutex);
  for (int i = 0; i < 3; ++i) CHECK_EQ(sem_wait(&semaphore), 0);
  join(waiter);
}

}  // namespace

int main() {
  Crowd crowd;
  sem_init(&semaphore, 0, 2);
  pthread_spin_init(&spin, 0);
  CHECK_EQ(pthread_key_create(&key, nullptr), 0);
  std::vector<pthread_t> waiting;
  for (int i = 0; i < 2; ++i)
    waiting.push_back(start([] {
      pthread_mutex_lock(&waiters_mutex);
      while (!go) pthread_cond_wait(&waited_for, &waiters_mutex);
      pthread_mutex_unlock(&waiters_mutex);
    }));
  settle();
  pthread_mutex_lock(&others);
  join(start([] {
    pthread_mutex_lock(&normal);
    for (int i = 0; i < 2; ++i) pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&checked);
    pthread_rwlock_rdlock(&readers);
    pthread_rwlock_wrlock(&writer);
    pthread_spin_lock(&spin);
    pthread_setspecific(key, &key);
    for (int i = 0; i < 2; ++i) run_child(check_child);
    pthread_mutex_unlock(&normal);
    pthread_mutex_unlock(&recursive), pthread_mutex_unlock(&recursive);
    CHECK_EQ(pthread_mutex_unlock(&checked), 0);
    CHECK_EQ(pthread_rwlock_unlock(&readers), 0);
    CHECK_EQ(pthread_rwlock_unlock(&writer), 0);
    pthread_spin_unlock(&spin);
  }));
  CHECK_EQ(pthread_mutex_unlock(&others), 0);
  pthread_mutex_lock(&waiters_mutex);
  go = true;
  pthread_cond_broadcast(&waited_for);
  pthread_mutex_unlock(&waiters_mutex);
  join_all(waiting);
  crowd.end();
}

// abi: threads=26
// Normal, recursive, error-checking and adaptive mutexes: exclusion, trylock, and each kind's own answers.
#include "abi.h"

static pthread_mutex_t make(int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  CHECK_EQ(pthread_mutexattr_settype(&attributes, kind), 0);
  pthread_mutex_t mutex;
  CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  return mutex;
}

static void exclusion(int kind) {
  pthread_mutex_t mutex = make(kind);
  volatile int counter = 0;
  std::vector<pthread_t> threads;
  for (int i = 0; i < 6; ++i)
    threads.push_back(start([&] {
      for (int round = 0; round < 3000; ++round) {
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
        const int old = counter;
        if (round % 100 == 0) sched_yield();
        counter = old + 1;
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
      }
    }));
  join_all(threads);
  CHECK_EQ(counter, 18000);
  CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
}

int main() {
  for (int kind :
       {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP})
    exclusion(kind);

  pthread_mutex_t recursive = make(PTHREAD_MUTEX_RECURSIVE), checking = make(PTHREAD_MUTEX_ERRORCHECK);
  for (int i = 0; i < 5; ++i) CHECK_EQ(pthread_mutex_lock(&recursive), 0);
  CHECK_EQ(pthread_mutex_lock(&checking), 0);
  CHECK_EQ(pthread_mutex_lock(&checking), EDEADLK);
  join(start([&] {
    CHECK_EQ(pthread_mutex_trylock(&recursive), EBUSY);
    CHECK_EQ(pthread_mutex_trylock(&checking), EBUSY);
    CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
    CHECK_EQ(pthread_mutex_unlock(&checking), EPERM);
  }));
  for (int i = 0; i < 5; ++i) CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
  CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
  CHECK_EQ(pthread_mutex_unlock(&checking), 0);
  join(start([&] {
    CHECK_EQ(pthread_mutex_trylock(&recursive), 0);
    CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
  }));
}

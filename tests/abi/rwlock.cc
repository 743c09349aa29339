// abi: threads=14
// Reader-writer locks: readers together, writers alone, try and timed forms, error answers.
#include "abi.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static std::atomic<int> readers{0}, writers{0}, most_readers{0};
static int value_a = 0, value_b = 0;

int main() {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 8; ++i)
    threads.push_back(start([] {
      for (int round = 0; round < 500; ++round) {
        CHECK_EQ(pthread_rwlock_rdlock(&lock), 0);
        const int now = ++readers;
        if (now > most_readers) most_readers = now;
        CHECK_EQ(writers, 0);
        const int a = value_a;
        if (round % 10 == 0) sched_yield();
        CHECK_EQ(a, value_b);
        --readers;
        CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
      }
    }));
  for (int i = 0; i < 4; ++i)
    threads.push_back(start([] {
      for (int round = 0; round < 500; ++round) {
        CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
        CHECK_EQ(++writers, 1);
        CHECK_EQ(readers, 0);
        ++value_a;
        if (round % 10 == 0) sched_yield();
        ++value_b;
        --writers;
        CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
      }
    }));
  join_all(threads);
  CHECK_EQ(value_a, 2000);
  CHECK_EQ(value_b, 2000);

  CHECK_EQ(pthread_rwlock_rdlock(&lock), 0);
  join(start([] {
    CHECK_EQ(pthread_rwlock_tryrdlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_trywrlock(&lock), EBUSY);
    const int64_t begin = now_ns();
    timespec deadline = after_ns(30 * kMs, CLOCK_REALTIME);
    CHECK_EQ(pthread_rwlock_timedwrlock(&lock, &deadline), ETIMEDOUT);
    deadline = after_ns(30 * kMs);
    CHECK_EQ(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &deadline), ETIMEDOUT);
    CHECK(now_ns() - begin >= 58 * kMs);
  }));
  CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
  CHECK_EQ(pthread_rwlock_rdlock(&lock), EDEADLK);
  join(start([] {
    const timespec deadline = after_ns(30 * kMs, CLOCK_REALTIME);
    CHECK_EQ(pthread_rwlock_tryrdlock(&lock), EBUSY);
    CHECK_EQ(pthread_rwlock_timedrdlock(&lock, &deadline), ETIMEDOUT);
  }));
  CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
}

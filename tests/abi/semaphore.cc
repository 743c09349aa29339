// abi: threads=9
// sem_t: wait, post, trywait, timedwait and clockwait; every post lets exactly one pass.
#include <semaphore.h>

#include "abi.h"

int main() {
  static sem_t full, empty;
  static std::atomic<int64_t> produced{0}, consumed{0};
  sem_init(&full, 0, 0);
  sem_init(&empty, 0, 4);
  static std::atomic<int> in_buffer{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(start([] {
      for (int round = 0; round < 1000; ++round) {
        while (sem_wait(&empty) != 0) CHECK_EQ(errno, EINTR);
        CHECK(++in_buffer <= 4);
        ++produced;
        sem_post(&full);
      }
    }));
    threads.push_back(start([] {
      for (int round = 0; round < 1000; ++round) {
        while (sem_wait(&full) != 0) CHECK_EQ(errno, EINTR);
        CHECK(--in_buffer >= 0);
        ++consumed;
        sem_post(&empty);
      }
    }));
  }
  join_all(threads);
  CHECK_EQ(produced, 4000);
  CHECK_EQ(consumed, 4000);
  int value;
  CHECK_EQ(sem_getvalue(&full, &value), 0);
  CHECK_EQ(value, 0);
  CHECK_ERRNO(sem_trywait(&full), EAGAIN);
  const int64_t begin = now_ns();
  timespec deadline = after_ns(30 * kMs, CLOCK_REALTIME);
  CHECK_ERRNO(sem_timedwait(&full, &deadline), ETIMEDOUT);
  deadline = after_ns(30 * kMs);
  CHECK_ERRNO(sem_clockwait(&full, CLOCK_MONOTONIC, &deadline), ETIMEDOUT);
  CHECK(now_ns() - begin >= 58 * kMs);
  deadline = {0, -1};
  CHECK_ERRNO(sem_timedwait(&full, &deadline), EINVAL);
  const pthread_t poster = start([] {
    settle();
    sem_post(&full);
  });
  deadline = after_ns(15 * kSecond, CLOCK_REALTIME);
  CHECK_EQ(sem_timedwait(&full, &deadline), 0);
  join(poster);
}

// abi: threads=100000 plain=skip timeout=120
// 100,000 threads alive at once with the default stack size; kernel threads stop near 32,000.
#include <semaphore.h>

#include "abi.h"

int main() {
  constexpr int kThreads = 100000;
  static sem_t arrived, leave;
  sem_init(&arrived, 0, 0);
  sem_init(&leave, 0, 0);
  std::atomic<int64_t> sum{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start([i, &sum] {
      sem_post(&arrived);
      while (sem_wait(&leave) != 0) {
      }
      sum += i;
    }));
  for (int i = 0; i < kThreads; ++i) CHECK_EQ(sem_wait(&arrived), 0);
  for (int i = 0; i < kThreads; ++i) CHECK_EQ(sem_post(&leave), 0);
  join_all(threads);
  CHECK_EQ(sum, int64_t{kThreads} * (kThreads - 1) / 2);
}

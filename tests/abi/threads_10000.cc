// abi: threads=10000 timeout=60
// 10,000 threads alive at once, each of which runs, waits and is joined.
#include "abi.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER, leave = PTHREAD_COND_INITIALIZER;
static int here = 0;
static bool may_leave = false;

int main() {
  constexpr int kThreads = 10000;
  std::vector<pthread_t> threads;
  int64_t sum = 0;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start([i, &sum] {
      pthread_mutex_lock(&mutex);
      if (++here == kThreads) pthread_cond_signal(&all_here);
      while (!may_leave) pthread_cond_wait(&leave, &mutex);
      sum += i;
      pthread_mutex_unlock(&mutex);
    }));
  pthread_mutex_lock(&mutex);
  while (here < kThreads) pthread_cond_wait(&all_here, &mutex);
  may_leave = true;
  pthread_cond_broadcast(&leave);
  pthread_mutex_unlock(&mutex);
  join_all(threads);
  CHECK_EQ(sum, int64_t{kThreads} * (kThreads - 1) / 2);
}

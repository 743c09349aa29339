// abi: threads=100
// PTHREAD_STACK_MIN is enough for a thread that locks, yields, sleeps, makes a thread and is signalled.
#include <limits.h>

#include "abi.h"

int main() {
  install(SIGUSR1, [](int) {});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN) - 1), EINVAL);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN)), 0);
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static int count = 0;
  std::vector<pthread_t> threads;
  for (int i = 0; i < 100; ++i)
    threads.push_back(start(
        [] {
          for (int round = 0; round < 10; ++round) {
            pthread_mutex_lock(&mutex);
            ++count;
            pthread_mutex_unlock(&mutex);
            sched_yield();
            nap(100'000);
          }
          CHECK_EQ(raise(SIGUSR1), 0);
        },
        &attributes));
  join_all(threads);
  CHECK_EQ(count, 1000);
}

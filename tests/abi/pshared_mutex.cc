// abi: threads=5
// A process-shared mutex and condition variable in shared memory, between threads of two processes.
#include <sys/mman.h>

#include "abi.h"

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  volatile int64_t counter;
  int turn, inside;
};

static void work(Shared* shared) {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3; ++i)
    threads.push_back(start([shared] {
      for (int round = 0; round < 1000; ++round) {
        CHECK_EQ(pthread_mutex_lock(&shared->mutex), 0);
        CHECK_EQ(shared->inside++, 0);
        shared->counter = shared->counter + 1;
        if (round % 50 == 0) sched_yield();
        --shared->inside;
        CHECK_EQ(pthread_mutex_unlock(&shared->mutex), 0);
      }
    }));
  join_all(threads);
}

static void ping(Shared* shared, int me) {
  for (int i = 0; i < 300; ++i) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->turn != me) pthread_cond_wait(&shared->cond, &shared->mutex);
    shared->turn = 1 - me;
    pthread_cond_signal(&shared->cond);
    pthread_mutex_unlock(&shared->mutex);
  }
}

int main() {
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(shared != MAP_FAILED);
  pthread_mutexattr_t mutex_attributes;
  pthread_mutexattr_init(&mutex_attributes);
  CHECK_EQ(pthread_mutexattr_setpshared(&mutex_attributes, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQ(pthread_mutex_init(&shared->mutex, &mutex_attributes), 0);
  pthread_condattr_t cond_attributes;
  pthread_condattr_init(&cond_attributes);
  CHECK_EQ(pthread_condattr_setpshared(&cond_attributes, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQ(pthread_cond_init(&shared->cond, &cond_attributes), 0);
  const pid_t child = fork();
  if (child == 0) {
    work(shared);
    join(start([shared] { ping(shared, 1); }));
    _exit(0);
  }
  work(shared);
  const pthread_t computing = start([] { burn(100 * kMs); });
  const pthread_t player = start([shared] { ping(shared, 0); });
  join(player);
  join(computing);
  wait_exit(child, 0);
  CHECK_EQ(shared->counter, 6000);
}

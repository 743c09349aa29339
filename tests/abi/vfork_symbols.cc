// abi: threads=1
// A vfork child calls functions that Upcall answers by symbol: it shares our memory and is no thread of ours.
#include <sched.h>
#include <semaphore.h>

#include "abi.h"

static sem_t semaphore;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static pid_t run_child() {
  const pid_t child = vfork();
  if (child != 0) return child;
  for (int k = 0; k < 3; ++k) sched_yield();
  if (sem_post(&semaphore) != 0) _exit(1);
  if (sem_trywait(&semaphore) != 0) _exit(2);
  if (pthread_mutex_lock(&mutex) != 0) _exit(3);
  if (pthread_cond_signal(&condition) != 0) _exit(4);
  if (pthread_mutex_unlock(&mutex) != 0) _exit(5);
  const timespec past = {1, 0};
  if (sem_timedwait(&semaphore, &past) == 0) _exit(6);
  _exit(7);
}

int main() {
  CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
  std::atomic<bool> stop{false};
  pthread_t other = start([&] {
    while (!stop) nap(kMs);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = run_child();
    CHECK(child > 0);
    wait_exit(child, 7);
    sched_yield();
  }
  stop = true;
  join(other);
}

// abi: threads=4
// In the clean-up handlers of a cancelled thread cancellation points do not act again, nor do further requests: what is
// called there does its work, be it a sleep, a read, a wait for a condition, a semaphore or a thread. Also where the
// thread could be cancelled anywhere.
#include <semaphore.h>

#include "abi.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int ends[2], go = 0;
static std::atomic<int> step;
static std::atomic<bool> entered, leave;
static pthread_t target;

static void clean_up(void*) {
  step = 1;
  pthread_testcancel();
  usleep(1);
  pthread_mutex_lock(&mutex);
  while (!go) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
  const timespec past = {0, 0};
  CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
  step = 2;
  CHECK_EQ(sem_wait(&sem), 0);
  step = 3;
  char byte;
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  step = 4;
  CHECK(join(target) == nullptr);
  step = 5;
}

static void until(int n) {
  while (step < n) nap(kMs / 4);
  settle();
  CHECK_EQ(step, n);
}

int main() {
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  CHECK_EQ(pipe(ends), 0);
  for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    step = go = 0;
    entered = leave = false;
    target = start([] {
      while (!leave) nap(kMs);
    });
    const pthread_t thread = start([type] {
      pthread_setcanceltype(type, nullptr);
      pthread_cleanup_push(clean_up, nullptr);
      entered = true;
      for (;;) usleep(1000);
      pthread_cleanup_pop(0);
    });
    while (!entered) sched_yield();
    CHECK_EQ(pthread_cancel(thread), 0);
    until(1);
    CHECK_EQ(pthread_cancel(thread), 0);
    pthread_mutex_lock(&mutex);
    go = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    until(2);
    CHECK_EQ(pthread_cancel(thread), 0);
    CHECK_EQ(sem_post(&sem), 0);
    until(3);
    CHECK_EQ(pthread_cancel(thread), 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    until(4);
    CHECK_EQ(pthread_cancel(thread), 0);
    leave = true;
    CHECK(join(thread) == PTHREAD_CANCELED);
    CHECK_EQ(step, 5);
  }
}

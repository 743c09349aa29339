// abi: threads=5 stdout=key,joined,exit,
// pthread_exit from main: its keys' values are destroyed, others go on, wait, cancel, join each
// other and the main thread, whose value they see; exit's handlers run when the last one ends, and the status is 0.
#include "abi.h"

static int value;
static pthread_t main_thread;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool told = false;

int main() {
  main_thread = pthread_self();
  pthread_key_t key;
  CHECK_EQ(pthread_key_create(&key, [](void*) { printf("key,"); }), 0);
  CHECK_EQ(pthread_setspecific(key, &key), 0);
  atexit([] { printf("exit,"); });
  start([] {
    void* result = nullptr;
    CHECK_EQ(pthread_join(main_thread, &result), 0);
    CHECK(result == &value);
    const pthread_t sleeper = start([] { sleep(1000); });
    CHECK_EQ(pthread_cancel(sleeper), 0);
    CHECK(join(sleeper) == PTHREAD_CANCELED);
    const pthread_t waiter = start([] {
      pthread_mutex_lock(&mutex);
      while (!told) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
      pthread_mutex_unlock(&mutex);
    });
    settle();
    pthread_mutex_lock(&mutex);
    told = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    join(waiter);
    const pid_t child = fork();
    if (child == 0) _exit(7);
    wait_exit(child, 7);
    printf("joined,");
  });
  start([] {
    for (int i = 0; i < 20; ++i) burn(kMs / 10), sched_yield();
  });
  const pthread_t short_one = start([] {});
  (void)short_one;  // neither joined nor detached
  pthread_exit(&value);
}

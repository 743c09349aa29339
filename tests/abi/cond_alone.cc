// abi: threads=1
// A process with one thread waits on a condition variable while handlers run; then the same one serves two threads.
#include <sys/time.h>

#include "abi.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static std::atomic<int> handled{0};
static bool ready = false;

int main() {
  for (const int flags : {0, SA_RESTART}) {
    install(
        SIGALRM, [](int) { ++handled; }, flags);
    const itimerval often = {{0, 3000}, {0, 3000}}, off = {};
    CHECK_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    pthread_mutex_lock(&mutex);
    const int64_t begin = now_ns();
    const timespec deadline = after_ns(40 * kMs, CLOCK_REALTIME);
    int error;
    do error = pthread_cond_timedwait(&cond, &mutex, &deadline);
    while (error == 0);
    CHECK_EQ(error, ETIMEDOUT);
    CHECK(now_ns() - begin >= 39 * kMs);
    pthread_mutex_unlock(&mutex);
    CHECK_EQ(setitimer(ITIMER_REAL, &off, nullptr), 0);
    CHECK_EQ(pthread_cond_signal(&cond), 0);
    CHECK_EQ(pthread_cond_broadcast(&cond), 0);
  }
  CHECK(handled > 2);
  const pthread_t thread = start([] {
    pthread_mutex_lock(&mutex);
    ready = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
  });
  pthread_mutex_lock(&mutex);
  while (!ready) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
  pthread_mutex_unlock(&mutex);
  join(thread);
}

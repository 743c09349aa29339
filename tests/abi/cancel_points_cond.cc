// abi: threads=22
// Waits on condition variables are cancellation points, of private and shared ones, POSIX's and C11's; the mutex is
// held again when the clean-up handlers run (pthread_cond_wait(3p)). Errors that are found before the wait are
// reported as ever.
#include <threads.h>

#include "cancel.h"

static pthread_cond_t cond;
static pthread_mutex_t mutex;
static cnd_t c11_cond;
static mtx_t c11_mutex;

static void held(void (*wait)()) {
  CHECK_EQ(pthread_mutex_lock(&mutex), 0);
  pthread_cleanup_push(
      [](void*) {
        CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);  // an error-checking one: it is ours
      },
      nullptr);
  for (;;) wait();
  pthread_cleanup_pop(0);
}

static void c11_held(void (*wait)()) {
  CHECK_EQ(mtx_lock(&c11_mutex), thrd_success);
  pthread_cleanup_push(
      [](void*) {
        CHECK_EQ(mtx_trylock(&c11_mutex), thrd_busy);
        CHECK_EQ(mtx_unlock(&c11_mutex), thrd_success);
      },
      nullptr);
  for (;;) wait();
  pthread_cleanup_pop(0);
}

static timespec later(clockid_t clock) { return after_ns(1000 * kSecond, clock); }

static std::vector<Point> points() {
  return {
      {"pthread_cond_wait", [] { held([] { pthread_cond_wait(&cond, &mutex); }); }},
      {"pthread_cond_timedwait",
       [] {
         held([] {
           const timespec late = later(CLOCK_REALTIME);
           pthread_cond_timedwait(&cond, &mutex, &late);
         });
       }},
      {"pthread_cond_clockwait",
       [] {
         held([] {
           const timespec late = later(CLOCK_MONOTONIC);
           pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &late);
         });
       }},
      {"cnd_wait", [] { c11_held([] { cnd_wait(&c11_cond, &c11_mutex); }); }},
      {"cnd_timedwait",
       [] {
         c11_held([] {
           const timespec late = later(CLOCK_REALTIME);
           cnd_timedwait(&c11_cond, &c11_mutex, &late);
         });
       }},
  };
}

int main() {
  CHECK_EQ(cnd_init(&c11_cond), thrd_success);
  CHECK_EQ(mtx_init(&c11_mutex, mtx_plain), thrd_success);
  for (const int shared : {PTHREAD_PROCESS_PRIVATE, PTHREAD_PROCESS_SHARED}) {
    pthread_condattr_t cond_kind;
    CHECK_EQ(pthread_condattr_init(&cond_kind), 0);
    CHECK_EQ(pthread_condattr_setpshared(&cond_kind, shared), 0);
    CHECK_EQ(pthread_cond_init(&cond, &cond_kind), 0);
    pthread_mutexattr_t mutex_kind;
    CHECK_EQ(pthread_mutexattr_init(&mutex_kind), 0);
    CHECK_EQ(pthread_mutexattr_setpshared(&mutex_kind, shared), 0);
    CHECK_EQ(pthread_mutexattr_settype(&mutex_kind, PTHREAD_MUTEX_ERRORCHECK), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &mutex_kind), 0);
    cancel_pending(points());
    cancel_blocked(points());
    wakes_who_waits(&mutex, &cond);
    // No wait, no cancellation point.
    not_cancelled({{"pthread_cond_timedwait with a bad time", [] {
                      const timespec bad = {0, 1'000'000'000};
                      pthread_mutex_lock(&mutex);
                      CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &bad), EINVAL);
                      pthread_mutex_unlock(&mutex);
                    }}});
    CHECK_EQ(pthread_cond_destroy(&cond), 0);
    CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
  }
}

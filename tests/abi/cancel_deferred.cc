// abi: threads=9
// Deferred cancellation ends a thread in each kind of wait: condition, read, nanosleep, semaphore, join, poll,
// testcancel; a mutex lock is no cancellation point; the condition's mutex is held again in the clean-up.
#include <poll.h>
#include <semaphore.h>

#include "cancel.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t never;
static int ends[2];
static std::atomic<int> cleaned{0};

static void expect_cancelled(const char* where, void (*body)()) {
  static std::atomic<bool> entered;
  entered = false;
  const pthread_t thread = start([body] {
    pthread_cleanup_push([](void*) { ++cleaned; }, nullptr);
    entered = true;
    body();
    pthread_cleanup_pop(0);
  });
  while (!entered) sched_yield();
  settle();
  const int before = cleaned;
  CHECK_EQ(pthread_cancel(thread), 0);
  if (join(thread) != PTHREAD_CANCELED) FAIL("not cancelled in %s", where);
  CHECK_EQ(cleaned, before + 1);
}

int main() {
  sem_init(&never, 0, 0);
  CHECK_EQ(pipe(ends), 0);
  expect_cancelled("pthread_cond_wait", [] {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(release_held, &mutex);
    for (;;) pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
  });
  CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
  pthread_mutex_unlock(&mutex);
  expect_cancelled("read", [] {
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
  });
  expect_cancelled("nanosleep", [] { nap(1000 * kSecond); });
  expect_cancelled("sem_wait", [] { sem_wait(&never); });
  expect_cancelled("poll", [] { poll(nullptr, 0, -1); });
  expect_cancelled("pthread_testcancel", [] {
    for (;;) {
      burn(100'000);
      pthread_testcancel();
    }
  });
  static pthread_t sleeper;
  sleeper = start([] {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    while (sem_wait(&never) != 0) {
    }
  });
  expect_cancelled("pthread_join", [] { pthread_join(sleeper, nullptr); });
  sem_post(&never);
  join(sleeper);

  pthread_mutex_lock(&mutex);
  static std::atomic<bool> locked{false};
  const pthread_t locker = start([] {
    pthread_mutex_lock(&mutex);
    locked = true;
    pthread_mutex_unlock(&mutex);
    pthread_testcancel();
    FAIL("no cancellation point");
  });
  settle();
  CHECK_EQ(pthread_cancel(locker), 0);
  settle();
  pthread_mutex_unlock(&mutex);
  CHECK(join(locker) == PTHREAD_CANCELED);
  CHECK(locked);
}

// abi: threads=9
// A signal handler that interrupts a wait and is cancelled, at a cancellation point of its own: the thread unwinds from
// the handler through the function it had been waiting in (pthreads(7): handlers may call cancellation points). The
// condition's mutex is held again in its clean-up, the semaphore has no waiter left, the thread that was to be joined
// can be joined by others.
#include <semaphore.h>

#include "cancel.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem, shared_sem;
static int ends[2];
static pthread_t target;
static std::atomic<bool> waiting, in_handler, leave{false};
static std::atomic<int> cleaned{0};

static void handler(int) {
  in_handler = true;
  sleep(1000);  // async-signal-safe, and a cancellation point
  FAIL("not cancelled");
}

static void expect_cancelled(const char* where, void (*body)()) {
  waiting = in_handler = false;
  const int before = cleaned;
  const pthread_t thread = start_counted(body, &cleaned);
  while (!waiting) sched_yield();
  settle();
  CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
  while (!in_handler) nap(kMs / 4);
  CHECK_EQ(pthread_cancel(thread), 0);
  if (join(thread) != PTHREAD_CANCELED) FAIL("not cancelled in %s", where);
  if (cleaned != before + 1) FAIL("no clean-up in %s", where);
}

// The signal may come before the wait. Functions that it may interrupt have nothing to destroy: C++'s tables know calls
// only.
__attribute__((noinline)) static void keep_waiting(const timespec* late) {
  waiting = true;
  for (;;) late ? pthread_cond_timedwait(&cond, &mutex, late) : pthread_cond_wait(&cond, &mutex);
}

static void wait_for_condition(bool timed) {
  CHECK_EQ(pthread_mutex_lock(&mutex), 0);
  pthread_cleanup_push(release_held, &mutex);
  const timespec late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  keep_waiting(timed ? &late : nullptr);
  pthread_cleanup_pop(0);
}

int main() {
  install(SIGUSR1, handler);
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  CHECK_EQ(sem_init(&shared_sem, 1, 0), 0);
  CHECK_EQ(pipe(ends), 0);
  pthread_mutexattr_t kind;
  CHECK_EQ(pthread_mutexattr_init(&kind), 0);
  CHECK_EQ(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK), 0);
  CHECK_EQ(pthread_mutex_init(&mutex, &kind), 0);
  expect_cancelled("pthread_cond_wait", [] { wait_for_condition(false); });
  expect_cancelled("pthread_cond_timedwait", [] { wait_for_condition(true); });
  CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  wakes_who_waits(&mutex, &cond);
  expect_cancelled("sem_wait", [] { waiting = true, sem_wait(&sem); });
  expect_cancelled("sem_wait, shared", [] { waiting = true, sem_wait(&shared_sem); });
  CHECK_EQ(sem_post(&sem), 0);
  CHECK_EQ(sem_trywait(&sem), 0);
  expect_cancelled("read", [] {
    char byte;
    waiting = true;
    read(ends[0], &byte, 1);
  });
  expect_cancelled("sleep", [] { waiting = true, sleep(1000); });
  target = start([] {
    while (!leave) nap(kMs);
  });
  expect_cancelled("pthread_join", [] { waiting = true, pthread_join(target, nullptr); });
  leave = true;
  CHECK_EQ(pthread_join(target, nullptr), 0);
}

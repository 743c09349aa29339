// abi: threads=8
// When a pending request acts as state and type change (pthread_setcancelstate(3)): with the type asynchronous at once
// when cancellation is enabled, or when it becomes asynchronous while enabled; deferred, at the next point. The former
// values are answered; invalid ones are refused and change nothing.
#include "cancel.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static std::atomic<int> step;

static void request() { CHECK_EQ(pthread_cancel(pthread_self()), 0); }

static void expect(int last, void (*body)()) {
  step = 0;
  join(start(
      body));  // its result is not always PTHREAD_CANCELED: glibc 2.36 forgets that in pthread_setcancelstate
  CHECK_EQ(step, last);
}

static std::atomic<bool> entered{false};

// It may be cancelled anywhere, so there is nothing to destroy in it: C++'s tables know calls only.
__attribute__((noinline)) static void wait_asynchronously() {
  CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr), 0);
  CHECK_EQ(pthread_setcanceltype(7, nullptr), EINVAL);
  entered = true;
  for (;;) pthread_cond_wait(&cond, &mutex);
}

int main() {
  int old = -1;
  CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
  CHECK_EQ(old, PTHREAD_CANCEL_ENABLE);
  CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
  CHECK_EQ(old, PTHREAD_CANCEL_DISABLE);
  expect(1, [] {  // enabled while asynchronous
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    request();
    step = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    step = 2;
  });
  expect(1, [] {  // asynchronous while enabled
    request();
    step = 1;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    step = 2;
  });
  expect(2, [] {  // deferred: at a point only
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    request();
    pthread_testcancel();
    step = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    step = 2;
    pthread_testcancel();
    step = 3;
  });
  expect(1, [] {  // asynchronous, disabled, deferred, enabled
    int type = -1;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    CHECK_EQ(type, PTHREAD_CANCEL_DEFERRED);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    request();
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    CHECK_EQ(type, PTHREAD_CANCEL_ASYNCHRONOUS);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    step = 1;
    usleep(1);
    step = 2;
  });
  expect(0, [] {  // itself, while it may be cancelled anywhere
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    request();
    step = 1;
  });
  expect(1, [] {  // by itself after a refused change
    int type = -1;
    CHECK_EQ(pthread_setcancelstate(7, nullptr), EINVAL);
    CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr), 0);
    CHECK_EQ(pthread_setcanceltype(7, &type), EINVAL);
    step = 1;
    request();
    step = 2;
  });
  // A refused change of the type in a thread that then waits for a condition: the mutex is held in its clean-up.
  const pthread_t waiter = start([] {
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    pthread_cleanup_push(release_held, &mutex);
    wait_asynchronously();
    pthread_cleanup_pop(0);
  });
  while (!entered) sched_yield();
  settle();
  CHECK_EQ(pthread_cancel(waiter), 0);
  CHECK(join(waiter) == PTHREAD_CANCELED);
  // The next thread has the defaults.
  join(start([] {
    int state = -1, type = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
    CHECK_EQ(type, PTHREAD_CANCEL_DEFERRED);
  }));
}

// abi: threads=60
// Cancellation in waits on condition variables: the mutex is held in clean-up, destructors run, a cancelled waiter
// takes no wake-up with it, disabled cancellation waits on, one posted before the wait ends it at once.
#include "abi.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int items = 0, waiting = 0, destroyed = 0;

struct Hold {
  Hold() { pthread_mutex_lock(&mutex); }
  ~Hold() {
    ++destroyed;
    CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
    pthread_mutex_unlock(&mutex);
  }
};

static void wait_for_item(bool timed) {
  Hold hold;
  ++waiting;
  const timespec deadline = after_ns(15 * kSecond, CLOCK_REALTIME);
  while (items == 0)
    CHECK_EQ(timed ? pthread_cond_timedwait(&cond, &mutex, &deadline) : pthread_cond_wait(&cond, &mutex), 0);
  --items;
  --waiting;
}

static void until_waiting(int n) {
  for (;;) {
    pthread_mutex_lock(&mutex);
    const bool reached = waiting == n;
    pthread_mutex_unlock(&mutex);
    if (reached) return;
    nap(kMs);
  }
}

// Half of the waiters are cancelled while wake-ups are given out: as many items go as were put, none is left over.
static void beside_others(bool timed) {
  waiting = items = destroyed = 0;
  std::vector<pthread_t> threads;
  for (int i = 0; i < 20; ++i) threads.push_back(start([timed] { wait_for_item(timed); }));
  until_waiting(20);
  for (int i = 0; i < 20; i += 2) {
    pthread_mutex_lock(&mutex);
    ++items;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&cond);
    cancel_perhaps_ended(threads[i]);
  }
  int cancelled = 0, served = 0;
  // Whoever was cancelled took nothing; the rest need as many items as are missing.
  for (int i = 0; i < 20; i += 2) ++(join(threads[i]) == PTHREAD_CANCELED ? cancelled : served);
  pthread_mutex_lock(&mutex);
  items += 10 - cancelled;
  pthread_mutex_unlock(&mutex);
  pthread_cond_broadcast(&cond);
  for (int i = 1; i < 20; i += 2) CHECK(join(threads[i]) == nullptr);
  CHECK_EQ(served + cancelled, 10);
  CHECK_EQ(destroyed, 20);
  CHECK_EQ(items, 0);
}

static void disabled() {
  static std::atomic<int> step;
  static bool go;
  step = 0, go = false;
  const pthread_t thread = start([] {
    Hold hold;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    step = 1;
    while (!go) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
    step = 2;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    pthread_cond_wait(&cond, &mutex);
    FAIL("went on");
  });
  while (step == 0) nap(kMs);
  settle();
  CHECK_EQ(pthread_cancel(thread), 0);
  settle();
  CHECK_EQ(step, 1);
  CHECK_EQ(pthread_cancel(thread), 0);
  pthread_mutex_lock(&mutex);
  go = true;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  CHECK(join(thread) == PTHREAD_CANCELED);
  CHECK_EQ(step, 2);
}

static void at_once() {
  const pthread_t self = start([] {
    Hold hold;
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    const timespec past = {0, 0};
    pthread_cond_timedwait(&cond, &mutex, &past);
    FAIL("went on");
  });
  CHECK(join(self) == PTHREAD_CANCELED);
  static std::atomic<bool> cancelled;
  for (int i = 0; i < 10; ++i) {
    cancelled = false;
    const pthread_t running = start([i] {
      Hold hold;
      if (i % 2 == 0)
        while (!cancelled) sched_yield();
      for (;;) pthread_cond_wait(&cond, &mutex);
    });
    if (i % 3 == 0) sched_yield();
    CHECK_EQ(pthread_cancel(running), 0);
    cancelled = true;
    CHECK(join(running) == PTHREAD_CANCELED);
  }
  CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
  pthread_mutex_unlock(&mutex);
}

// A thread that may be cancelled anywhere still has the mutex in its clean-up.
static void asynchronous() {
  static std::atomic<bool> entered;
  entered = false;
  const pthread_t thread = start([] {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(
        [](void*) {
          CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
          pthread_mutex_unlock(&mutex);
        },
        nullptr);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    entered = true;
    for (;;) pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
  });
  while (!entered) nap(kMs);
  settle();
  CHECK_EQ(pthread_cancel(thread), 0);
  CHECK(join(thread) == PTHREAD_CANCELED);
  CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
  pthread_mutex_unlock(&mutex);
}

int main() {
  beside_others(false);
  beside_others(true);
  disabled();
  at_once();
  asynchronous();
  beside_others(false);
}

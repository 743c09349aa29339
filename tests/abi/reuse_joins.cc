// abi: threads=130 reused=50
// Joins in every order: before, while and after the thread ends, with deadlines that pass and that do not, with
// handlers that run meanwhile; detach before, after and by the thread itself.
#include <semaphore.h>

#include "abi.h"

static std::atomic<int> handled{0};

static void detaches() {
  sem_t done;
  sem_init(&done, 0, 0);
  const auto body = [&done] { sem_post(&done); };
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(pthread_detach(start(body)), 0);
    CHECK_EQ(sem_wait(&done), 0);
    const pthread_t finished = start(body);
    CHECK_EQ(sem_wait(&done), 0);
    nap(kMs / 10);
    CHECK_EQ(pthread_detach(finished), 0);
    start([&] {
      CHECK_EQ(pthread_detach(pthread_self()), 0);
      pthread_attr_t attributes;
      int state;
      CHECK_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
      CHECK_EQ(pthread_attr_getdetachstate(&attributes, &state), 0);
      CHECK_EQ(state, PTHREAD_CREATE_DETACHED);
      pthread_attr_destroy(&attributes);
      body();
    });
    CHECK_EQ(sem_wait(&done), 0);
    join(start([] {
      pthread_attr_t attributes;
      int state;
      CHECK_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
      CHECK_EQ(pthread_attr_getdetachstate(&attributes, &state), 0);
      CHECK_EQ(state, PTHREAD_CREATE_JOINABLE);
      pthread_attr_destroy(&attributes);
    }));
  }
}

static void deadlines() {
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> go{false};
    const pthread_t thread = start([&go] {
      while (!go) nap(kMs / 10);
    });
    CHECK_EQ(pthread_tryjoin_np(thread, nullptr), EBUSY);
    timespec at = after_ns(2 * kMs, CLOCK_REALTIME);
    CHECK_EQ(pthread_timedjoin_np(thread, nullptr, &at), ETIMEDOUT);
    at = {1, 0};
    CHECK_EQ(pthread_clockjoin_np(thread, nullptr, CLOCK_MONOTONIC, &at), ETIMEDOUT);
    // Before 2.34 glibc leaves it to the kernel to know the clock.
    if (libc_minor() >= 34)
      CHECK_EQ(pthread_clockjoin_np(thread, nullptr, CLOCK_PROCESS_CPUTIME_ID, &at), EINVAL);
    go = true;
    at = after_ns(20 * kSecond);
    void* result = &at;
    CHECK_EQ(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &at), 0);
    CHECK(result == nullptr);
    std::atomic<bool> done{false};
    const pthread_t finished = start([&done] { done = true; });
    while (!done) sched_yield();
    while (pthread_tryjoin_np(finished, nullptr) == EBUSY) sched_yield();
  }
}

static void handlers_meanwhile() {
  std::atomic<bool> go{false}, joining{false};
  const pthread_t target = start([&go] {
    while (!go) nap(kMs);
  });
  const pthread_t joiner = start([&] {
    joining = true;
    join(target);
  });
  while (!joining) sched_yield();
  for (int i = 0; i < 5; ++i) {
    settle();
    CHECK_EQ(pthread_kill(joiner, SIGUSR1), 0);
  }
  for (int i = 0; handled == 0 && i < 5000; ++i) nap(kMs);
  CHECK(handled >= 1);
  CHECK_EQ(pthread_tryjoin_np(joiner, nullptr), EBUSY);
  go = true;
  join(joiner);
}

int main() {
  install(SIGUSR1, [](int) { ++handled; });
  detaches();
  deadlines();
  for (int i = 0; i < 5; ++i) handlers_meanwhile();
}

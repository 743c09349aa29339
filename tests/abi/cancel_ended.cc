// abi: threads=60
// Requests for threads that have ended, that are detached, that have not begun yet, and several for one: pthread_cancel(3)
// answers 0 for every thread that exists, also for one that has ended and is not joined; it changes nothing then.
#include "abi.h"

static void* const kValue = reinterpret_cast<void*>(uintptr_t{77});

static pthread_t ended(void* (*function)(void*), std::atomic<bool>* done) {
  pthread_t thread;
  *done = false;
  CHECK_EQ(pthread_create(&thread, nullptr, function, done), 0);
  while (!*done) sched_yield();
  return thread;
}

int main() {
  static std::atomic<bool> done;
  static std::atomic<int> cleaned{0};
  for (int i = 0; i < 10; ++i) {
    // By returning, by pthread_exit, by a request: at once and later.
    const pthread_t returned = ended(
        [](void* flag) {
          *static_cast<std::atomic<bool>*>(flag) = true;
          return kValue;
        },
        &done);
    if (i % 2 == 0) nap(kMs);
    cancel_perhaps_ended(returned);
    cancel_perhaps_ended(returned);
    CHECK(join(returned) == kValue);
    const pthread_t exited = ended(
        [](void* flag) -> void* {
          *static_cast<std::atomic<bool>*>(flag) = true;
          pthread_exit(kValue);
        },
        &done);
    if (i % 2 == 0) nap(kMs);
    cancel_perhaps_ended(exited);
    CHECK(join(exited) == kValue);
    const pthread_t cancelled = start([] { sleep(1000); });
    for (int n = 0; n < 5; ++n) cancel_perhaps_ended(cancelled);
    if (i % 2 == 0) nap(kMs);
    cancel_perhaps_ended(cancelled);
    CHECK(join(cancelled) == PTHREAD_CANCELED);
    // Nothing of it is left for the next ones.
    const pthread_t next = start([] { pthread_testcancel(); });
    CHECK(join(next) == nullptr);
    // Not begun: it runs, until its first cancellation point.
    static std::atomic<int> begun;
    begun = 0;
    const pthread_t early = start([] {
      ++begun;
      usleep(1);
      ++begun;
    });
    CHECK_EQ(pthread_cancel(early), 0);
    CHECK(join(early) == PTHREAD_CANCELED);
    CHECK_EQ(begun, 1);
    // Detached.
    static std::atomic<bool> waits;
    waits = false;
    const pthread_t detached = start([] {
      pthread_cleanup_push([](void*) { ++cleaned; }, nullptr);
      waits = true;
      sleep(1000);
      pthread_cleanup_pop(0);
    });
    CHECK_EQ(pthread_detach(detached), 0);
    while (!waits) sched_yield();
    CHECK_EQ(pthread_cancel(detached), 0);
    while (cleaned != i + 1) nap(kMs / 4);
  }
}

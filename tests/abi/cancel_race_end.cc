// abi: threads=236
// A request beside the end of its thread: it ends with its own value or as cancelled, its clean-up has run once or not at
// all, and the next thread knows nothing of it. With many cancellers for one thread, and threads that cancel each other.
#include "abi.h"

static void* const kValue = reinterpret_cast<void*>(uintptr_t{77});
static std::atomic<int> cleaned;

static void* short_life(void* how) {
  const auto i = reinterpret_cast<uintptr_t>(how);
  pthread_cleanup_push([](void*) { ++cleaned; }, nullptr);
  switch (i % 4) {
    case 1:
      pthread_testcancel();
      break;
    case 2:
      usleep(static_cast<useconds_t>(i % 50));
      break;
    case 3:
      burn(static_cast<int64_t>(i % 50) * 1000);
      pthread_testcancel();
      break;
  }
  pthread_cleanup_pop(0);
  return kValue;
}

int main() {
  for (uintptr_t i = 0; i < 160; ++i) {
    pthread_t thread;
    cleaned = 0;
    CHECK_EQ(pthread_create(&thread, nullptr, short_life, reinterpret_cast<void*>(i)), 0);
    if (i % 3 == 1) sched_yield();
    if (i % 3 == 2) burn(static_cast<int64_t>(i) * 300);
    cancel_perhaps_ended(thread);
    void* result = join(thread);
    CHECK(result == kValue || result == PTHREAD_CANCELED);
    CHECK_EQ(cleaned, result == PTHREAD_CANCELED);
  }
  for (int round = 0; round < 8; ++round) {
    cleaned = 0;
    std::atomic<bool> go{false};
    const pthread_t target = start([&go] {
      pthread_cleanup_push([](void*) { ++cleaned; }, nullptr);
      while (!go) sched_yield();
      burn(20'000);
      sleep(1000);
      pthread_cleanup_pop(0);
    });
    std::vector<pthread_t> cancellers;
    for (int i = 0; i < 6; ++i)
      cancellers.push_back(start([&go, target] {
        while (!go) sched_yield();
        cancel_perhaps_ended(target);
      }));
    go = true;
    for (pthread_t one : cancellers) CHECK(join(one) == nullptr);
    CHECK(join(target) == PTHREAD_CANCELED);
    CHECK_EQ(cleaned, 1);
  }
  // Each cancels its neighbour in a ring, and sleeps then.
  constexpr int kRing = 20;
  static pthread_t ring[kRing];
  static pthread_barrier_t ready;
  CHECK_EQ(pthread_barrier_init(&ready, nullptr, kRing + 1), 0);
  for (int i = 0; i < kRing; ++i)
    ring[i] = start([i] {
      pthread_barrier_wait(&ready);
      cancel_perhaps_ended(ring[(i + 1) % kRing]);
      sleep(1000);
    });
  pthread_barrier_wait(&ready);
  for (pthread_t one : ring) CHECK(join(one) == PTHREAD_CANCELED);
}

// abi: threads=400 reused=50
// Cancellation and pthread_exit between threads that simply return: results, a cancel for a thread that has finished,
// state and type are new in each thread, a cancelled joiner leaves its thread to others.
#include "abi.h"

static void* const kToken = reinterpret_cast<void*>(uintptr_t{0x1234});

static void expect_default() {
  int state, type;
  CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state), 0);
  CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
  CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type), 0);
  CHECK_EQ(type, PTHREAD_CANCEL_DEFERRED);
}
static void not_cancelled() {
  for (int i = 0; i < 3; ++i) pthread_testcancel();
}

static void cancelled_joiners() {
  std::atomic<bool> go{false}, joining{false};
  const pthread_t target = start([&go] {
    while (!go) nap(kMs);
  });
  for (int i = 0; i < 5; ++i) {
    joining = false;
    const pthread_t joiner = start([&] {
      joining = true;
      join(target);
      FAIL("the join has ended");
    });
    while (!joining) sched_yield();
    if (i % 2 == 0) settle();
    CHECK_EQ(pthread_cancel(joiner), 0);
    CHECK(join(joiner) == PTHREAD_CANCELED);
  }
  // Cancellation disabled: the join goes on.
  joining = false;
  const pthread_t patient = start([&] {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    joining = true;
    join(target);
  });
  while (!joining) sched_yield();
  CHECK_EQ(pthread_cancel(patient), 0);
  settle();
  CHECK_EQ(pthread_tryjoin_np(patient, nullptr), EBUSY);
  go = true;
  CHECK(join(patient) == nullptr);
}

int main() {
  for (int i = 0; i < 50; ++i) {
    join(start(expect_default));
    join(start(not_cancelled));
    pthread_t thread = start([] { pthread_exit(kToken); });
    CHECK(join(thread) == kToken);
    std::atomic<bool> started{false};
    thread = start([&started] {
      started = true;
      for (;;) nap(kSecond);
    });
    while (!started) sched_yield();
    CHECK_EQ(pthread_cancel(thread), 0);
    CHECK(join(thread) == PTHREAD_CANCELED);
    // Finished: nothing happens, and not to the next one either.
    std::atomic<bool> done{false};
    thread = start([&done] { done = true; });
    while (!done) sched_yield();
    if (i % 4 == 0) nap(kMs / 10);
    cancel_perhaps_ended(thread);
    CHECK(join(thread) == nullptr);
    join(start(not_cancelled));
    // Cancelled but never at a cancellation point: its own result.
    std::atomic<bool> posted{false};
    pthread_t counting;
    CHECK_EQ(pthread_create(
                 &counting, nullptr,
                 [](void* flag) -> void* {
                   while (!*static_cast<std::atomic<bool>*>(flag)) sched_yield();
                   return kToken;
                 },
                 &posted),
             0);
    CHECK_EQ(pthread_cancel(counting), 0);
    posted = true;
    CHECK(join(counting) == kToken);
    join(start(not_cancelled));
  }
  cancelled_joiners();
  CHECK_EQ(pthread_join(pthread_self(), nullptr), EDEADLK);
}

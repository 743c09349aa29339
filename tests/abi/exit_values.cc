// abi: threads=8
// The value of pthread_exit, from nested calls and past destructors, is what pthread_join, pthread_tryjoin_np,
// pthread_timedjoin_np and pthread_clockjoin_np see; what these answer while the thread runs, for a bad clock,
// for oneself and a detached one.
#include "abi.h"

static int value;
static std::string order;
static std::atomic<bool> go;

struct Note {
  char c;
  ~Note() { order += c; }
};

static void nested(int depth) {
  const Note note{static_cast<char>('0' + depth)};
  if (depth == 0) pthread_exit(&value);
  if (depth > 0) nested(depth - 1);
}

static pthread_t waiting() {
  go = false;
  return start([] {
    while (!go) nap(kMs / 4);
    pthread_exit(&value);
  });
}

static timespec at(clockid_t clock, int64_t in) { return after_ns(in, clock); }

int main() {
  const pthread_t exiting = start([] { nested(4); });
  CHECK(join(exiting) == &value);
  CHECK(order == "01234");

  pthread_t thread = waiting();
  void* result = &go;
  CHECK_EQ(pthread_tryjoin_np(thread, &result), EBUSY);
  timespec t = at(CLOCK_REALTIME, kMs);
  CHECK_EQ(pthread_timedjoin_np(thread, &result, &t), ETIMEDOUT);
  t = at(CLOCK_MONOTONIC, kMs);
  CHECK_EQ(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &t), ETIMEDOUT);
  t = {0, 0};
  CHECK_EQ(pthread_timedjoin_np(thread, &result, &t), ETIMEDOUT);
  t = {-1, 0};
  CHECK_EQ(pthread_timedjoin_np(thread, &result, &t), ETIMEDOUT);
  t = at(CLOCK_MONOTONIC, kSecond);
  // Before 2.34 glibc leaves it to the kernel to know the clock, again and again.
  if (libc_minor() >= 34)
    CHECK_EQ(pthread_clockjoin_np(thread, &result, CLOCK_PROCESS_CPUTIME_ID, &t), EINVAL);
  CHECK(result == &go);  // untouched by all of these
  go = true;
  t = at(CLOCK_REALTIME, 100 * kSecond);
  CHECK_EQ(pthread_timedjoin_np(thread, &result, &t), 0);
  CHECK(result == &value);

  thread = waiting();
  go = true;
  t = at(CLOCK_MONOTONIC, 100 * kSecond);
  CHECK_EQ(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &t), 0);
  CHECK(result == &value);
  thread = waiting();
  go = true;
  int error;
  while ((error = pthread_tryjoin_np(thread, &result)) == EBUSY) sched_yield();
  CHECK_EQ(error, 0);
  CHECK(result == &value);
  // Ended: whatever the time.
  thread = start([] { pthread_exit(&value); });
  settle();
  t = {0, 0};
  result = nullptr;
  CHECK_EQ(pthread_timedjoin_np(thread, &result, &t), 0);
  CHECK(result == &value);
  // No result wanted; no time limit.
  thread = waiting();
  go = true;
  CHECK_EQ(pthread_timedjoin_np(thread, nullptr, nullptr), 0);

  // Oneself; a detached thread.
  join(start([] {
    timespec until = at(CLOCK_REALTIME, kSecond);
    CHECK_EQ(pthread_join(pthread_self(), nullptr), EDEADLK);
    CHECK_EQ(pthread_timedjoin_np(pthread_self(), nullptr, &until), EDEADLK);
  }));
  thread = waiting();
  CHECK_EQ(pthread_detach(thread), 0);
  CHECK_EQ(pthread_join(thread, nullptr), EINVAL);
  CHECK_EQ(pthread_tryjoin_np(thread, nullptr), EBUSY);
  go = true;
  static std::atomic<bool> ended{false};
  pthread_key_t key;
  CHECK_EQ(pthread_key_create(&key, [](void*) { ended = true; }), 0);
  const pthread_t last = start([key] { pthread_setspecific(key, &ended); });
  go = true;
  join(last);
  CHECK(ended);
  settle();
}

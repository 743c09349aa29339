// Functions as cancellation points: pthreads(7) lists them. Each is called with the request pending, or blocks in the
// call when it arrives.
#pragma once

#include <functional>

#include "abi.h"

namespace upcall::test {

// A call that is to end its thread. It is made in a thread of its own.
struct Point {
  const char* name;
  std::function<void()> call;
};

// What a cancelled thread must have run: a clean-up handler and a destructor, in reverse order of their beginning.
struct Unwound {
  std::string order;
  std::atomic<bool> entered{false}, returned{false};
};

inline pthread_t start_point(const Point& point, Unwound* seen, bool pending) {
  return start([&point, seen, pending] {
    struct Last {
      Unwound* to;
      ~Last() { to->order += 'd'; }
    };
    const Last last{seen};
    pthread_cleanup_push([](void* to) { static_cast<Unwound*>(to)->order += 'c'; }, seen);
    if (pending) CHECK_EQ(pthread_cancel(pthread_self()), 0);
    seen->entered = true;
    point.call();
    seen->returned = true;
    pthread_cleanup_pop(0);
  });
}

inline void join_point(const Point& point, pthread_t thread, const Unwound& seen, const char* when) {
  void* result = join(thread);
  if (seen.returned) FAIL("%s came back with the request %s", point.name, when);
  if (result != PTHREAD_CANCELED) FAIL("%s: not cancelled, the request %s", point.name, when);
  if (seen.order != "cd") FAIL("%s: clean-up '%s', the request %s", point.name, seen.order.c_str(), when);
}

// The request is there before the call, which needs not block.
inline void cancel_pending(const std::vector<Point>& points) {
  for (const Point& point : points) {
    Unwound seen;
    join_point(point, start_point(point, &seen, true), seen, "pending");
  }
}

// All of them block, beside each other; then they are cancelled.
inline void cancel_blocked(const std::vector<Point>& points) {
  std::vector<Unwound> seen(points.size());
  std::vector<pthread_t> threads;
  for (size_t i = 0; i < points.size(); ++i) {
    threads.push_back(start_point(points[i], &seen[i], false));
    while (!seen[i].entered) sched_yield();
  }
  settle();
  for (size_t i = 0; i < points.size(); ++i)
    if (seen[i].returned) FAIL("%s does not block", points[i].name);
  for (pthread_t thread : threads) CHECK_EQ(pthread_cancel(thread), 0);
  for (size_t i = 0; i < points.size(); ++i) join_point(points[i], threads[i], seen[i], "arriving");
}

// Calls that are no cancellation points: with the request pending they do what they do.
inline void not_cancelled(const std::vector<Point>& points) {
  for (const Point& point : points) {
    static std::atomic<bool> returned;
    returned = false;
    const pthread_t thread = start([&point] {
      CHECK_EQ(pthread_cancel(pthread_self()), 0);
      point.call();
      returned = true;
      pthread_testcancel();
      FAIL("%s: the request is gone", point.name);
    });
    CHECK(join(thread) == PTHREAD_CANCELED);
    if (!returned) FAIL("%s is a cancellation point", point.name);
  }
}

// Clean-up handler of a wait with an error-checking mutex: it is held, and is given back.
inline void release_held(void* argument) {
  auto* mutex = static_cast<pthread_mutex_t*>(argument);
  CHECK_EQ(pthread_mutex_trylock(mutex), EBUSY);
  CHECK_EQ(pthread_mutex_unlock(mutex), 0);
}

// All earlier waiters are gone: a wake-up goes to who waits now.
inline void wakes_who_waits(pthread_mutex_t* mutex, pthread_cond_t* cond) {
  bool go = false;
  const pthread_t waiter = start([&] {
    pthread_mutex_lock(mutex);
    while (!go) CHECK_EQ(pthread_cond_wait(cond, mutex), 0);
    pthread_mutex_unlock(mutex);
  });
  settle();
  pthread_mutex_lock(mutex);
  go = true;
  pthread_mutex_unlock(mutex);
  CHECK_EQ(pthread_cond_signal(cond), 0);
  CHECK(join(waiter) == nullptr);
}

// `body` in a thread with a clean-up handler that counts.
template <class F>
pthread_t start_counted(F body, std::atomic<int>* cleaned) {
  return start([body, cleaned] {
    pthread_cleanup_push([](void* count) { ++*static_cast<std::atomic<int>*>(count); }, cleaned);
    body();
    pthread_cleanup_pop(0);
  });
}

}  // namespace upcall::test

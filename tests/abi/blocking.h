// While one thread is blocked in a call, the others must get on, on however few processors.
#pragma once

#include "abi.h"

namespace upcall::test {

// Runs `block` in a thread; lets two others hand work to each other and compute meanwhile; then calls `release`.
template <class Block, class Release>
void others_go_on(const char* what, Block block, Release release) {
  std::atomic<bool> entered{false}, returned{false};
  const pthread_t blocked = start([&] {
    entered = true;
    block();
    returned = true;
  });
  while (!entered) sched_yield();
  settle();
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  int turn = 0;
  const auto player = [&](int me) {
    for (int i = 0; i < 200; ++i) {
      pthread_mutex_lock(&mutex);
      while (turn != me) pthread_cond_wait(&cond, &mutex);
      turn = 1 - me;
      pthread_cond_signal(&cond);
      pthread_mutex_unlock(&mutex);
      burn(20'000);
    }
  };
  const pthread_t a = start([&] { player(0); }), b = start([&] { player(1); });
  join(a);
  join(b);
  if (returned) FAIL("%s returned before its time", what);
  release();
  join(blocked);
}

}  // namespace upcall::test

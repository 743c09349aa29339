// abi: threads=25 unseen=1 timeout=60 upcalls=20
// Faults, calls in made code, mutexes, yields and computing mixed in many threads; every page and every token arrives once.
#include <sched.h>

#include <random>

#include "unseen.h"

int main() {
  constexpr size_t kFaulting = 8, kEach = 24, kPages = kFaulting * kEach;
  SlowPages pages(kPages);
  auto call = made_syscall();
  std::atomic<bool> stop{false};
  std::atomic<long> sum{0};
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  long guarded = 0;
  int pipes[2];
  CHECK_EQ(pipe(pipes), 0);
  std::vector<pthread_t> threads;
  pthread_t server = start([&] {
    while (!stop) {
      const long i = pages.waiting();
      if (i < 0)
        nap(kMs / 20);
      else
        pages.serve(static_cast<size_t>(i), static_cast<char>(i % 100));
    }
  });
  for (size_t k = 0; k < kFaulting; ++k)
    threads.push_back(start([&, k] {
      std::minstd_rand random(static_cast<unsigned>(k));
      for (size_t i = k * kEach; i < (k + 1) * kEach; ++i) {
        CHECK_EQ(*pages.page(i), static_cast<char>(i % 100));
        sum += static_cast<long>(i);
        if (random() % 2) sched_yield();
        if (random() % 4 == 0) burn(kMs / 10);
        pthread_mutex_lock(&lock);
        ++guarded;
        pthread_mutex_unlock(&lock);
      }
    }));
  for (int k = 0; k < 8; ++k)
    threads.push_back(start([&] {
      for (int i = 0; i < 50; ++i) {
        char c;
        CHECK_EQ(call(SYS_read, pipes[0], reinterpret_cast<long>(&c), 1), 1);
        pthread_mutex_lock(&lock);
        ++guarded;
        pthread_mutex_unlock(&lock);
      }
    }));
  for (int k = 0; k < 8; ++k)
    threads.push_back(start([&, k] {
      for (int i = 0; i < 50; ++i) {
        if ((i + k) % 3 == 0) burn(kMs / 10);
        const char c = 'x';
        CHECK_EQ(call(SYS_write, pipes[1], reinterpret_cast<long>(&c), 1), 1);
        if (i % 8 == 0) nap(kMs / 4);
      }
    }));
  join_all(threads);
  stop = true;
  join(server);
  CHECK_EQ(sum, static_cast<long>(kPages * (kPages - 1) / 2));
  CHECK_EQ(guarded, static_cast<long>(kPages) + 8 * 50);
}

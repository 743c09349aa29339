// For programs about processes and their children: threads in every state beside what is tested, children that check.
#pragma once

#include <dirent.h>

#include "abi.h"

namespace upcall::test {

// Threads of this process that the kernel knows.
inline int kernel_threads() {
  DIR* directory = opendir("/proc/self/task");
  CHECK(directory != nullptr);
  int count = 0;
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

// `body` in a forked child, which ends with 0 unless the body ends it.
template <class F>
pid_t start_child(F body) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child != 0) return child;
  body();
  _exit(0);
}

// What a child writes into a pipe until it ends, with status 0. The pipe's writing end is its own.
inline std::string text_of(pid_t child, const int (&ends)[2]) {
  close(ends[1]);
  std::string text;
  char buffer[64];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  wait_exit(child, 0);
  return text;
}

template <class F>
void run_child(F body) {
  wait_exit(start_child(body), 0);
}

// A process that can use threads: makes some, which wait for each other.
inline void use_threads(int count = 3) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  int there = 0;
  std::vector<pthread_t> threads;
  for (int i = 0; i < count; ++i)
    threads.push_back(start([&] {
      CHECK(gettid() != getpid());
      pthread_mutex_lock(&mutex);
      if (++there == count) pthread_cond_broadcast(&cond);
      while (there < count) pthread_cond_wait(&cond, &mutex);
      pthread_mutex_unlock(&mutex);
    }));
  join_all(threads);
  CHECK_EQ(there, count);
}

// Threads that compute, yield, wait for a mutex and a condition, sleep, and are blocked in the kernel.
class Crowd {
 public:
  Crowd() {
    CHECK_EQ(pipe(pipe_), 0);
    pthread_mutex_lock(&held_);
    add([this] {
      while (!stop_) burn(200'000);
    });
    add([this] {
      while (!stop_) nap(kMs);
    });
    add([this] {
      pthread_mutex_lock(&held_);
      pthread_mutex_unlock(&held_);
    });
    add([this] {
      pthread_mutex_lock(&mutex_);
      while (!stop_) pthread_cond_wait(&cond_, &mutex_);
      pthread_mutex_unlock(&mutex_);
    });
    for (int i = 0; i < 2; ++i)
      add([this] {
        char byte;
        while (read(pipe_[0], &byte, 1) < 0 && errno == EINTR) {
        }
      });
    while (begun_ < 6) nap(kMs / 4);
    nap(kMs);
  }
  // By whoever made it: the mutex is its own.
  void end() {
    pthread_mutex_lock(&mutex_);
    stop_ = true;
    pthread_cond_broadcast(&cond_);
    pthread_mutex_unlock(&mutex_);
    pthread_mutex_unlock(&held_);
    CHECK_EQ(write(pipe_[1], "xx", 2), 2);
    join_all(threads_);
    close(pipe_[0]), close(pipe_[1]);
  }

 private:
  template <class F>
  void add(F body) {
    threads_.push_back(start([this, body] {
      ++begun_;
      body();
    }));
  }

  int pipe_[2];
  pthread_mutex_t held_ = PTHREAD_MUTEX_INITIALIZER, mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond_ = PTHREAD_COND_INITIALIZER;
  std::atomic<bool> stop_{false};
  std::atomic<int> begun_{0};
  std::vector<pthread_t> threads_;
};

}  // namespace upcall::test

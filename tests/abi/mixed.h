// Threads that block, fault, wait, yield and compute, and count what they did: whatever is done to the process from outside
// meanwhile, nothing may be lost.
#pragma once

#include <sched.h>
#include <sys/prctl.h>

#include "unseen.h"

namespace upcall::test {

// A process of ours beside the one under test, ended by kill.
template <class F>
pid_t start_beside(F function) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) function(parent);
    _exit(0);
  }
  return child;
}

inline void end_beside(pid_t child) {
  CHECK_EQ(kill(child, SIGKILL), 0);
  wait_status(child);
}

// Twelve threads, joined at the end.
inline void mixed_work(int rounds = 100) {
  static auto call = made_syscall();
  int pipes[2];
  CHECK_EQ(pipe(pipes), 0);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  long guarded = 0;
  const auto count = [&] {
    pthread_mutex_lock(&mutex);
    ++guarded;
    pthread_mutex_unlock(&mutex);
  };
  std::vector<pthread_t> threads;
  for (int k = 0; k < 4; ++k)
    threads.push_back(start([&, k] {
      for (int i = 0; i < rounds; ++i) {
        char c;
        if (k % 2)
          CHECK_EQ(read(pipes[0], &c, 1), 1);
        else
          CHECK_EQ(call(SYS_read, pipes[0], reinterpret_cast<long>(&c), 1), 1);
        count();
      }
    }));
  for (int k = 0; k < 4; ++k)
    threads.push_back(start([&, k] {
      for (int i = 0; i < rounds; ++i) {
        if ((i + k) % 4 == 0) burn(kMs);
        const char c = 'x';
        CHECK_EQ(write(pipes[1], &c, 1), 1);
      }
    }));
  for (int k = 0; k < 4; ++k)
    threads.push_back(start([&] {
      for (int i = 0; i < rounds; ++i) {
        nap(kMs / 2);
        count();
        sched_yield();
      }
    }));
  join_all(threads);
  CHECK_EQ(guarded, 8 * rounds);
  close(pipes[0]);
  close(pipes[1]);
}

// One thread blocks in a read, seen or unseen, while another computes; both share one CPU if there is only one. How long the
// computing one had to wait for its turn, at most: it is the one who ends the read, so that nothing else can.
inline int64_t longest_takeover(int rounds, bool unseen) {
  auto call = made_syscall();
  int pipes[2];
  CHECK_EQ(pipe(pipes), 0);
  std::atomic<int64_t> entered{0};
  int64_t longest = 0;
  const pthread_t computing = start([&] {
    for (int done = 0; done < rounds; ++done) {
      for (; entered == 0; sched_yield()) burn(50'000);
      const int64_t waited = now_ns() - entered;
      if (waited > longest) longest = waited;
      burn(5 * kMs);
      entered = 0;
      const char c = 'x';
      CHECK_EQ(write(pipes[1], &c, 1), 1);
    }
  });
  const pthread_t blocking = start([&] {
    for (int i = 0; i < rounds; ++i) {
      char c;
      entered = now_ns();
      if (unseen)
        CHECK_EQ(call(SYS_read, pipes[0], reinterpret_cast<long>(&c), 1), 1);
      else
        CHECK_EQ(read(pipes[0], &c, 1), 1);
    }
  });
  join(blocking);
  join(computing);
  close(pipes[0]);
  close(pipes[1]);
  return longest;
}

// Lines that hold `text` in what the function wrote to standard error, which is passed on.
template <class F>
int lines_with(const char* text, F function) {
  FILE* file = tmpfile();
  CHECK(file != nullptr);
  const int before = dup(2);
  CHECK(dup2(fileno(file), 2) == 2);
  function();
  CHECK(dup2(before, 2) == 2);
  rewind(file);
  char line[1024];
  int found = 0;
  while (fgets(line, sizeof line, file)) {
    dprintf(2, "%s", line);
    found += strstr(line, text) != nullptr;
  }
  fclose(file);
  close(before);
  return found;
}

inline bool on_upcall() { return getenv("UPCALL_PROCESSORS") != nullptr; }

}  // namespace upcall::test

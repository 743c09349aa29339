// abi: threads=6
// posix_spawn, vfork and fork from several threads at once, with a handler that runs all the time: each call gives its own
// child, no status is lost, descriptors that close on exec are not carried over by another thread's child.
#include <fcntl.h>
#include <spawn.h>

#include "process.h"

static std::atomic<int> handled{0};

static pid_t forked(const char* const* words, bool with_exec, int code) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (with_exec) execv("/bin/sh", const_cast<char**>(words));
  _exit(with_exec ? 99 : code);
}

static pid_t vforked(const char* const* words) {
  const pid_t child = vfork();
  if (child != 0) return child;
  execv("/bin/sh", const_cast<char**>(words));
  _exit(99);
}

static void one(int id, int i) {
  int ends[2];
  CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int code = 10 * (id + 1) + i;
  const std::string command = "exit " + std::to_string(code);
  const char* words[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t child = -1;
  if (id % 2 == 0)
    CHECK_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(words), environ), 0);
  else
    child = id == 1 ? vforked(words) : forked(words, i % 2 == 0, code);
  CHECK(child > 0);
  wait_exit(child, code);
  // Forked children of others may have it for a moment, executed programs not.
  close(ends[1]);
  char byte;
  while (read(ends[0], &byte, 1) == -1) CHECK_EQ(errno, EINTR);
  close(ends[0]);
}

int main() {
  install(
      SIGUSR1, [](int) { ++handled; }, SA_RESTART);
  std::atomic<int> working{4};
  std::vector<pthread_t> threads;
  for (int id = 0; id < 4; ++id)
    threads.push_back(start([id, &working] {
      for (int i = 0; i < 4; ++i) one(id, i);
      --working;
      while (working >= 0) nap(kMs);  // can be signalled until then
    }));
  const pthread_t signalling = start([&] {
    while (working > 0) {
      kill(getpid(), SIGUSR1);
      for (pthread_t thread : threads) pthread_kill(thread, SIGUSR1);
      nap(300'000);
    }
    --working;
  });
  const pthread_t computing = start([&] {
    while (working > 0) burn(100'000);
  });
  join(signalling);
  join_all(threads);
  join(computing);
  CHECK(handled > 0);
  CHECK_ERRNO(wait(nullptr), ECHILD);
}

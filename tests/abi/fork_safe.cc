// abi: threads=7
// _Fork(3): fork without the handlers of pthread_atfork and without locks, for signal handlers: from one that has interrupted
// malloc, in threads that compute, sleep and read.
#include <dlfcn.h>

#include "process.h"

namespace {

std::atomic<int> forked{0}, handlers{0};

// Before 2.34 glibc has no such function. That of the programs' own C library, which may be newer than what they are built for.
pid_t (*fork_safely)() = nullptr;

void fork_in_handler(int) {
  const int saved = errno;
  const pid_t child = fork_safely();
  if (child == 0) {
    const bool alone = syscall(SYS_gettid) == getpid();
    _exit(alone && handlers == 0 ? 8 : 9);
  }
  wait_exit(child, 8);
  ++forked;
  errno = saved;
}

}  // namespace

int main() {
  fork_safely = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_DEFAULT, "_Fork"));
  if (!fork_safely) skip("this C library has no _Fork");
  Crowd crowd;
  CHECK_EQ(pthread_atfork([] { ++handlers; }, [] { ++handlers; }, [] { ++handlers; }), 0);
  install(SIGUSR1, fork_in_handler, SA_RESTART);
  std::atomic<bool> stop{false};
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  std::vector<pthread_t> targets;
  targets.push_back(start([&] {
    while (!stop) free(malloc(1000));
  }));
  targets.push_back(start([&] {
    while (!stop) nap(10 * kMs);
  }));
  targets.push_back(start([&] {
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
  }));
  for (int round = 0; round < 3; ++round)
    for (pthread_t target : targets) {
      const int before = forked;
      CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
      while (forked == before) nap(kMs / 2);
    }
  stop = true;
  CHECK_EQ(write(ends[1], "x", 1), 1);
  join_all(targets);
  CHECK_EQ(handlers.load(), 0);
  crowd.end();
}

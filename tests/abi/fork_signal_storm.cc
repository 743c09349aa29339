// abi: threads=8
// fork(2) and posix_spawn are not interrupted: with signals for the process and its threads all the time neither fails with EINTR
// nor loses its child, a handler runs in the process that was signalled only, and a child's handlers, which it inherits, are not
// run by signals that were pending for its parent.
#include <spawn.h>

#include "process.h"

static std::atomic<int> handled{0}, elsewhere{0};
static pid_t parent;

int main() {
  parent = getpid();
  Crowd crowd;
  install(
      SIGUSR1,
      [](int) {
        const int saved = errno;
        ++(syscall(SYS_getpid) == parent ? handled : elsewhere);
        errno = saved;
      },
      SA_RESTART);
  std::atomic<bool> stop{false};
  std::vector<pthread_t> forking;
  for (int id = 0; id < 2; ++id)
    forking.push_back(start([id] {
      const char* words[] = {"true", nullptr};
      for (int i = 0; i < 8; ++i) {
        pid_t child = 0;
        if (i % 4 == 3)
          CHECK_EQ(posix_spawn(&child, "/bin/true", nullptr, nullptr, const_cast<char**>(words), environ), 0);
        else
          child = start_child([&] {
            if (i % 4 == id) use_threads(2);
            _exit(elsewhere == 0 ? 0 : 1);
          });
        wait_exit(child, 0);
      }
    }));
  const pthread_t signalling = start([&] {
    while (!stop) {
      kill(parent, SIGUSR1);
      for (pthread_t thread : forking) pthread_kill(thread, SIGUSR1);
      nap(100'000);
    }
  });
  // They are joined after the last signal.
  for (int left = 24; left > 0;) {
    siginfo_t info = {};
    nap(kMs);
    left = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD && handled > 50
               ? 0
               : left;
  }
  stop = true;
  join(signalling);
  join_all(forking);
  CHECK(elsewhere == 0 && handled > 0);
  crowd.end();
}

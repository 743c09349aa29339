// abi: threads=6
// A fork of a fork of a fork: each child is a copy of one thread of its parent, makes threads itself, and forks from one of
// them, while others of its own compute and wait. Each end is seen by the parent next to it (fork(2), wait(2)).
#include "process.h"

namespace {

thread_local int level = 0;

void descend(int depth, pid_t parent) {
  CHECK_EQ(gettid(), getpid());
  CHECK_EQ(getppid(), parent);
  CHECK_EQ(kernel_threads(), 1);
  CHECK_EQ(level, depth - 1);
  if (depth == 5) {
    use_threads(2);
    _exit(50);
  }
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&] {
    while (!stop) burn(100'000);
  });
  const pthread_t forking = start([&] {
    level = depth;
    const pid_t me = getpid();
    const pid_t child = fork();
    if (child == 0) descend(depth + 1, me);
    wait_exit(child, depth == 4 ? 50 : 10 + depth + 1);
  });
  join(forking);
  stop = true;
  join(computing);
  _exit(10 + depth);
}

}  // namespace

int main() {
  Crowd crowd;
  const pid_t me = getpid();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    level = 0;
    descend(1, me);
  }
  wait_exit(child, 11);
  crowd.end();
}

// abi: threads=80 reused=20
// fork from a thread that runs in the place of an ended one: the child makes and joins threads, ends by return, by
// exit or by pthread_exit; set*id reaches every thread, also those that have finished.
#include "abi.h"

static void child_work() {
  for (int i = 0; i < 10; ++i) {
    void* token = &token;
    CHECK(join(start([] {})) == nullptr);
    join(start([] { CHECK(gettid() != getpid()); }));
  }
}

static void fork_here(int how) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(15);
    CHECK_EQ(gettid(), getpid());
    child_work();
    if (how == 0) _exit(0);
    if (how == 1) exit(0);
    if (how == 2) pthread_exit(nullptr);
    return;
  }
  wait_exit(child, 0);
}

int main() {
  for (int i = 0; i < 20; ++i) join(start([] {}));
  for (int how = 0; how < 4; ++how)
    for (int i = 0; i < 2; ++i) {
      join(start([how] { fork_here(how); }));
      join(start([] {}));
    }
  fork_here(0);
  fork_here(1);
  std::vector<pthread_t> finished;
  for (int i = 0; i < 10; ++i) finished.push_back(start([] {}));
  settle();
  CHECK_EQ(setuid(getuid()), 0);
  CHECK_EQ(setgid(getgid()), 0);
  join_all(finished);
  for (int i = 0; i < 20; ++i) join(start([] {}));
  CHECK_EQ(setuid(getuid()), 0);
  for (int i = 0; i < 20; ++i) join(start([] {}));
}

// abi: threads=3 timeout=60
// While the process's ids change for as long as a thread cannot be told, being in vfork(2), others go on: on one processor
// as well.
#include <fcntl.h>

#include "credentials.h"

int main() {
  need_root();
  int fds[2];
  CHECK_EQ(pipe(fds), 0);
  std::atomic<int> step{0};
  pthread_t parent = start([&] {
    step = 1;
    const pid_t child = vfork();
    if (child == 0) {
      char byte;
      syscall(SYS_read, fds[0], &byte, 1);  // until the last thread has written
      _exit(0);
    }
    wait_exit(child, 0);
    CHECK_EQ(geteuid(), 1000);
  });
  while (step < 1) nap(kMs / 5);
  settle();
  pthread_t writer = start([&] {
    while (step < 3) nap(kMs / 5);
    CHECK_EQ(write(fds[1], "x", 1), 1);
  });
  pthread_t changer = start([&] {
    step = 2;
    CHECK_EQ(seteuid(1000), 0);
    check_all(0, 1000, 0, 0, 0, 0);
    step = 4;
  });
  while (step < 2) nap(kMs / 5);
  settle();
  step = 3;
  join(writer);
  join(parent);
  join(changer);
  CHECK_EQ(step, 4);
  CHECK_EQ(seteuid(0), 0);
}

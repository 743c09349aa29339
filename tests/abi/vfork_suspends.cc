// abi: threads=7
// vfork(2): the calling thread is suspended until the child ends or executes a program; other threads of the parent are not:
// they compute, wait for each other and make threads. The child shares memory with its parent.
#include "process.h"

int main() {
  Crowd crowd;
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  for (int how = 0; how < 2; ++how) {
    std::atomic<bool> in_child{false}, returned{false};
    volatile int written = 0;
    const pthread_t forking = start([&] {
      const char* words[] = {"sh", "-c", "exit 31", nullptr};
      const pid_t child = vfork();
      if (child == 0) {
        written = 77;
        in_child = true;
        char byte;
        while (syscall(SYS_read, ends[0], &byte, 1) != 1) {
        }
        if (how == 0) _exit(31);
        execv("/bin/sh", const_cast<char**>(words));
        _exit(99);
      }
      returned = true;
      CHECK(child > 0);
      wait_exit(child, 31);
    });
    while (!in_child) nap(kMs / 4);
    for (int i = 0; i < 3; ++i) use_threads();
    burn(2 * kMs);
    nap(2 * kMs);
    CHECK(!returned);
    CHECK_EQ(written, 77);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    join(forking);
    CHECK(returned);
  }
  crowd.end();
}

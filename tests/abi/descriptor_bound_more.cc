// abi: threads=3 descriptors=events bound=1 timeout=10
// A thread that has a kernel thread of its own closes, or replaces, all numbers above some: others go on waiting.
#include <linux/prctl.h>
#include <sys/prctl.h>

#include "descriptor.h"

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  const Pair p = unix_pair();
  const pthread_t first = start([&] { CHECK_EQ(get(p.a), '1'); });
  settle();
  put(p.b, '1');
  join(first);
  const pthread_t second = start([&] { CHECK_EQ(get(p.a), '2'); });
  settle();
  join(start([&] {
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (!only || *only == 'c') CHECK_EQ(syscall(436, p.b + 1, ~0u, 0), 0);
    if (!only || *only == 'd') {
      for (int fd = p.b + 1; fd < 1024; ++fd) CHECK_EQ(dup2(2, fd), fd);
      for (int fd = p.b + 1; fd < 1024; ++fd) CHECK_EQ(close(fd), 0);
    }
  }));
  put(p.b, '2');
  join(second);
}

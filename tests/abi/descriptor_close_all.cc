// abi: threads=3 descriptors=events
// A program that closes every descriptor it can name, one by one or by close_range, and makes copies onto any number, disturbs
// no thread that waits for another one.
#include <sys/resource.h>

#include "descriptor.h"

int main() {
  const Pair p = unix_pair();
  for (int way = 0; way < 3; ++way) {
    const pthread_t reader = start([&] { CHECK_EQ(get(p.a), 'x'); });
    settle();
    const int last = p.a > p.b ? p.a : p.b;
    if (way == 0) {
      for (int fd = last + 1; fd < 2048; ++fd) CHECK(close(fd) == 0 || errno == EBADF);
    } else if (way == 1) {
      CHECK_EQ(syscall(436, last + 1, ~0u, 0), 0);
    } else {
      for (int fd = last + 1; fd < 1024; ++fd) CHECK_EQ(dup2(2, fd), fd);
      for (int fd = last + 1; fd < 1024; ++fd) CHECK_EQ(close(fd), 0);
    }
    put(p.b, 'x');
    join(reader);
  }
}

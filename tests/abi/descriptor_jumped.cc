// abi: threads=2 descriptors=events timeout=15
// A handler leaves a read by a jump while its descriptor is being closed: the same call on another descriptor reads that one, and no
// number is lost.
#include <setjmp.h>
#include <signal.h>

#include "descriptor.h"

namespace {

sigjmp_buf g_out;
std::atomic<bool> g_armed{false};

}  // namespace

int main() {
  install(SIGUSR1, [](int) {
    if (g_armed) siglongjmp(g_out, 1);
  });
  const int before = dup(0);
  close(before);
  for (int round = 0; round < 10; ++round) {
    const Pair p = unix_pair(), q = unix_pair();
    const pthread_t t = start([&] {
      volatile int fd = p.a;
      if (sigsetjmp(g_out, 1) == 0)
        g_armed = true;
      else
        fd = q.a, g_armed = false;
      char byte = 0;
      const ssize_t n = read(fd, &byte, 1);
      CHECK_EQ(n, 1);
      CHECK_EQ(byte, 'q');
    });
    while (!g_armed) sched_yield();
    settle();
    CHECK_EQ(close(p.a), 0);
    CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
    put(q.b, 'q');
    send(p.b, "p", 1, MSG_NOSIGNAL);  // nobody may be there any more
    join(t);
    close(p.b);
    close_both(q);
    const int now = dup(0);
    CHECK_EQ(now, before);
    close(now);
  }
}

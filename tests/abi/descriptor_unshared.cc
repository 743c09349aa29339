// abi: threads=2 descriptors=events bound=2 timeout=10
// close_range with CLOSE_RANGE_UNSHARE: a table of its own for the thread that calls it, the same one as before for the others.
#include "descriptor.h"

int main() {
  const Pair p = unix_pair();
  std::atomic<int> step{0};
  const pthread_t own = start([&] {
    CHECK_EQ(syscall(436, p.a, p.a, 2), 0);
    CHECK_ERRNO(fcntl(p.a, F_GETFD), EBADF);
    step = 1;
    while (step < 2) nap(kMs);
    CHECK_ERRNO(fcntl(p.a, F_GETFD), EBADF);
  });
  while (step < 1) sched_yield();
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(fcntl(p.a, F_GETFD), 0);
    nap(kMs);
  }
  const pthread_t reader = start([&] { CHECK_EQ(get(p.a), 'x'); });
  settle();
  put(p.b, 'x');
  join(reader);
  step = 2;
  join(own);
}

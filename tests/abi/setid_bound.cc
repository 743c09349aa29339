// abi: threads=6 bound=3 counters=bound_threads:1- timeout=60
// The process's ids change for threads that have a working directory of their own (unshare), too, when others change them
// and when they do.
#include <sched.h>

#include "credentials.h"

int main() {
  need_root();
  const RootsFile file;
  Crowd crowd(1);
  std::atomic<int> step{0};
  pthread_t apart = start([&] {
    CHECK_EQ(unshare(CLONE_FS), 0);
    step = 1;
    while (step < 2) nap(kMs / 5);
    CHECK_EQ(getegid(), 1234);
    CHECK_EQ(setuid(kNobody), 0);
    check_all(kNobody, kNobody, kNobody, 0, 1234, 0);
    join(start([&] { CHECK(!may_read(file.path())); }));
  });
  while (step < 1) nap(kMs / 5);
  CHECK_EQ(setegid(1234), 0);
  check_all(0, 0, 0, 0, 1234, 0);
  step = 2;
  join(apart);
  CHECK(!may_read(file.path()));
  crowd.stop();
}

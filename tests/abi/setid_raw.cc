// abi: threads=4 bound=2 counters=bound_threads:2-2 timeout=60
// setresuid(2), "C library/kernel differences": at the kernel level, user ids and group ids are per-thread attributes. A raw
// call changes its thread and those that this one makes, and no other.
#include "credentials.h"

int main() {
  need_root();
  const RootsFile file;
  std::atomic<int> step{0};
  pthread_t other = start([&] {
    while (step < 1) nap(kMs / 5);
    CHECK_EQ(geteuid(), 0);
    CHECK(may_read(file.path()));
    step = 2;
  });
  pthread_t raw = start([&] {
    CHECK_EQ(syscall(SYS_setresgid, 1234, 1234, -1), 0);
    CHECK_EQ(syscall(SYS_setresuid, -1, 1000, -1), 0);
    CHECK_EQ(geteuid(), 1000);
    CHECK(!may_read(file.path()));
    step = 1;
    while (step < 2) nap(kMs / 5);
    for (int i = 0; i < 20; ++i) {
      sched_yield();
      nap(kMs / 10);
      CHECK_EQ(geteuid(), 1000);
      CHECK_EQ(getgid(), 1234);
    }
    join(start([&] {
      CHECK_EQ(geteuid(), 1000);
      CHECK(!may_read(file.path()));
    }));
    CHECK_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
    CHECK(may_read(file.path()));
  });
  join(other);
  join(raw);
  CHECK_EQ(geteuid(), 0);
  CHECK_EQ(getgid(), 0);
  join(start([&] {
    CHECK_EQ(getegid(), 0);
    CHECK(may_read(file.path()));
  }));
}

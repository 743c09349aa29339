// abi: threads=3 bound=2 counters=bound_threads:1- timeout=60
// setfsuid(2) and setfsgid(2): the file ids are the calling thread's, and the C library makes no more of them. What a thread
// sets it keeps, and gives to those that it makes.
#include "credentials.h"

int main() {
  need_root();
  const RootsFile file;
  std::atomic<int> step{0};
  pthread_t other = start([&] {
    while (step < 1) nap(kMs / 5);
    CHECK(may_read(file.path()));
    CHECK_EQ(setfsuid(static_cast<uid_t>(-1)), 0);
    step = 2;
  });
  pthread_t changed = start([&] {
    CHECK_EQ(setfsgid(1234), 0);
    CHECK_EQ(setfsuid(kNobody), 0);
    step = 1;
    CHECK(!may_read(file.path()));
    while (step < 2) nap(kMs / 5);
    for (int i = 0; i < 10; ++i) {
      nap(kMs / 10);
      CHECK(!may_read(file.path()));
    }
    CHECK_EQ(geteuid(), 0);
    join(start([&] { CHECK(!may_read(file.path())); }));
    CHECK_EQ(setfsuid(0), kNobody);
    CHECK_EQ(setfsgid(0), 1234);
    CHECK(may_read(file.path()));
  });
  join(other);
  join(changed);
  CHECK(may_read(file.path()));
}

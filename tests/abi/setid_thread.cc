// abi: threads=9 timeout=60
// The same from a thread: group and user ids, and all threads find them, the main one too.
#include "credentials.h"

int main() {
  need_root();
  const RootsFile file;
  Crowd crowd(2);
  join(start([&] {
    CHECK_EQ(setgid(1234), 0);
    check_all(0, 0, 0, 1234, 1234, 1234);
    CHECK_EQ(setresuid(1, 2, 3), 0);
    check_all(1, 2, 3, 1234, 1234, 1234);
    CHECK(!may_read(file.path()));
  }));
  CHECK(!may_read(file.path()));
  unsigned r, e, s;
  CHECK_EQ(getresuid(&r, &e, &s), 0);
  CHECK(r == 1 && e == 2 && s == 3);
  crowd.stop();
}

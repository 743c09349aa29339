// abi: threads=13 timeout=60
// setuid(2), POSIX: the user ids of the process, not of a thread, are changed. When it returns in the main thread, all have
// the new ones: threads that compute, are blocked in calls, sleep or wait, the kernel threads below them, and those made
// later.
#include "credentials.h"

int main() {
  need_root();
  const RootsFile file;
  Crowd crowd(3);
  CHECK(may_read(file.path()));
  CHECK_EQ(setuid(kNobody), 0);
  check_user(kNobody);
  CHECK(!may_read(file.path()));
  join(start([&] {
    CHECK_EQ(getuid(), kNobody);
    CHECK(!may_read(file.path()));
  }));
  crowd.stop();
  check_user(kNobody);
  CHECK_ERRNO(setuid(0), EPERM);
  check_user(kNobody);
}

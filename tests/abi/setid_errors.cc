// abi: threads=5 bound=4 timeout=60
// Calls that fail change nothing, also for those who may do nothing: EPERM, EINVAL; and calls that name the ids there are
// succeed for everybody.
#include "credentials.h"

int main() {
  Crowd crowd(1);
  if (getuid() == 0) {
    need_root();
    CHECK_ERRNO(setuid(static_cast<uid_t>(-1)), EINVAL);
    CHECK_ERRNO(setgid(static_cast<gid_t>(-1)), EINVAL);
    CHECK_EQ(setresgid(kNobody, kNobody, kNobody), 0);
    CHECK_EQ(setresuid(kNobody, kNobody, kNobody), 0);
  }
  unsigned r, e, s, rg, eg, sg;
  CHECK_EQ(getresuid(&r, &e, &s), 0);
  CHECK_EQ(getresgid(&rg, &eg, &sg), 0);
  CHECK_ERRNO(setuid(0), EPERM);
  CHECK_ERRNO(setgid(0), EPERM);
  CHECK_ERRNO(setreuid(0, r), EPERM);
  CHECK_ERRNO(setresuid(r, 0, s), EPERM);
  CHECK_ERRNO(setresgid(rg, 0, sg), EPERM);
  CHECK_ERRNO(seteuid(0), EPERM);
  CHECK_ERRNO(setegid(0), EPERM);
  const gid_t group = 0;
  CHECK_ERRNO(setgroups(1, &group), EPERM);
  CHECK_ERRNO(syscall(SYS_setresuid, -1, -1, 0), EPERM);
  check_all(r, e, s, rg, eg, sg);
  CHECK_EQ(setuid(e), 0);
  CHECK_EQ(setresuid(static_cast<uid_t>(-1), static_cast<uid_t>(-1), static_cast<uid_t>(-1)), 0);
  CHECK_EQ(setregid(rg, static_cast<gid_t>(-1)), 0);
  join(start([&] { CHECK_EQ(setreuid(r, e), 0); }));
  check_all(r, e, s, rg, eg, sg);
  crowd.stop();
}

// abi: threads=5 timeout=60
// setgroups(2) and initgroups(3), with the list of the caller, and setgroups of the same length but with other contents.
#include "credentials.h"

int main() {
  need_root();
  Crowd crowd(1);
  std::vector<unsigned> groups = {7, 11, 4711};
  CHECK_EQ(setgroups(groups.size(), groups.data()), 0);
  check_all(0, 0, 0, 0, 0, 0, &groups);
  groups = {8, 12, 4712};
  CHECK_EQ(setgroups(groups.size(), groups.data()), 0);
  check_all(0, 0, 0, 0, 0, 0, &groups);
  CHECK_EQ(initgroups("no-such-user-of-upcall", 4242), 0);
  groups = {4242};
  check_all(0, 0, 0, 0, 0, 0, &groups);
  std::vector<unsigned> many;
  for (unsigned i = 0; i < 3000; ++i) many.push_back(100 + i);
  CHECK_EQ(setgroups(many.size(), many.data()), 0);
  join(start([&] { CHECK_EQ(getgroups(0, nullptr), 3000); }));
  CHECK_EQ(getgroups(0, nullptr), 3000);
  CHECK_ERRNO(setgroups(70000, many.data()), EINVAL);
  CHECK_ERRNO(setgroups(2, reinterpret_cast<gid_t*>(16)), EFAULT);
  CHECK_EQ(getgroups(0, nullptr), 3000);
  CHECK_EQ(setgroups(0, nullptr), 0);
  groups = {};
  check_all(0, 0, 0, 0, 0, 0, &groups);
  CHECK_EQ(setuid(kNobody), 0);
  CHECK_ERRNO(setgroups(0, nullptr), EPERM);
  crowd.stop();
}

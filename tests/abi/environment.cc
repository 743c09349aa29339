// abi: threads=1
// Standard streams, working directory, umask and limits are shared by the threads, as POSIX says.
#include <limits.h>
#include <sys/stat.h>

#include "abi.h"

int main() {
  CHECK_EQ(chdir("/tmp"), 0);
  umask(027);
  CHECK_EQ(setenv("ABI_VARIABLE", "value", 1), 0);
  const pid_t parent = getppid(), group = getpgrp(), session = getsid(0);
  join(start([&] {
    char path[PATH_MAX];
    CHECK(getcwd(path, sizeof path) != nullptr);
    CHECK(strcmp(path, "/tmp") == 0);
    CHECK_EQ(umask(022), 027);
    CHECK(strcmp(getenv("ABI_VARIABLE"), "value") == 0);
    CHECK_EQ(getppid(), parent);
    CHECK_EQ(getpgrp(), group);
    CHECK_EQ(getsid(0), session);
    CHECK_EQ(chdir("/"), 0);
  }));
  char path[PATH_MAX];
  CHECK(getcwd(path, sizeof path) != nullptr);
  CHECK(strcmp(path, "/") == 0);
  CHECK_EQ(umask(022), 022);
}

// abi: threads=3 bound=4 counters=bound_threads:2-
// What a thread has changed for itself is gone when it ends, and was never the process's: descriptors of its own do not keep
// a pipe open, /proc/self shows the working directory of the main thread.
#include <limits.h>
#include <sched.h>

#include "abi.h"

int main() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  // The main thread waits in the join: its kernel thread is free to run these.
  join(start([] { CHECK_EQ(unshare(CLONE_FILES), 0); }));
  close(ends[1]);
  char byte;
  CHECK_EQ(read(ends[0], &byte, 1), 0);
  char before[PATH_MAX] = {}, now[PATH_MAX] = {};
  CHECK(getcwd(before, sizeof before) != nullptr);
  join(start([] {
    CHECK_EQ(unshare(CLONE_FS), 0);
    CHECK_EQ(chdir("/proc"), 0);
    join(start([] {
      char here[PATH_MAX];
      CHECK(getcwd(here, sizeof here) != nullptr && strcmp(here, "/proc") == 0);
    }));
  }));
  CHECK(readlink("/proc/self/cwd", now, sizeof now - 1) > 0);
  if (strcmp(before, now) != 0) FAIL("/proc/self/cwd is %s, not %s", now, before);
  // The main thread's own change is the process's to see.
  CHECK_EQ(unshare(CLONE_FS), 0);
  CHECK_EQ(chdir("/"), 0);
  CHECK(readlink("/proc/self/cwd", now, sizeof now - 1) == 1 && now[0] == '/');
}

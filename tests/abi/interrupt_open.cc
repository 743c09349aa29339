// abi: threads=4
// signal(7): open of a fifo that waits for its other side is restarted after a handler with SA_RESTART, and ends with
// EINTR without it; no descriptor is lost over it.
#include <fcntl.h>
#include <sys/stat.h>

#include "interrupt.h"

static std::string path;

static long open_once(int how) {
  const int fd = how == O_CREAT ? creat(path.c_str(), 0600)
                 : how < 0      ? openat(AT_FDCWD, path.c_str(), O_RDONLY)
                                : open(path.c_str(), how);
  if (fd == -1) return -errno;
  close(fd);
  return 0;
}

static void other_side(int how) {
  const int fd = open(path.c_str(), how);
  CHECK(fd >= 0);
  close(fd);
}

int main() {
  char name[] = "/tmp/abi_fifo_XXXXXX";
  CHECK(mkdtemp(name));
  path = std::string(name) + "/fifo";
  CHECK_EQ(mkfifo(path.c_str(), 0600), 0);
  const int lowest = dup(0);
  close(lowest);
  try_signals({
      {"open to read", [] { return open_once(O_RDONLY); }, [] { other_side(O_WRONLY); }, 0, Restart::yes},
      {"open to write", [] { return open_once(O_WRONLY); }, [] { other_side(O_RDONLY); }, 0, Restart::yes},
      {"openat", [] { return open_once(-1); }, [] { other_side(O_WRONLY); }, 0, Restart::yes},
      {"creat", [] { return open_once(O_CREAT); }, [] { other_side(O_RDONLY); }, 0, Restart::yes},
  });
  const int now = dup(0);
  CHECK_EQ(now, lowest);
  unlink(path.c_str());
  rmdir(name);
}

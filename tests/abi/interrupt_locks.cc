// abi: threads=6
// signal(7): flock and fcntl's F_SETLKW and F_OFD_SETLKW, which wait for another's lock, are restarted after a handler
// with SA_RESTART and end with EINTR without it.
#include <fcntl.h>
#include <sys/file.h>

#include "interrupt.h"

static std::string path;
static int commands[2], answers[2];

static int open_file() {
  const int fd = open(path.c_str(), O_RDWR);
  CHECK(fd >= 0);
  return fd;
}

static struct flock whole(short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Holds all kinds of locks until told to let go, and takes them again.
static void holder() {
  const int a = open_file(), b = open_file();
  for (;;) {
    struct flock lock = whole(F_WRLCK);
    if (flock(a, LOCK_EX) || fcntl(b, F_SETLKW, &lock)) _exit(1);
    char byte = 0;
    if (write(answers[1], "h", 1) != 1 || read(commands[0], &byte, 1) != 1 || byte == 'q') _exit(0);
    lock = whole(F_UNLCK);
    if (flock(a, LOCK_UN) || fcntl(b, F_SETLK, &lock)) _exit(1);
    if (read(commands[0], &byte, 1) != 1) _exit(0);
  }
}

static void hear(char expected) {
  char byte = 0;
  while (read(answers[0], &byte, 1) == -1 && errno == EINTR) {
  }
  CHECK_EQ(byte, expected);
}
static void let_go() { CHECK_EQ(write(commands[1], "r", 1), 1); }
static void hold_again() {
  CHECK_EQ(write(commands[1], "h", 1), 1);
  hear('h');
}

static long lock_once(int how) {
  const int fd = open_file();
  struct flock lock = whole(F_WRLCK);
  const long result = with_errno(how == 0 ? flock(fd, LOCK_EX) : fcntl(fd, how, &lock));
  close(fd);  // releases it
  if (result == 0) hold_again();
  return result;
}

int main() {
  char name[] = "/tmp/abi_locks_XXXXXX";
  close(mkstemp(name));
  path = name;
  CHECK_EQ(pipe(commands) | pipe(answers), 0);
  const pid_t child = fork();
  if (child == 0) holder();
  join(start([] {}));
  hear('h');
  try_signals({
      {"flock", [] { return lock_once(0); }, let_go, 0, Restart::yes},
      {"F_SETLKW", [] { return lock_once(F_SETLKW); }, let_go, 0, Restart::yes},
      {"F_OFD_SETLKW", [] { return lock_once(F_OFD_SETLKW); }, let_go, 0, Restart::yes},
  });
  CHECK_EQ(write(commands[1], "q", 1), 1);
  wait_exit(child, 0);
  unlink(name);
}

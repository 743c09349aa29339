// abi: threads=16
// A request that arrives while a thread is blocked in a function on files or pipes ends it there (pthreads(7)): reads
// and writes, FIFOs being opened, record locks. What it waited for goes to others afterwards.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include "cancel.h"

static int empty[2], full[2], spare[2], event, timer, watch, file, holder;
static char byte = 'x', block[4096];
static iovec piece = {&byte, 1};
static char folder[] = "/tmp/upcall-abi-cancel.XXXXXX";
static std::string fifo[4];

static int lock(int fd, int command, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_len = 1;
  return fcntl(fd, command, &lock);
}

int main() {
  CHECK(mkdtemp(folder));
  CHECK_EQ(pipe(empty), 0);
  CHECK_EQ(pipe(full), 0);
  CHECK_EQ(pipe(spare), 0);
  CHECK_EQ(fcntl(full[1], F_SETFL, O_NONBLOCK), 0);

  while (write(full[1], block, sizeof block) > 0) {
  }
  CHECK_EQ(fcntl(full[1], F_SETFL, 0), 0);
  event = eventfd(0, 0);
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  watch = inotify_init();
  CHECK(event >= 0 && timer >= 0 && watch >= 0);
  for (int i = 0; i < 4; ++i) {
    fifo[i] = std::string(folder) + "/fifo" + std::to_string(i);
    CHECK_EQ(mkfifo(fifo[i].c_str(), 0600), 0);
  }
  const std::string path = std::string(folder) + "/file";
  file = open(path.c_str(), O_CREAT | O_RDWR, 0600);
  holder = open(path.c_str(), O_RDWR);
  CHECK(file >= 0 && holder >= 0);
  CHECK_EQ(lock(holder, F_OFD_SETLK, F_WRLCK), 0);  // of another open file: also against the process's own

  cancel_blocked({
      {"read", [] { read(empty[0], &byte, 1); }},
      {"readv", [] { readv(empty[0], &piece, 1); }},
      {"read of an eventfd", [] { read(event, block, 8); }},
      {"read of a timerfd", [] { read(timer, block, 8); }},
      {"read of an inotify", [] { read(watch, block, sizeof block); }},
      {"write", [] { write(full[1], &byte, 1); }},
      {"writev", [] { writev(full[1], &piece, 1); }},
      {"open", [] { open(fifo[0].c_str(), O_RDONLY); }},
      {"open to write", [] { open(fifo[1].c_str(), O_WRONLY); }},
      {"openat", [] { openat(AT_FDCWD, fifo[2].c_str(), O_RDONLY); }},
      {"creat", [] { creat(fifo[3].c_str(), 0600); }},
      {"fcntl, F_SETLKW", [] { lock(file, F_SETLKW, F_WRLCK); }},
      {"lockf", [] { lockf(file, F_LOCK, 1); }},
      {"splice", [] { splice(empty[0], nullptr, spare[1], nullptr, 1, 0); }},
      {"tee", [] { tee(empty[0], spare[1], 1, 0); }},
      {"vmsplice", [] { vmsplice(full[1], &piece, 1, 0); }},
  });

  // Nobody is at the FIFOs any more, nobody has the lock, nobody waits for the pipe's byte.
  for (const std::string& one : fifo) {
    CHECK_ERRNO(open(one.c_str(), O_WRONLY | O_NONBLOCK), ENXIO);
    unlink(one.c_str());
  }
  CHECK_EQ(lock(holder, F_OFD_SETLK, F_UNLCK), 0);
  struct flock whose = {};
  whose.l_type = F_WRLCK;
  CHECK_EQ(fcntl(holder, F_OFD_GETLK, &whose), 0);
  CHECK_EQ(whose.l_type, F_UNLCK);
  CHECK_EQ(write(empty[1], "y", 1), 1);
  CHECK_EQ(read(empty[0], &byte, 1), 1);
  CHECK_EQ(byte, 'y');
  pollfd none = {spare[0], POLLIN, 0};
  CHECK_EQ(poll(&none, 1, 0), 0);
  unlink(path.c_str());
  rmdir(folder);
}

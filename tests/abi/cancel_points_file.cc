// abi: threads=25
// Functions on files are cancellation points (pthreads(7), both lists): with a request pending they end the thread
// before they have done anything. Nothing is created, written, read, locked or closed.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "cancel.h"

static int file, ends[2], other[2];
static char byte = 'x', *page;
static iovec piece = {&byte, 1};
static char name[] = "/tmp/upcall-abi-cancel.XXXXXX";
static std::string absent;

static void locked(int command, int64_t length) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_len = length;
  fcntl(file, command, &lock);
}

int main() {
  file = mkstemp(name);
  CHECK(file >= 0);
  absent = std::string(name) + ".absent";
  CHECK_EQ(write(file, "12345678", 8), 8);
  CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
  CHECK_EQ(pipe(ends), 0);
  CHECK_EQ(pipe(other), 0);
  CHECK_EQ(write(ends[1], "ab", 2), 2);
  page = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  CHECK(page != MAP_FAILED);
  const int before = dup(0);
  close(before);

  cancel_pending({
      {"open", [] { open(absent.c_str(), O_CREAT | O_RDWR, 0600); }},
      {"openat", [] { openat(AT_FDCWD, absent.c_str(), O_CREAT | O_RDWR, 0600); }},
      {"creat", [] { creat(absent.c_str(), 0600); }},
      {"close", [] { close(file); }},
      {"read", [] { read(ends[0], &byte, 1); }},
      {"readv", [] { readv(ends[0], &piece, 1); }},
      {"pread", [] { pread(file, &byte, 1, 0); }},
      {"preadv", [] { preadv(file, &piece, 1, 0); }},
      {"preadv2", [] { preadv2(file, &piece, 1, 0, 0); }},
      {"write", [] { write(ends[1], &byte, 1); }},
      {"writev", [] { writev(ends[1], &piece, 1); }},
      {"pwrite", [] { pwrite(file, &byte, 1, 0); }},
      {"pwritev", [] { pwritev(file, &piece, 1, 0); }},
      {"pwritev2", [] { pwritev2(file, &piece, 1, 0, 0); }},
      {"fcntl, F_SETLKW", [] { locked(F_SETLKW, 1); }},
      {"fcntl, F_OFD_SETLKW", [] { locked(F_OFD_SETLKW, 1); }},
      {"lockf", [] { lockf(file, F_LOCK, 1); }},
      {"fsync", [] { fsync(file); }},
      {"fdatasync", [] { fdatasync(file); }},
      {"msync", [] { msync(page, 4096, MS_SYNC); }},
      {"sync_file_range", [] { sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE); }},
      {"fallocate", [] { fallocate(file, 0, 0, 1 << 20); }},
      {"copy_file_range", [] { copy_file_range(file, nullptr, file, nullptr, 1, 0); }},
      {"splice", [] { splice(ends[0], nullptr, other[1], nullptr, 1, 0); }},
      {"tee", [] { tee(ends[0], other[1], 1, 0); }},
      {"vmsplice", [] { vmsplice(other[1], &piece, 1, 0); }},
  });

  const int after = dup(0);
  CHECK_EQ(after, before);
  CHECK_ERRNO(access(absent.c_str(), F_OK), ENOENT);
  char text[16];
  CHECK_EQ(read(ends[0], text, sizeof text), 2);
  CHECK(text[0] == 'a' && text[1] == 'b');
  pollfd empty = {other[0], POLLIN, 0};
  CHECK_EQ(poll(&empty, 1, 0), 0);
  CHECK_EQ(read(file, text, sizeof text), 8);
  CHECK(memcmp(text, "12345678", 8) == 0);
  const pid_t child = fork();
  if (child == 0) _exit(lockf(file, F_TEST, 0) == 0 ? 0 : 1);  // locks are not inherited
  wait_exit(child, 0);
  unlink(name);
}

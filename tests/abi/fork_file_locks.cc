// abi: threads=6
// fork(2): the child does not inherit record locks (fcntl); flock(2) and open file description locks belong to the open file
// that both share. A lock that the parent's thread waits for is none of the child's affair.
#include <fcntl.h>
#include <sys/file.h>

#include "process.h"

namespace {

struct flock region(short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 10;
  return lock;
}

int temporary(char* path) {
  const int file = mkstemp(path);
  CHECK(file >= 0);
  return file;
}

}  // namespace

int main() {
  Crowd crowd;
  join(start([] {
    char first[] = "/tmp/abi_fork_lock_XXXXXX", second[] = "/tmp/abi_fork_lock_XXXXXX";
    const int records = temporary(first), whole = temporary(second), again = open(second, O_RDWR);
    unlink(first), unlink(second);
    struct flock lock = region(F_WRLCK);
    CHECK_EQ(fcntl(records, F_SETLK, &lock), 0);
    CHECK_EQ(flock(whole, LOCK_EX), 0);
    run_child([&] {
      lock = region(F_WRLCK);
      CHECK_EQ(fcntl(records, F_GETLK, &lock), 0);
      CHECK_EQ(lock.l_type, F_WRLCK);
      CHECK_EQ(lock.l_pid, getppid());
      lock = region(F_WRLCK);
      CHECK_ERRNO(fcntl(records, F_SETLK, &lock), EAGAIN);
      CHECK_EQ(flock(whole, LOCK_EX | LOCK_NB), 0);  // the open file has it
      CHECK_ERRNO(flock(again, LOCK_EX | LOCK_NB), EWOULDBLOCK);
      CHECK_EQ(flock(whole, LOCK_UN), 0);  // for the parent, too
    });
    CHECK_EQ(flock(again, LOCK_EX | LOCK_NB), 0);
    lock = region(F_WRLCK);
    CHECK_EQ(fcntl(records, F_GETLK, &lock), 0);
    CHECK_EQ(lock.l_type, F_UNLCK);  // its own does not stand in its way
    run_child([&] {
      lock = region(F_WRLCK);
      CHECK_ERRNO(fcntl(records, F_SETLK, &lock), EAGAIN);  // and was not lost with the first child
    });
    // The offset of the open file is shared.
    CHECK_EQ(lseek(records, 7, SEEK_SET), 7);
    run_child([&] { CHECK_EQ(lseek(records, 5, SEEK_CUR), 12); });
    CHECK_EQ(lseek(records, 0, SEEK_CUR), 12);
  }));
  crowd.end();
}

// abi: threads=12
// waitpid, waitid, flock and fcntl locks leave the processor to others.
#include <fcntl.h>
#include <sys/file.h>

#include "blocking.h"

int main() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const auto spawn = [&ends](int code) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      char byte;
      _exit(read(ends[0], &byte, 1) == 1 ? code : 1);
    }
    return child;
  };
  const auto let_go = [&ends] { CHECK_EQ(write(ends[1], "x", 1), 1); };
  pid_t child = spawn(5);
  others_go_on(
      "waitpid", [&] { wait_exit(child, 5); }, let_go);
  child = spawn(6);
  others_go_on(
      "waitid",
      [&] {
        siginfo_t info;
        CHECK_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED), 0);
        CHECK_EQ(info.si_status, 6);
      },
      let_go);

  char path[] = "/tmp/abi_lock_XXXXXX";
  const int first = mkstemp(path);
  const int second = open(path, O_RDWR);
  CHECK(first >= 0 && second >= 0);
  unlink(path);
  CHECK_EQ(flock(first, LOCK_EX), 0);
  others_go_on(
      "flock", [&] { CHECK_EQ(flock(second, LOCK_EX), 0); }, [&] { CHECK_EQ(flock(first, LOCK_UN), 0); });
  CHECK_EQ(flock(second, LOCK_UN), 0);

  struct flock region = {};
  region.l_type = F_WRLCK;
  region.l_whence = SEEK_SET;
  region.l_len = 10;
  CHECK_EQ(fcntl(first, F_OFD_SETLK, &region), 0);
  others_go_on(
      "fcntl",
      [&] {
        struct flock wanted = {};
        wanted.l_type = F_WRLCK;
        wanted.l_whence = SEEK_SET;
        wanted.l_len = 10;
        CHECK_EQ(fcntl(second, F_OFD_SETLKW, &wanted), 0);
      },
      [&] {
        region.l_type = F_UNLCK;
        CHECK_EQ(fcntl(first, F_OFD_SETLK, &region), 0);
      });
}

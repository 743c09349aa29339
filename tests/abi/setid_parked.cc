// abi: threads=60 timeout=60
// Threads that come back from calls, and threads that run where others were blocked before, have given up their rights as
// well: kernel threads that are not in use while the ids change do not keep the old ones.
#include "credentials.h"

int main() {
  need_root();
  const RootsFile file;
  int pipes[2], late[2];
  CHECK_EQ(pipe(pipes), 0);
  CHECK_EQ(pipe(late), 0);
  const auto reader = [&](int fd) {
    return start([&file, fd] {
      char byte;
      ssize_t n;
      do n = read(fd, &byte, 1);
      while (n < 0 && errno == EINTR);
      CHECK_EQ(n, 0);
      if (geteuid() != 0) CHECK(!may_read(file.path()));
    });
  };
  std::vector<pthread_t> blocked, later;
  for (int i = 0; i < 20; ++i) blocked.push_back(reader(pipes[0]));
  settle();
  close(pipes[1]);
  join_all(blocked);  // their kernel threads are left over
  for (int i = 0; i < 10; ++i) later.push_back(reader(late[0]));
  settle();
  CHECK_EQ(setuid(kNobody), 0);
  check_user(kNobody);
  close(late[1]);
  join_all(later);
  // Many at once, so that all that is left over is used.
  int again[2];
  CHECK_EQ(pipe(again), 0);
  blocked.clear();
  for (int i = 0; i < 30; ++i) blocked.push_back(reader(again[0]));
  settle();
  check_user(kNobody);
  close(again[1]);
  join_all(blocked);
}

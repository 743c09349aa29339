// abi: threads=5 timeout=60
// fork(2), execve(2): the child has its parent's ids, whatever thread has changed them and whatever thread forks; so has a
// program that it starts, and one that a vfork child starts. What the child changes is its own.
#include <spawn.h>

#include "credentials.h"

extern char** environ;

namespace {

void check_child() {
  const pid_t child = fork();
  if (child == 0) {
    CHECK_EQ(geteuid(), 1000);
    CHECK_EQ(getegid(), 2000);
    join(start([] {
      CHECK_EQ(seteuid(0), 0);
      CHECK_EQ(setuid(kNobody), 0);
      CHECK_EQ(getuid(), kNobody);
    }));
    check_all(kNobody, kNobody, kNobody, 0, 2000, 0);
    _exit(0);
  }
  wait_exit(child, 0);
  // Not a shell: one that finds two user ids becomes the real one again.
  int fds[2];
  CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  CHECK_EQ(posix_spawn_file_actions_init(&actions), 0);
  CHECK_EQ(posix_spawn_file_actions_adddup2(&actions, fds[1], 1), 0);
  char program[] = "cat", file[] = "/proc/self/status";
  char* arguments[] = {program, file, nullptr};
  pid_t spawned;
  CHECK_EQ(posix_spawn(&spawned, "/bin/cat", &actions, nullptr, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  std::string text;
  char part[1024];
  for (ssize_t n; (n = read(fds[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(n));
  close(fds[0]);
  wait_exit(spawned, 0);
  CHECK(text.find("Uid:\t0\t1000\t0\t1000\n") != std::string::npos ||
        text.find("Uid:\t0\t1000\t1000\t1000\n") != std::string::npos);
  CHECK(text.find("Gid:\t0\t2000\t2000\t2000\n") != std::string::npos);
  CHECK_EQ(geteuid(), 1000);
}

}  // namespace

int main() {
  need_root();
  // Another user may not be able to read the runtime's library.
  unsetenv("LD_PRELOAD");
  Crowd crowd(1);
  join(start([] {
    CHECK_EQ(setegid(2000), 0);
    CHECK_EQ(seteuid(1000), 0);
  }));
  check_child();
  join(start([] { check_child(); }));
  check_all(0, 1000, 0, 0, 2000, 0);
  crowd.stop();
  CHECK_EQ(seteuid(0), 0);
}

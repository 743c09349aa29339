// abi: threads=7
// posix_spawn_file_actions_*(3): open, close, dup2, chdir, fchdir, closefrom, in their order and in the child alone; a failing
// one makes posix_spawn fail, and nothing is left behind (posix_spawn(3)). posix_spawnp looks in PATH.
#include <fcntl.h>
#include <spawn.h>

#include "process.h"

namespace {

std::string output_of(posix_spawn_file_actions_t& actions, const char* command) {
  int ends[2];
  CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, 10);
#endif
  const char* words[] = {"sh", "-c", command, nullptr};
  pid_t child;
  CHECK_EQ(posix_spawnp(&child, "sh", &actions, nullptr, const_cast<char**>(words), environ), 0);
  return text_of(child, ends);
}

}  // namespace

int main() {
  Crowd crowd;
  char before[4096], after[4096];
  CHECK(getcwd(before, sizeof before) != nullptr);
  const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int high = fcntl(root, F_DUPFD, 20);
  CHECK(root >= 0 && high >= 20);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 2; ++i)
    threads.push_back(start([&] {
      posix_spawn_file_actions_t actions;
      posix_spawn_file_actions_init(&actions);
      posix_spawn_file_actions_addopen(&actions, 5, "/dev/null", O_RDONLY, 0);
      posix_spawn_file_actions_adddup2(&actions, 5, 6);
      posix_spawn_file_actions_addclose(&actions, 5);
      posix_spawn_file_actions_addchdir_np(&actions, "/usr");
      const std::string list =
          "pwd; for f in 5 6 " + std::to_string(high) +
          "; do [ -e /proc/self/fd/$f ] && echo $f $(readlink /proc/self/fd/$f); done; true";
      const std::string text = output_of(actions, list.c_str());
#if __GLIBC_PREREQ(2, 34)
      if (text != "/usr\n6 /dev/null\n") FAIL("'%s'", text.c_str());
#endif
      posix_spawn_file_actions_destroy(&actions);
      posix_spawn_file_actions_init(&actions);
      posix_spawn_file_actions_addfchdir_np(&actions, root);
      CHECK(output_of(actions, "pwd") == "/\n");
      posix_spawn_file_actions_destroy(&actions);

      posix_spawn_file_actions_init(&actions);
      posix_spawn_file_actions_addopen(&actions, 5, "/nonexistent/file", O_RDONLY, 0);
      const char* words[] = {"true", nullptr};
      pid_t child = -5;
      CHECK_EQ(posix_spawnp(&child, "true", &actions, nullptr, const_cast<char**>(words), environ), ENOENT);
      posix_spawn_file_actions_destroy(&actions);
      CHECK_EQ(posix_spawnp(&child, "no-such-program-at-all", nullptr, nullptr, const_cast<char**>(words),
                            environ),
               ENOENT);
      CHECK_EQ(posix_spawn(&child, "/etc/passwd", nullptr, nullptr, const_cast<char**>(words), environ),
               EACCES);
    }));
  join_all(threads);
  CHECK(getcwd(after, sizeof after) != nullptr && strcmp(before, after) == 0);
  CHECK_ERRNO(waitpid(-1, nullptr, WNOHANG), ECHILD);
  crowd.end();
}

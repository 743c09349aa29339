// abi: threads=4
// posix_spawn with file actions and attributes from several threads at once; errors come back.
#include <spawn.h>

#include "abi.h"

extern char** environ;

int main() {
  std::vector<pthread_t> threads;
  for (int id = 0; id < 4; ++id)
    threads.push_back(start([id] {
      for (int round = 0; round < 4; ++round) {
        int ends[2];
        CHECK_EQ(pipe2(ends, 02000000 /* O_CLOEXEC */), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        const sigset_t mask = signal_set({SIGUSR2});
        posix_spawnattr_setsigmask(&attributes, &mask);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        const std::string text = "echo hello" + std::to_string(id);
        const char* arguments[] = {"sh", "-c", text.c_str(), nullptr};
        pid_t child = 0;
        CHECK_EQ(posix_spawnp(&child, "sh", &actions, &attributes, const_cast<char**>(arguments), environ),
                 0);
        close(ends[1]);
        char buffer[64] = {};
        size_t got = 0;
        for (ssize_t n; (n = read(ends[0], buffer + got, sizeof buffer - 1 - got)) > 0;)
          got += static_cast<size_t>(n);
        close(ends[0]);
        CHECK(buffer == "hello" + std::to_string(id) + "\n");
        wait_exit(child, 0);
        CHECK_EQ(
            posix_spawn(&child, "/nonexistent", nullptr, nullptr, const_cast<char**>(arguments), environ),
            ENOENT);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
      }
    }));
  join_all(threads);
}

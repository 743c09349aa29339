// abi: threads=4
// vfork and exec from threads, while others compute and others vfork too.
#include "abi.h"

int main() {
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs);
  });
  std::vector<pthread_t> threads;
  for (int id = 1; id <= 3; ++id)
    threads.push_back(start([id] {
      for (int round = 0; round < 5; ++round) {
        const std::string script = "exit " + std::to_string(id + 10);
        const char* arguments[] = {"sh", "-c", script.c_str(), nullptr};
        const pid_t child = vfork();
        if (child == 0) {
          execv("/bin/sh", const_cast<char**>(arguments));
          _exit(99);
        }
        CHECK(child > 0);
        wait_exit(child, id + 10);
        const pid_t failing = vfork();
        if (failing == 0) {
          execv("/nonexistent", const_cast<char**>(arguments));
          _exit(errno == ENOENT ? 55 : 56);
        }
        wait_exit(failing, 55);
      }
    }));
  join_all(threads);
  stop = true;
  join(computing);
}

// abi: threads=3 bound=3 counters=bound_threads:3-3
// fork, vfork and exec from a bound thread: the child is as its maker, and its runtime starts anew. The main thread may be
// bound, too, and end before the others.
#include <limits.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>

#include "abi.h"

extern char** environ;

namespace {

std::string here() {
  char path[PATH_MAX];
  CHECK(getcwd(path, sizeof path) != nullptr);
  return path;
}

cpu_set_t affinity() {
  cpu_set_t set;
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

void wait_for(pid_t child) {
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
}

}  // namespace

int main() {
  const cpu_set_t all = affinity();
  const pthread_t main_thread = pthread_self();
  start([] { nap(50 * kMs); });
  CHECK_EQ(unshare(CLONE_FS), 0);
  CHECK_EQ(chdir("/"), 0);
  cpu_set_t now = affinity();
  CHECK(CPU_EQUAL(&all, &now));
  start([=] {
    CHECK(here() == "/");
    CHECK_EQ(unshare(CLONE_FS), 0);
    CHECK_EQ(chdir("/proc"), 0);
    // An affinity of its own, which the kernel knows.
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      CHECK(here() == "/proc");
      cpu_set_t inherited = affinity();
      CHECK(CPU_EQUAL(&one, &inherited));
      std::vector<pthread_t> threads;
      std::atomic<int> ran{0};
      for (int i = 0; i < 20; ++i)
        threads.push_back(start([&] {
          CHECK(here() == "/proc");
          nap(kMs);
          ++ran;
        }));
      join_all(threads);
      CHECK_EQ(ran.load(), 20);
      CHECK_EQ(chdir("/"), 0);
      join(start([] { CHECK(here() == "/"); }));  // one directory again
      _exit(0);
    }
    wait_for(child);
    const char* arguments[] = {"sh", "-c", "test $(pwd) = /proc", nullptr};
    pid_t shell;
    CHECK_EQ(posix_spawnp(&shell, "sh", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
    wait_for(shell);
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    cpu_set_t again = affinity();
    CHECK(CPU_EQUAL(&all, &again));
    CHECK_EQ(pthread_join(main_thread, nullptr), 0);
    CHECK(here() == "/proc");
    join(start([] { nap(kMs); }));
    exit(0);
  });
  pthread_exit(nullptr);
}

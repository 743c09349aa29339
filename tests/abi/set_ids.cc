// abi: threads=4
// setresgid and setresuid change every thread of the process, wherever it waits or computes, before they return.
#include <fcntl.h>

#include "abi.h"

int main() {
  if (geteuid() != 0) skip("needs root");
  const pid_t child = fork();
  if (child == 0) {
    static std::atomic<bool> changed{false};
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const auto check = [] {
      CHECK_EQ(geteuid(), 65534);
      CHECK_EQ(getgid(), 65534);
      CHECK_ERRNO(open("/etc/shadow", O_RDONLY), EACCES);
    };
    std::vector<pthread_t> threads;
    for (int i = 0; i < 2; ++i)
      threads.push_back(start([check] {
        while (!changed) burn(kMs);
        check();
        nap(2 * kMs);
        check();
      }));
    pthread_mutex_lock(&mutex);
    threads.push_back(start([check] {
      pthread_mutex_lock(&mutex);
      check();
      pthread_mutex_unlock(&mutex);
    }));
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    threads.push_back(start([check, &ends] {
      char byte;
      CHECK_EQ(read(ends[0], &byte, 1), 1);
      check();
    }));
    settle();
    CHECK_EQ(setresgid(65534, 65534, 65534), 0);
    CHECK_EQ(setresuid(65534, 65534, 65534), 0);
    changed = true;
    pthread_mutex_unlock(&mutex);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    check();
    join_all(threads);
    join(start(check));
    _exit(0);
  }
  wait_exit(child, 0);
  // The promise is the child's; these threads only show the driver that Upcall carried the program.
  for (int i = 0; i < 4; ++i) join(start([] { CHECK_EQ(geteuid(), 0); }));
}

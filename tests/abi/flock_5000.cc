// abi: threads=5001 timeout=120
// 5,000 threads blocked in flock, far more than the soft cap of activations; the one that can release them is the last to
// be made, and is a thread like them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "abi.h"

int main() {
  constexpr int kThreads = 5000;
  rlimit files = {};
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < kThreads + 100) skip("not enough descriptors allowed");
  char name[] = "/tmp/upcall-flock-XXXXXX";
  const int holder = mkstemp(name);
  CHECK(holder >= 0);
  CHECK_EQ(flock(holder, LOCK_EX), 0);
  std::atomic<int> at_lock{0}, had{0};
  pthread_attr_t small;
  CHECK_EQ(pthread_attr_init(&small), 0);
  CHECK_EQ(pthread_attr_setstacksize(&small, 128 * 1024), 0);
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start(
        [&] {
          const int fd = open(name, O_RDWR | O_CLOEXEC);
          CHECK(fd >= 0);
          ++at_lock;
          CHECK_EQ(flock(fd, LOCK_EX), 0);
          ++had;
          CHECK_EQ(close(fd), 0);
        },
        &small));
  pthread_t releaser = start([&] {
    while (at_lock < kThreads) nap(kMs);
    settle();
    CHECK_EQ(had, 0);
    CHECK_EQ(flock(holder, LOCK_UN), 0);
  });
  join(releaser);
  join_all(threads);
  CHECK_EQ(had, kThreads);
  CHECK_EQ(unlink(name), 0);
}

// abi: threads=200
// gettid: main's is the process id, every thread's is its own and stays; tgkill and tkill of nobody say ESRCH.
#include <algorithm>
#include <mutex>
#include <set>

#include "abi.h"

int main() {
  CHECK_EQ(gettid(), getpid());
  std::mutex mutex;
  std::set<pid_t> alive;
  std::atomic<int> arrived{0};
  std::atomic<bool> leave{false};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 199; ++i)
    threads.push_back(start([&] {
      const pid_t id = gettid();
      CHECK(id > 0 && id != getpid());
      {
        const std::lock_guard hold(mutex);
        CHECK(alive.insert(id).second);
      }
      ++arrived;
      while (!leave) {
        CHECK_EQ(gettid(), id);
        nap(2 * kMs);
      }
      CHECK_EQ(syscall(SYS_tgkill, getpid(), id, 0), 0);
    }));
  while (arrived < 199) nap(kMs);
  CHECK_EQ(alive.size(), 199);
  for (pid_t id : alive) CHECK_EQ(syscall(SYS_tgkill, getpid(), id, 0), 0);
  leave = true;
  join_all(threads);

  pid_t gone = 0;
  join(start([&gone] { gone = gettid(); }));
  // The kernel wakes the joiner a moment before the id is gone.
  for (int i = 0; i < 2000 && syscall(SYS_tgkill, getpid(), gone, 0) == 0; ++i) nap(kMs);
  CHECK_ERRNO(syscall(SYS_tgkill, getpid(), gone, 0), ESRCH);
  CHECK_ERRNO(syscall(SYS_tkill, gone, 0), ESRCH);
  CHECK_ERRNO(syscall(SYS_tgkill, getpid(), (1 << 28) + 12345, SIGUSR1), ESRCH);
  CHECK_ERRNO(syscall(SYS_tgkill, getpid(), -1, SIGUSR1), EINVAL);
  CHECK_ERRNO(syscall(SYS_tgkill, getpid(), gettid(), 1000), EINVAL);
}

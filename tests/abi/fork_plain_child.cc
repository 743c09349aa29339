// abi: threads=6
// A forked child that makes no threads costs what it costs without threads in its parent: one kernel thread, whatever calls it
// makes (sleeps, reads, waits, locks, signals), and nothing is open in it that its parent's own descriptors are not. clone(2)
// has a thread as one task of the kernel.
#include <fcntl.h>

#include "process.h"

namespace {

int open_files() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
  return count;
}

std::atomic<int> handled{0};

}  // namespace

int main() {
  Crowd crowd;
  const int files = open_files();
  join(start([files] {
    for (int round = 0; round < 3; ++round)
      run_child([files] {
        CHECK_EQ(kernel_threads(), 1);
        CHECK(open_files() <= files);
        nap(kMs);
        int ends[2];
        CHECK_EQ(pipe(ends), 0);
        CHECK_EQ(write(ends[1], "x", 1), 1);
        char byte;
        CHECK_EQ(read(ends[0], &byte, 1), 1);
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&mutex);
        CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
        const timespec soon = after_ns(kMs, CLOCK_REALTIME);
        CHECK_EQ(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
        install(SIGUSR1, [](int) { ++handled; });
        raise(SIGUSR1);
        CHECK_EQ(handled.load(), 1);
        burn(2 * kMs);
        CHECK_EQ(kernel_threads(), 1);
        run_child([] { CHECK_EQ(kernel_threads(), 1); });
      });
  }));
  crowd.end();
}

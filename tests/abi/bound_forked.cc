// abi: threads=2 bound=1 counters=bound_threads:1-1
// Children made while a bound thread is being signalled find nothing half done: their own bound threads wait in calls.
#include <fcntl.h>
#include <sched.h>

#include "abi.h"

int main() {
  install(SIGUSR1, [](int) {});
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&] {
    CHECK_EQ(unshare(CLONE_FS), 0);
    while (!stop) burn(100'000);
  });
  const pthread_t sender = start([&] {
    while (!stop) CHECK_EQ(pthread_kill(computing, SIGUSR1), 0);
  });
  for (int i = 0; i < 60; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(10);
      join(start([] {
        CHECK(unshare(CLONE_FS) == 0);
        const int zero = open("/dev/zero", O_RDONLY);
        char byte;
        CHECK_EQ(read(zero, &byte, 1), 1);
        nap(100'000);
        close(zero);
      }));
      _exit(4);
    }
    wait_exit(child, 4);
  }
  stop = true;
  join(sender);
  join(computing);
}

// abi: threads=1
#include "abi.h"
using namespace upcall::test;
static std::atomic<int> got{0};
static std::atomic<bool> flag{false};
int main() {
  install(SIGUSR1, [](int) { ++got; });
  pthread_t m = pthread_self();
  pthread_t w = start([&] {
    nap(20 * kMs);
    pthread_kill(m, SIGUSR1);
    nap(300 * kMs);
    flag = true;
  });
  pid_t c = vfork();
  if (!c) {
    timespec t{0, 100 * kMs};
    syscall(SYS_nanosleep, &t, 0);
    _exit(0);
  }
  while (!flag)
    ;  // pure computing: must be time-sliced
  join(w);
  waitpid(c, 0, 0);
  CHECK_EQ(got.load(), 1);
}

// abi: threads=1
#include "unseen.h"
using namespace upcall::test;
static std::atomic<int> got{0};
static std::atomic<bool> stop{false};
static std::atomic<int> round_{0}, inpause{0};
int main() {
  auto call = made_syscall();
  int p[2];
  CHECK_EQ(pipe(p), 0);
  install(SIGUSR1, [](int) { ++got; });
  static std::atomic<int> bad{0};
  std::vector<pthread_t> v;
  pthread_t w = start([&] {
    char c;
    sigset_t none;
    sigemptyset(&none);
    for (int i = 0; i < 30; i++) {
      CHECK_EQ(call(SYS_read, p[0], (long)&c, 1), 1);
      int g = got;
      inpause = i + 1;
      int r = sigsuspend(&none);
      (void)r;
      if (got == g) ++bad;
    }
  });
  sigset_t blk;
  sigemptyset(&blk);
  sigaddset(&blk, SIGUSR1);
  for (int k = 0; k < 2; k++)
    v.push_back(start([&] {
      while (!stop) burn(kMs);
    }));
  for (int i = 0; i < 30; i++) {
    nap(10 * kMs);
    write(p[1], "x", 1);
    while (inpause != i + 1) nap(kMs);
    nap(5 * kMs);
    if (bad) break;
    pthread_kill(w, SIGUSR1);
  }
  if (bad) {
    dprintf(1, "BAD sigsuspend returned without a signal\n");
    _exit(1);
  }
  stop = true;
  join(w);
  join_all(v);
  dprintf(1, "ok\n");
}

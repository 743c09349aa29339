// abi: threads=1
#include <semaphore.h>
#include "abi.h"
using namespace upcall::test;
int main() {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGRTMIN + 1);
  pthread_sigmask(SIG_BLOCK, &s, 0);
  static std::atomic<int> n{0};
  auto body = [&] {
    siginfo_t i;
    CHECK(sigwaitinfo(&s, &i) == SIGRTMIN + 1);
    ++n;
    while (n.load() < 2) nap(kMs);
  };
  auto a = start(body), b = start(body);
  settle();
  kill(getpid(), SIGRTMIN + 1);
  kill(getpid(), SIGRTMIN + 1);
  join(a);
  join(b);
  dprintf(1, "ok\n");
}

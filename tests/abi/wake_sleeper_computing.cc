// abi: threads=1
// A sleeper's time comes although the only other thread came back from a long call and computes since.
#include "abi.h"
using namespace upcall::test;
int main() {
  std::atomic<bool> flag{false};
  int p[2];
  CHECK_EQ(pipe(p), 0);
  pid_t c = fork();
  if (!c) {
    nap(600 * kMs);
    CHECK_EQ(write(p[1], "x", 1), 1);
    _exit(0);
  }
  auto w = start([&] {
    nap(1200 * kMs);
    flag = true;
  });
  char b;
  CHECK_EQ(read(p[0], &b, 1), 1);
  const int64_t begin = now_ns();
  while (!flag)
    if (now_ns() - begin > 4 * kSecond) FAIL("the sleeper has not woken");
  join(w);
  CHECK_EQ(waitpid(c, nullptr, 0), c);
  dprintf(1, "ok\n");
}

// abi: threads=0
// SIGSTOP stops every thread of a process, SIGCONT lets every one go on.
#include <sys/mman.h>

#include "abi.h"

int main() {
  auto* counters = static_cast<std::atomic<int64_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(counters != MAP_FAILED);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (int i = 0; i < 3; ++i)
      start([counters, i] {
        for (;;) ++counters[i];
      });
    start([counters] {
      for (;;) {
        nap(kMs);
        ++counters[3];
      }
    });
    for (;;) pause();
  }
  for (int i = 0; i < 4; ++i)
    while (counters[i] == 0) nap(kMs);
  for (int round = 0; round < 3; ++round) {
    CHECK_EQ(kill(child, SIGSTOP), 0);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    int64_t before[4];
    for (int i = 0; i < 4; ++i) before[i] = counters[i];
    nap(30 * kMs);
    for (int i = 0; i < 4; ++i) CHECK_EQ(counters[i], before[i]);
    CHECK_EQ(kill(child, SIGCONT), 0);
    for (int i = 0; i < 4; ++i)
      while (counters[i] == before[i]) nap(kMs);
  }
  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(WTERMSIG(wait_status(child)), SIGKILL);
}

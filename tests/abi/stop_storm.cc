// abi: threads=12
// SIGSTOP and SIGCONT in quick and irregular succession, at whatever instruction threads are that block, wait, yield and
// compute: nothing is lost.
#include <random>

#include "mixed.h"

int main() {
  // Told to end rather than killed: between a stop and its SIGCONT nobody would let the process go on.
  auto* over = static_cast<std::atomic<bool>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(over != MAP_FAILED);
  const pid_t child = start_beside([over](pid_t process) {
    std::minstd_rand random(7);
    while (!*over) {
      nap(static_cast<int64_t>(random() % 3000) * 1000);
      kill(process, SIGSTOP);
      nap(static_cast<int64_t>(random() % 1000) * 1000);
      kill(process, SIGCONT);
    }
  });
  mixed_work(150);
  *over = true;
  CHECK_EQ(wait_status(child), 0);
}

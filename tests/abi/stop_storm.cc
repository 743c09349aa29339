// abi: threads=12
// SIGSTOP and SIGCONT in quick and irregular succession, at whatever instruction threads are that block, wait, yield and
// compute: nothing is lost.
#include <random>

#include "mixed.h"

int main() {
  const pid_t child = start_beside([](pid_t process) {
    std::minstd_rand random(7);
    for (;;) {
      nap(static_cast<int64_t>(random() % 3000) * 1000);
      kill(process, SIGSTOP);
      nap(static_cast<int64_t>(random() % 1000) * 1000);
      kill(process, SIGCONT);
    }
  });
  mixed_work(150);
  end_beside(child);
  CHECK_EQ(kill(getpid(), SIGCONT), 0);
}

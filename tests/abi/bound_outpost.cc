// abi: threads=0 bound=1 timeout=40
// The main thread is to keep the first kernel thread, which may just then watch for events while another thread computes: it comes
// at once. In children, since a process does this only once.
#include <sched.h>

#include "descriptor.h"

namespace {

void once(int round) {
  const Pair p = pipe_pair();
  std::atomic<bool> stop{false};
  const pthread_t waits = start([&] { CHECK_EQ(get(p.a), 'x'); });
  const pthread_t computes = start([&] {
    while (!stop) burn(kMs / 10);
  });
  // Leaves the processor, so that others come to be parked.
  for (int i = 0; i < 3 + round % 3; ++i) nap((3 + round) * kMs);
  CHECK_EQ(unshare(CLONE_FS), 0);
  stop = true;
  join(computes);
  put(p.b, 'x');
  join(waits);
}

}  // namespace

int main() {
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      once(round);
      _exit(0);
    }
    wait_exit(child, 0);
  }
}

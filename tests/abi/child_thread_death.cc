// abi: threads=2
// prctl(2), PR_SET_PDEATHSIG: "the 'parent' in this case is considered to be the thread that created this process": the signal
// comes when that thread ends, although its process goes on.
#include <sys/prctl.h>

#include "process.h"

int main() {
  int ready[2];
  CHECK_EQ(pipe(ready), 0);
  const sigset_t one = signal_set({SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
  join(start([] {}));
  pid_t child = 0;
  join(start([&] {
    child = start_child([&] {
      CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGUSR1), 0);
      CHECK_EQ(write(ready[1], "x", 1), 1);
      siginfo_t info;
      const timespec while_later = to_timespec(150 * kMs * time_factor());
      _exit(sigtimedwait(&one, &info, &while_later) == SIGUSR1 ? 7 : 8);
    });
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
  }));
  wait_exit(child, 7);
}

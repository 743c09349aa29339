// abi: threads=1
// _exit in several threads at once, beside others that are made, compute, and are blocked: the status is that of one of them
// (_exit(2), exit_group(2)); a process whose threads all end has the status 0 (pthread_exit(3)); one whose last thread but
// main ends does not end.
#include "process.h"

int main() {
  join(start([] {}));
  for (int round = 0; round < 6; ++round) {
    const pid_t child = start_child([round] {
      if (round % 2) new Crowd;
      std::atomic<bool> go{false};
      for (int i = 0; i < 3; ++i)
        start([&go, i] {
          while (!go) sched_yield();
          _exit(71 + i);
        });
      start([] {
        for (;;) join(start([] {}));
      });
      nap(kMs);
      go = true;
      for (;;) pause();
    });
    const int status = wait_status(child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) < 71 || WEXITSTATUS(status) > 73)
      FAIL("status 0x%x", status);
  }
  for (int round = 0; round < 3; ++round) {
    wait_exit(start_child([] {
                for (int i = 0; i < 3; ++i)
                  pthread_detach(start([i] {
                    if (i == 1) nap(kMs);
                    if (i == 2) burn(kMs);
                  }));
                pthread_exit(nullptr);
              }),
              0);
    wait_exit(start_child([] {
                join(start([] {}));
                use_threads();
                _exit(5);
              }),
              5);
  }
}

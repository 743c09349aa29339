// abi: threads=0
// A process with computing, waiting and sleeping threads dies by a fatal signal from outside, whole and at once,
// with that signal as its status.
#include "abi.h"

int main() {
  for (int signal : {SIGTERM, SIGKILL, SIGUSR1, SIGALRM, SIGRTMIN + 5, SIGSEGV}) {
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      static uint32_t word = 0;
      for (int i = 0; i < 3; ++i)
        start([] {
          for (;;) burn(kMs);
        });
      start([] {
        for (;;) futex(&word, FUTEX_WAIT_PRIVATE, 0);
      });
      CHECK_EQ(write(ready[1], "r", 1), 1);
      for (;;) pause();
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    nap(3 * kMs);
    CHECK_EQ(kill(child, signal), 0);
    const int status = wait_status(child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), signal);
    close(ready[0]);
    close(ready[1]);
  }
}

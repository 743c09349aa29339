// abi: threads=0
// POSIX (General Information, signal actions): in an orphaned process group the default action of SIGTSTP, SIGTTIN and
// SIGTTOU does not stop the process; SIGSTOP does. The threads go on as if nothing had been.
#include "abi.h"

int main() {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    // The leader of a session of its own: its parent is in another one, so its group is orphaned.
    CHECK(setsid() != -1);
    std::atomic<int> ended{0};
    for (int signal : {SIGTSTP, SIGTTIN, SIGTTOU}) {
      CHECK_EQ(raise(signal), 0);
      int ends[2];
      CHECK_EQ(pipe(ends), 0);
      const pthread_t reader = start([&] {
        char byte;
        CHECK_EQ(read(ends[0], &byte, 1), 1);
        ++ended;
      });
      const pthread_t sleeper = start([&] {
        const timespec time = to_timespec(8 * kMs);
        const int64_t begin = now_ns();
        CHECK_EQ(nanosleep(&time, nullptr), 0);
        CHECK(now_ns() - begin >= 8 * kMs);
        ++ended;
      });
      for (int i = 0; i < 5; ++i) {
        CHECK_EQ(pthread_kill(reader, signal), 0);
        CHECK_EQ(pthread_kill(sleeper, signal), 0);
        CHECK_EQ(kill(getpid(), signal), 0);
        nap(kMs / 2);
      }
      CHECK_EQ(write(ends[1], "x", 1), 1);
      join(reader);
      join(sleeper);
    }
    CHECK_EQ(ended, 6);
    raise(SIGSTOP);
    _exit(7);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
  CHECK(WIFSTOPPED(status));
  CHECK_EQ(WSTOPSIG(status), SIGSTOP);
  CHECK_EQ(kill(child, SIGCONT), 0);
  wait_exit(child, 7);
}

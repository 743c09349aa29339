// abi: threads=3 stats=none
// POSIX 2.4.1: SIGCONT discards pending stop signals of the process and of its threads, a stop signal discards a pending SIGCONT,
// even where they are blocked. A thread's SIGTSTP stops the whole process, and waitpid tells which signal it was.
#include "abi.h"

static bool is_pending(int signal) {
  sigset_t now;
  CHECK_EQ(sigpending(&now), 0);
  return sigismember(&now, signal) == 1;
}

static void discards() {
  const sigset_t set = signal_set({SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<int> stage{0};
  const pthread_t other = start([&stage] {
    for (int i = 1; i <= 4; i += 2) {
      while (stage < i) nap(kMs / 2);
      CHECK(is_pending(i == 1 ? SIGTTIN : SIGCONT));
      stage = i + 1;
      while (stage < i + 2) nap(kMs / 2);
      CHECK(!is_pending(i == 1 ? SIGTTIN : SIGCONT));
    }
    stage = 6;
  });
  CHECK_EQ(kill(getpid(), SIGTSTP), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGTTOU), 0);
  CHECK_EQ(pthread_kill(other, SIGTTIN), 0);
  CHECK(is_pending(SIGTSTP) && is_pending(SIGTTOU));
  stage = 1;
  while (stage < 2) nap(kMs / 2);
  CHECK_EQ(pthread_kill(pthread_self(), SIGCONT), 0);
  CHECK(!is_pending(SIGTSTP) && !is_pending(SIGTTOU) && is_pending(SIGCONT));
  // The reverse.
  CHECK_EQ(pthread_kill(other, SIGCONT), 0);
  stage = 3;
  while (stage < 4) nap(kMs / 2);
  CHECK_EQ(kill(getpid(), SIGTTOU), 0);
  CHECK(!is_pending(SIGCONT) && is_pending(SIGTTOU));
  stage = 5;
  join(other);
  CHECK_EQ(kill(getpid(), SIGCONT), 0);
}

static std::atomic<int> continued{0};
static int go_on[2];

// In a child with a process group of its own, which is not orphaned as long as its parent lives.
static void stops(bool by_thread) {
  CHECK_EQ(setpgid(0, 0), 0);
  install(SIGCONT, [](int) { ++continued; });
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs / 2);
  });
  const auto by_each = [] {
    for (int signal : {SIGTSTP, SIGTTIN, SIGTTOU, SIGSTOP}) {
      const int before = continued;
      CHECK_EQ(pthread_kill(pthread_self(), signal), 0);
      while (continued == before) nap(kMs);
      char byte;
      CHECK_EQ(read(go_on[0], &byte, 1), 1);  // the parent has seen it
    }
  };
  if (by_thread)
    join(start(by_each));
  else
    by_each();
  stop = true;
  join(computing);
}

int main() {
  CHECK_EQ(pipe(go_on), 0);
  join(start([] {}));
  for (bool by_thread : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      stops(by_thread);
      _exit(5);
    }
    for (int signal : {SIGTSTP, SIGTTIN, SIGTTOU, SIGSTOP}) {
      int status = 0;
      CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
      CHECK(WIFSTOPPED(status));
      CHECK_EQ(WSTOPSIG(status), signal);
      CHECK_EQ(kill(child, SIGCONT), 0);
      CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
      CHECK(WIFCONTINUED(status));
      CHECK_EQ(write(go_on[1], "x", 1), 1);
    }
    wait_exit(child, 5);
  }
  discards();
}

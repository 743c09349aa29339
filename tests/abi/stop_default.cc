// abi: threads=0
// signal(7), waitpid(2): the default action of SIGTSTP, SIGTTIN and SIGTTOU stops the whole process, and its parent is
// told by which of them; raised by one of its threads, sent to one, and sent from outside; while a thread computes,
// waits, is blocked in the kernel. SIGCONT lets all go on.
#include <sys/mman.h>

#include "abi.h"

static std::atomic<int64_t>* counters;

static void run(int how, int signal) {
  setpgid(0, 0);
  std::vector<pthread_t> threads;
  static std::atomic<bool> computed{false};
  threads.push_back(start([] {
    for (;;) {
      ++counters[0];
      computed = true;
    }
  }));
  threads.push_back(start([] {
    for (;;) {
      nap(kMs);
      ++counters[1];
    }
  }));
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  threads.push_back(start([&ends] {
    char byte;
    while (read(ends[0], &byte, 1) == 1) {
    }
    FAIL("the read has ended");
  }));
  while (counters[1] < 3) nap(kMs / 2);
  counters[2] = 1;
  if (how == 0) raise(signal);
  if (how >= 1 && how <= 3) pthread_kill(threads[static_cast<size_t>(how - 1)], signal);
  if (how == 4) kill(getpid(), signal);
  for (;;) pause();
}

int main() {
  counters = static_cast<std::atomic<int64_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(counters != MAP_FAILED);
  for (int how = 0; how < 6; ++how) {
    const int signal = how % 3 == 0 ? SIGTSTP : how % 3 == 1 ? SIGTTIN : SIGTTOU;
    for (int i = 0; i < 3; ++i) counters[i] = 0;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) run(how, signal);
    while (counters[2] == 0 || counters[0] == 0) nap(kMs);
    if (how == 5) CHECK_EQ(kill(child, signal), 0);
    for (int round = 0; round < 2; ++round) {
      int status = 0;
      CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
      CHECK(WIFSTOPPED(status));
      CHECK_EQ(WSTOPSIG(status), signal);
      const int64_t before[2] = {counters[0], counters[1]};
      nap(5 * kMs);
      CHECK(counters[0] == before[0] && counters[1] == before[1]);
      CHECK_EQ(kill(child, SIGCONT), 0);
      CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
      CHECK(WIFCONTINUED(status));
      while (counters[0] == before[0] || counters[1] == before[1]) nap(kMs);
      if (round == 0) CHECK_EQ(kill(child, signal), 0);
    }
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(WTERMSIG(wait_status(child)), SIGKILL);
  }
}

// abi: threads=1
// prctl(2), PR_SET_PDEATHSIG: the child is sent the signal when its parent ends: by exit, a signal, the end of its last thread; it
// is kept over exec, cleared in a fork's child. getppid is the new parent then (a subreaper: PR_SET_CHILD_SUBREAPER), which can
// wait for it. A thread of the parent that ends, other than the one that forked, is none of it.
#include <sys/prctl.h>

#include "process.h"

namespace {

int ready[2], ended[2];
const sigset_t one = signal_set({SIGUSR1});

// In the grandchild: tells that it is ready, then what it saw.
void watch(pid_t parent) {
  siginfo_t info;
  CHECK_EQ(write(ready[1], "r", 1), 1);
  const timespec long_time = {15, 0};
  const bool told = sigtimedwait(&one, &info, &long_time) == SIGUSR1;
  // It may come at the end of the thread that forked, a moment before the others'.
  while (told && getppid() == parent) nap(kMs / 4);
  const bool moved = getppid() == atoi(getenv("REAPER"));
  CHECK_EQ(write(ended[1], told && moved ? "y" : "n", 1), 1);
  _exit(told && moved ? 21 : 22);
}

void prepare(bool with_exec) {
  CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGUSR1), 0);
  const pid_t parent = getppid();
  run_child([] {
    int signal = -1;
    CHECK_EQ(prctl(PR_GET_PDEATHSIG, &signal), 0);
    CHECK_EQ(signal, 0);
  });
  if (!with_exec) watch(parent);
  const std::string words[] = {executable_directory() + "/child_parent_death", std::to_string(parent),
                               std::to_string(ready[1]), std::to_string(ended[1])};
  execl(words[0].c_str(), words[0].c_str(), words[1].c_str(), words[2].c_str(), words[3].c_str(), nullptr);
  _exit(98);
}

template <class F>
void with_parent(bool with_exec, F end) {
  const pid_t parent = start_child([&] {
    join(start([] {}));
    start([] {
      for (;;) burn(kMs);
    });
    start([] { nap(1000 * kSecond); });
    start_child([&] { prepare(with_exec); });
    end();
    for (;;) pause();
  });
  wait_status(parent);
  char seen = 0;
  CHECK_EQ(read(ended[0], &seen, 1), 1);
  CHECK_EQ(seen, 'y');
  int status = 0;
  CHECK(wait(&status) > 0);
  CHECK_EQ(status, 21 << 8);
}

void until_ready() {
  char byte;
  CHECK_EQ(read(ready[0], &byte, 1), 1);
  for (int i = 0; i < 3; ++i) join(start([] {}));  // ends of other threads
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4) {
    ready[1] = atoi(arguments[2]), ended[1] = atoi(arguments[3]);
    int signal = 0;
    CHECK_EQ(prctl(PR_GET_PDEATHSIG, &signal), 0);
    CHECK_EQ(signal, SIGUSR1);
    join(start([] {}));
    watch(atoi(arguments[1]));
  }
  CHECK_EQ(pipe(ready), 0);
  CHECK_EQ(pipe(ended), 0);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
  CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  CHECK_EQ(setenv("REAPER", std::to_string(getpid()).c_str(), 1), 0);
  join(start([] {}));
  for (bool with_exec : {false, true}) {
    with_parent(with_exec, [] {
      until_ready();
      _exit(3);
    });
    with_parent(with_exec, [] {
      until_ready();
      join(start([] { raise(SIGKILL); }));
    });
  }
  const sigset_t none = signal_set({});
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, &none, nullptr), 0);
}

// abi: threads=30 reused=5
// A thread that another one waits for calls fork; in the child, where nobody waits, it makes threads and ends.
#include "abi.h"

static pid_t parent;
static pthread_t forking;
static std::atomic<int> resumed{0};

static void fork_and_exit() {
  settle();
  const pid_t child = fork();
  if (child == 0) {
    start([] {
      settle();
      burn(10 * kMs);
      settle();
      _exit(resumed ? 3 : 5);
    });
    pthread_exit(nullptr);
  }
  wait_exit(child, 5);
}

int main() {
  parent = getpid();
  for (int i = 0; i < 10; ++i) join(start([] {}));
  for (int i = 0; i < 10; ++i)
    // Not from the main thread: its descriptor is the next to be used in the child.
    join(start([] {
      forking = start(fork_and_exit);
      const int error = pthread_join(forking, nullptr);
      if (getpid() != parent) {
        resumed = 1;
        for (;;) nap(kSecond);
      }
      CHECK_EQ(error, 0);
    }));
}

// abi: threads=1
// A signal for a thread that is blocked in a call in made code interrupts it; the handler runs on that thread.
#include "unseen.h"

static std::atomic<pthread_t> ran_on{0};

int main() {
  auto call = made_syscall();
  install(SIGUSR1, [](int) { ran_on = pthread_self(); });
  int fds[2];
  CHECK_EQ(pipe(fds), 0);
  std::atomic<bool> done{false};
  std::atomic<long> answer{0};
  pthread_t blocked = start([&] {
    char c;
    answer = call(SYS_read, fds[0], reinterpret_cast<long>(&c), 1);
    done = true;
  });
  // Again and again: on a busy machine a signal may come before the call does.
  for (int i = 0; i < 250 && !done; ++i) {
    settle();
    CHECK_EQ(pthread_kill(blocked, SIGUSR1), 0);
  }
  for (int i = 0; i < 5000 && !done; ++i) nap(kMs);
  CHECK(done);
  CHECK_EQ(answer, -EINTR);
  CHECK(pthread_equal(ran_on, blocked));
  join(blocked);
}

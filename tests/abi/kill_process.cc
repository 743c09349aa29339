// abi: threads=3
// kill(getpid()): handled before the call returns where the caller may take it; by the one thread that does not
// block it where the caller may not.
#include "abi.h"

static std::atomic<int> count{0};
static std::atomic<pthread_t> handled_by{};

static void handler(int) {
  handled_by = pthread_self();
  ++count;
}

int main() {
  install(SIGUSR1, handler);
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  CHECK_EQ(count, 1);
  CHECK(pthread_equal(handled_by, pthread_self()) != 0);

  const sigset_t one = signal_set({SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
  std::atomic<bool> stop{false};
  const auto waiting = [&stop] {
    while (!stop) nap(kMs);
  };
  const pthread_t deaf = start(waiting), deaf_too = start(waiting);
  const pthread_t open = start([&] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &one, nullptr), 0);
    while (!stop) burn(kMs);
  });
  settle();
  for (int i = 2; i < 12; ++i) {
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    for (int wait = 0; count < i && wait < 5000; ++wait) nap(kMs);
    CHECK_EQ(count, i);
    CHECK(pthread_equal(handled_by, open) != 0);
  }
  stop = true;
  for (pthread_t thread : {deaf, deaf_too, open}) join(thread);
}

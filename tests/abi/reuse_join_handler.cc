// abi: threads=30 reused=5
// A handler that interrupts pthread_join may wait itself: the end of the thread that is joined, which comes
// meanwhile, does not end the handler's wait, and the join finds it afterwards.
#include "abi.h"

static std::atomic<int> result{-1};
static std::atomic<int64_t> slept{0};

static void sleeping_handler(int) {
  const int64_t began = now_ns();
  const timespec time = to_timespec(60 * kMs);
  result = nanosleep(&time, nullptr);
  slept = now_ns() - began;
}

static void* until(void* flag) {
  while (!*static_cast<std::atomic<bool>*>(flag)) nap(kMs);
  return flag;
}

int main() {
  install(SIGUSR1, sleeping_handler, SA_RESTART);
  for (int i = 0; i < 10; ++i) join(start([] {}));
  const pthread_t self = pthread_self();
  for (int i = 0; i < 10; ++i) {
    std::atomic<bool> go{false};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, until, &go), 0);
    pthread_t other = start([&] {
      settle();
      CHECK_EQ(pthread_kill(self, SIGUSR1), 0);
      settle();
      go = true;
    });
    void* value = nullptr;
    CHECK_EQ(pthread_join(thread, &value), 0);
    CHECK(value == &go);
    CHECK_EQ(result, 0);
    CHECK(slept >= 60 * kMs);
    join(other);
  }
}

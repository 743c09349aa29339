// abi: threads=1 timeout=40
// A thread becomes ready at about the moment at which the monitor, after a time without work, stops to look; who has made it
// ready blocks unseen at once. It gets the processor all the same, though no other event follows.
#include <random>

#include "mixed.h"

int main() {
  // A quick monitor, and no sentinel that would help later.
  if (on_upcall() && strcmp(getenv("UPCALL_QUANTUM"), "50us") != 0) {
    setenv("UPCALL_QUANTUM", "50us", 1);
    setenv("UPCALL_EVENTS", "monitor", 1);
    execl("/proc/self/exe", "quiet_monitor", nullptr);
    FAIL("exec: errno %d", errno);
  }
  auto call = made_syscall();
  int pipes[2];
  CHECK_EQ(pipe(pipes), 0);
  std::minstd_rand random(3);
  constexpr int kRounds = 300;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  int asked = 0;
  const pthread_t writer = start([&] {
    for (int done = 0; done < kRounds; ++done) {
      pthread_mutex_lock(&mutex);
      while (asked == done) pthread_cond_wait(&cond, &mutex);
      pthread_mutex_unlock(&mutex);
      CHECK_EQ(write(pipes[1], "x", 1), 1);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    // 100 looks at intervals of about 75 us, and then some.
    nap(5 * kMs + static_cast<int64_t>(random() % 10'000'000));
    pthread_mutex_lock(&mutex);
    ++asked;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    char c;
    CHECK_EQ(call(SYS_read, pipes[0], reinterpret_cast<long>(&c), 1), 1);
  }
  join(writer);
}

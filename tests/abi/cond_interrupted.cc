// abi: threads=8
// Signal handlers that run during waits on condition variables: no wait ends with EINTR, no wake-up is lost, time-outs
// keep their time.
#include "abi.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static std::atomic<int> handled{0};
static int items = 0, taken = 0;
constexpr int kRounds = 300;

static void consumer() {
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (items == 0) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
    if (items < 0) break;
    --items;
    ++taken;
    pthread_cond_signal(&done);
  }
  pthread_mutex_unlock(&mutex);
}

int main() {
  install(SIGUSR1, [](int) { ++handled; });
  install(
      SIGUSR2, [](int) { ++handled; }, SA_RESTART);
  install(SIGURG, SIG_DFL);
  std::vector<pthread_t> consumers;
  for (int i = 0; i < 6; ++i) consumers.push_back(start(consumer));
  settle();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 3; ++i)
      CHECK_EQ(pthread_kill(consumers[(round + i) % 6], i == 0 ? SIGUSR1 : i == 1 ? SIGUSR2 : SIGURG), 0);
    pthread_mutex_lock(&mutex);
    ++items;
    pthread_cond_signal(&cond);
    if (round % 3 == 0) pthread_kill(consumers[round % 6], SIGUSR1);
    while (taken <= round) CHECK_EQ(pthread_cond_wait(&done, &mutex), 0);
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  items = -1;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  join_all(consumers);
  CHECK_EQ(taken, kRounds);
  CHECK(handled >= 6);

  static std::atomic<bool> over{false};
  const pthread_t sleeper = start([] {
    pthread_mutex_lock(&mutex);
    const int64_t begin = now_ns();
    const timespec deadline = after_ns(60 * kMs, CLOCK_REALTIME);
    int error;
    do error = pthread_cond_timedwait(&cond, &mutex, &deadline);
    while (error == 0);
    CHECK_EQ(error, ETIMEDOUT);
    CHECK(now_ns() - begin >= 59 * kMs);
    pthread_mutex_unlock(&mutex);
    over = true;
    settle();
  });
  const pthread_t pest = start([sleeper] {
    while (!over) {
      pthread_kill(sleeper, SIGUSR1);
      nap(kMs);
    }
  });
  join(pest);
  join(sleeper);
}

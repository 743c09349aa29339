// abi: threads=23
// Waits for semaphores: posted by a handler while the process has one thread, ended by a handler with EINTR unless
// SA_RESTART, cancelled beside others, over at once for a time that has passed; nothing is lost.
#include <semaphore.h>
#include <sys/time.h>

#include "abi.h"

static sem_t sem;
static std::atomic<int> handled{0};

static int value() {
  int v;
  CHECK_EQ(sem_getvalue(&sem, &v), 0);
  return v;
}

static void alone() {
  install(SIGALRM, [](int) { sem_post(&sem); });
  for (const int flags : {0, SA_RESTART}) {
    struct sigaction action = {};
    CHECK_EQ(sigaction(SIGALRM, nullptr, &action), 0);
    action.sa_flags = flags;
    CHECK_EQ(sigaction(SIGALRM, &action, nullptr), 0);
    const itimerval soon = {{0, 0}, {0, 20000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
    while (sem_wait(&sem) != 0) CHECK_EQ(errno, EINTR);
    CHECK_EQ(value(), 0);
  }
  const timespec past = {1, 0};
  CHECK_ERRNO(sem_timedwait(&sem, &past), ETIMEDOUT);
  CHECK_ERRNO(sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
  CHECK_EQ(sem_post(&sem), 0);
  CHECK_EQ(sem_timedwait(&sem, &past), 0);
}

static void interrupted() {
  install(SIGUSR1, [](int) { ++handled; });
  install(
      SIGUSR2, [](int) { ++handled; }, SA_RESTART);
  for (int timed = 0; timed < 2; ++timed) {
    static std::atomic<int> step;
    step = 0;
    const pthread_t thread = start([timed] {
      const timespec deadline = after_ns(15 * kSecond, CLOCK_REALTIME);
      step = 1;
      CHECK_ERRNO(timed ? sem_timedwait(&sem, &deadline) : sem_wait(&sem), EINTR);
      step = 2;
      CHECK_EQ(sem_wait(&sem), 0);  // through signals with SA_RESTART and ignored ones
      step = 3;
    });
    while (step < 1) nap(kMs);
    settle();
    CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
    while (step < 2) nap(kMs);
    settle();
    for (int i = 0; i < 5; ++i) {
      const int before = handled;
      CHECK_EQ(pthread_kill(thread, SIGUSR2), 0);
      CHECK_EQ(pthread_kill(thread, SIGURG), 0);
      while (handled == before) nap(kMs);
    }
    CHECK_EQ(step, 2);
    CHECK_EQ(sem_post(&sem), 0);
    join(thread);
    CHECK_EQ(value(), 0);
  }
}

static void cancelled() {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 20; ++i)
    threads.push_back(start([] {
      while (sem_wait(&sem) != 0) CHECK_EQ(errno, EINTR);
    }));
  settle();
  for (int i = 0; i < 20; i += 2) CHECK_EQ(pthread_cancel(threads[i]), 0);
  for (int i = 0; i < 20; i += 2) CHECK(join(threads[i]) == PTHREAD_CANCELED);
  for (int i = 1; i < 20; i += 2) CHECK_EQ(sem_post(&sem), 0);
  for (int i = 1; i < 20; i += 2) CHECK(join(threads[i]) == nullptr);
  CHECK_EQ(value(), 0);

  static std::atomic<bool> waiting;
  waiting = false;
  const pthread_t guarded = start([] {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    waiting = true;
    CHECK_EQ(sem_wait(&sem), 0);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    sem_wait(&sem);
    FAIL("went on");
  });
  while (!waiting) nap(kMs);
  settle();
  CHECK_EQ(pthread_cancel(guarded), 0);
  settle();
  CHECK_EQ(sem_post(&sem), 0);
  CHECK(join(guarded) == PTHREAD_CANCELED);
  CHECK_EQ(value(), 0);
}

int main() {
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  alone();
  interrupted();
  cancelled();
  CHECK_EQ(sem_destroy(&sem), 0);
}

// abi: threads=6
// Condition variables and processes: a process-shared one between parent and child; a fork while other threads wait,
// whose child uses the same condition variable, made anew, with threads of its own.
#include <sys/mman.h>

#include "abi.h"

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  int turn;
};

static void play(Shared* s, int me) {
  for (int i = 0; i < 200; ++i) {
    pthread_mutex_lock(&s->mutex);
    while (s->turn != me) CHECK_EQ(pthread_cond_wait(&s->cond, &s->mutex), 0);
    s->turn = 1 - me;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
  }
}

static void process_shared() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  auto* s = static_cast<Shared*>(memory);
  pthread_mutexattr_t mutex_attributes;
  pthread_mutexattr_init(&mutex_attributes);
  pthread_mutexattr_setpshared(&mutex_attributes, PTHREAD_PROCESS_SHARED);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&s->mutex, &mutex_attributes);
  pthread_cond_init(&s->cond, &attributes);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    play(s, 1);
    _exit(7);
  }
  play(s, 0);
  wait_exit(child, 7);
  pthread_mutex_lock(&s->mutex);
  const timespec deadline = after_ns(20 * kMs);
  int error = 0;
  while (error == 0) error = pthread_cond_timedwait(&s->cond, &s->mutex, &deadline);
  CHECK_EQ(error, ETIMEDOUT);
  pthread_mutex_unlock(&s->mutex);
  CHECK_EQ(pthread_cond_destroy(&s->cond), 0);
}

static Shared own = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static int waiting = 0;
static bool go = false;

static void in_child() {
  own.cond = PTHREAD_COND_INITIALIZER;  // glibc's own still counts the parent's waiters
  pthread_mutex_lock(&own.mutex);
  CHECK_EQ(pthread_cond_broadcast(&own.cond), 0);
  const timespec past = {1, 0};
  CHECK_EQ(pthread_cond_timedwait(&own.cond, &own.mutex, &past), ETIMEDOUT);
  pthread_mutex_unlock(&own.mutex);
  own.turn = 0;
  const pthread_t other = start([] { play(&own, 1); });
  play(&own, 0);
  join(other);
  _exit(9);
}

int main() {
  process_shared();
  std::vector<pthread_t> threads;
  for (int i = 0; i < 5; ++i)
    threads.push_back(start([] {
      pthread_mutex_lock(&own.mutex);
      ++waiting;
      while (!go) pthread_cond_wait(&own.cond, &own.mutex);
      pthread_mutex_unlock(&own.mutex);
    }));
  for (bool all = false; !all;) {
    nap(kMs);
    pthread_mutex_lock(&own.mutex);
    all = waiting == 5;
    pthread_mutex_unlock(&own.mutex);
  }
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) in_child();
  wait_exit(child, 9);
  const pthread_t forker = start([] {
    const pid_t grandchild = fork();
    if (grandchild == 0) in_child();
    wait_exit(grandchild, 9);
  });
  join(forker);
  pthread_mutex_lock(&own.mutex);
  go = true;
  pthread_cond_broadcast(&own.cond);
  pthread_mutex_unlock(&own.mutex);
  join_all(threads);
}

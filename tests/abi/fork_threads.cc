// abi: threads=12
// fork from a thread with many others alive: only the caller lives on in the child, with pid = tid, its own TLS
// and mask; the child can make and join threads, use locks, sleep, and fork again.
#include <semaphore.h>

#include "abi.h"

static thread_local int own = 0;
static sem_t never;

static void use_threads() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  int sum = 0;
  std::vector<pthread_t> threads;
  for (int i = 0; i < 20; ++i)
    threads.push_back(start([&mutex, &sum, i] {
      CHECK(gettid() != getpid());
      nap(kMs);
      pthread_mutex_lock(&mutex);
      sum += i;
      pthread_mutex_unlock(&mutex);
    }));
  join_all(threads);
  CHECK_EQ(sum, 190);
}

static void child_part(int value) {
  CHECK_EQ(own, value);
  CHECK_EQ(gettid(), getpid());
  use_threads();
  const pid_t grandchild = fork();
  if (grandchild == 0) {
    use_threads();
    _exit(4);
  }
  wait_exit(grandchild, 4);
}

int main() {
  sem_init(&never, 0, 0);
  for (int i = 0; i < 6; ++i) pthread_detach(start([] { sem_wait(&never); }));
  std::atomic<bool> stop{false};
  std::vector<pthread_t> computing;
  for (int i = 0; i < 2; ++i)
    computing.push_back(start([&stop] {
      while (!stop) burn(kMs);
    }));
  std::vector<pthread_t> threads;
  for (int i = 1; i <= 4; ++i)
    threads.push_back(start([i] {
      own = i;
      const pid_t me = gettid();
      for (int round = 0; round < 3; ++round) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
          child_part(i);
          _exit(10 + i);
        }
        wait_exit(child, 10 + i);
        CHECK_EQ(own, i);
        CHECK_EQ(gettid(), me);
      }
    }));
  join_all(threads);
  stop = true;
  join_all(computing);
}

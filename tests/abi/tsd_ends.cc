// abi: threads=60
// Destructors of thread-specific data run however a thread ends: by return, pthread_exit, a request, pthread_exit in a
// handler; they may block: sleep, lock, wait for conditions, read. In those of a thread that exits or is cancelled
// no request acts; a joiner comes back only
// when they are done.
#include "abi.h"

static pthread_key_t key;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ends[2], in_destructor = 0, tokens = 0;
static std::atomic<int> destroyed{0};

static void destroy(void*) {
  usleep(100);
  pthread_mutex_lock(&mutex);
  ++in_destructor;
  pthread_cond_broadcast(&cond);
  while (!tokens) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
  --tokens;
  pthread_mutex_unlock(&mutex);
  char byte;
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  ++destroyed;
}

struct Last {
  bool used = false;
  ~Last() {
    usleep(50);
    if (used) ++destroyed;
  }
};
static thread_local Last last;

static void* body(void* how) {
  CHECK_EQ(pthread_setspecific(key, &key), 0);
  last.used = true;
  switch (reinterpret_cast<uintptr_t>(how) % 4) {
    case 1:
      pthread_exit(&key);
    case 2:
      sleep(1000);
      break;
    case 3:
      raise(SIGUSR1);
      break;
  }
  return &key;
}

int main() {
  CHECK_EQ(pthread_key_create(&key, destroy), 0);
  CHECK_EQ(pipe(ends), 0);
  install(SIGUSR1, [](int) { pthread_exit(&key); });
  for (int round = 0; round < 3; ++round) {
    std::vector<pthread_t> threads(20);
    destroyed = in_destructor = 0;
    for (uintptr_t i = 0; i < threads.size(); ++i)
      CHECK_EQ(pthread_create(&threads[i], nullptr, body, reinterpret_cast<void*>(i)), 0);
    for (size_t i = 2; i < threads.size(); i += 4) CHECK_EQ(pthread_cancel(threads[i]), 0);
    pthread_mutex_lock(&mutex);
    while (in_destructor < 20) pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    // All are in their destructors now: a request is too late. (Not for those that have returned.)
    for (size_t i = 0; i < threads.size(); ++i) {
      if (i % 4 != 0) CHECK_EQ(pthread_cancel(threads[i]), 0);
      CHECK_EQ(pthread_tryjoin_np(threads[i], nullptr), EBUSY);
    }
    pthread_mutex_lock(&mutex);
    tokens = 20;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    CHECK_EQ(write(ends[1], "12345678901234567890", 20), 20);
    for (size_t i = 0; i < threads.size(); ++i) {
      void* result = join(threads[i]);
      CHECK(result == (i % 4 == 2 ? PTHREAD_CANCELED : &key));
    }
    CHECK_EQ(destroyed, 40);
  }
}

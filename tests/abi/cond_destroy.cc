// abi: threads=400
// A condition variable may be destroyed as soon as its waiters have been woken; its memory goes with it.
#include <sys/mman.h>

#include "abi.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;

int main() {
  for (int round = 0; round < 100; ++round) {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    auto* cond = static_cast<pthread_cond_t*>(page);
    CHECK_EQ(pthread_cond_init(cond, nullptr), 0);
    static int waiting;
    static bool go;
    waiting = 0, go = false;
    std::vector<pthread_t> threads;
    for (int i = 0; i < 4; ++i)
      threads.push_back(start([cond, i] {
        pthread_mutex_lock(&mutex);
        ++waiting;
        pthread_cond_signal(&arrived);
        const timespec deadline = after_ns(15 * kSecond, CLOCK_REALTIME);
        while (!go)
          CHECK_EQ(
              i % 2 == 0 ? pthread_cond_wait(cond, &mutex) : pthread_cond_timedwait(cond, &mutex, &deadline),
              0);
        pthread_mutex_unlock(&mutex);
      }));
    pthread_mutex_lock(&mutex);
    while (waiting < 4) pthread_cond_wait(&arrived, &mutex);
    go = true;
    if (round % 2 == 0) pthread_mutex_unlock(&mutex);
    CHECK_EQ(pthread_cond_broadcast(cond), 0);
    if (round % 2 == 1) pthread_mutex_unlock(&mutex);
    CHECK_EQ(pthread_cond_destroy(cond), 0);
    memset(page, round % 3 == 0 ? 0 : 0xff, 4096);
    CHECK_EQ(munmap(page, 4096), 0);
    join_all(threads);
  }
}

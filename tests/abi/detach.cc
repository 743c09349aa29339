// abi: threads=2000
// Detached threads run to their end, whether born so or detached later, by others or by themselves.
#include <semaphore.h>

#include "abi.h"

static sem_t done;
static std::atomic<int> count{0};

int main() {
  sem_init(&done, 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const auto body = [] {
    ++count;
    sem_post(&done);
  };
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 50; ++i) start(body, &attributes);
    for (int i = 0; i < 50; ++i) CHECK_EQ(pthread_detach(start(body)), 0);
    for (int i = 0; i < 100; ++i)
      start([body] {
        CHECK_EQ(pthread_detach(pthread_self()), 0);
        body();
      });
    for (int i = 0; i < 200; ++i) CHECK_EQ(sem_wait(&done), 0);
  }
  CHECK_EQ(count, 2000);
}

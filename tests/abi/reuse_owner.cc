// abi: threads=60 reused=20
// A thread's id is its own: it does not own what the thread before it has left locked.
#include "abi.h"

int main() {
  pthread_mutexattr_t attributes;
  CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
  for (int type : {PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    CHECK_EQ(pthread_mutexattr_settype(&attributes, type), 0);
    for (int i = 0; i < 15; ++i) {
      pthread_mutex_t mutex;
      CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
      long first = 0;
      join(start([&] {
        first = syscall(SYS_gettid);
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
      }));
      join(start([&] {
        CHECK(syscall(SYS_gettid) != first);
        CHECK_EQ(gettid(), syscall(SYS_gettid));
        CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
        CHECK_EQ(pthread_mutex_unlock(&mutex), EPERM);
        CHECK_EQ(pthread_kill(pthread_self(), 0), 0);
      }));
    }
  }
}

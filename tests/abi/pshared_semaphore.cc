// abi: threads=3
// Process-shared semaphores and barriers between two processes with threads on both sides.
#include <semaphore.h>
#include <sys/mman.h>

#include "abi.h"

struct Shared {
  sem_t ping, pong;
  pthread_barrier_t barrier;
  std::atomic<int> rounds;
};

int main() {
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(shared != MAP_FAILED);
  CHECK_EQ(sem_init(&shared->ping, 1, 0), 0);
  CHECK_EQ(sem_init(&shared->pong, 1, 0), 0);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  CHECK_EQ(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQ(pthread_barrier_init(&shared->barrier, &attributes, 4), 0);
  const auto side = [shared](sem_t* post, sem_t* wait, bool first) {
    const auto meet = [shared] {
      for (int i = 0; i < 50; ++i) {
        ++shared->rounds;
        pthread_barrier_wait(&shared->barrier);
        CHECK(shared->rounds >= (i + 1) * 4);
      }
    };
    const pthread_t a = start(meet), b = start(meet);
    join(start([=] {
      for (int i = 0; i < 300; ++i) {
        if (first) sem_post(post);
        while (sem_wait(wait) != 0) CHECK_EQ(errno, EINTR);
        if (!first) sem_post(post);
      }
    }));
    join(a);
    join(b);
  };
  const pid_t child = fork();
  if (child == 0) {
    side(&shared->pong, &shared->ping, false);
    _exit(0);
  }
  side(&shared->ping, &shared->pong, true);
  wait_exit(child, 0);
  CHECK_EQ(shared->rounds, 200);
}

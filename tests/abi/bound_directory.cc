// abi: threads=9 bound=2 counters=bound_threads:2-2
// unshare(CLONE_FS): a thread has a working directory and a umask of its own, and so have the threads that it makes; the
// others keep theirs, and go on to share locks and conditions with it.
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>

#include "abi.h"

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int turn = 0;
std::atomic<bool> stop{false};

std::string here() {
  char path[PATH_MAX];
  CHECK(getcwd(path, sizeof path) != nullptr);
  return path;
}

void take_turns(int me, int others, int times) {
  for (int i = 0; i < times; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn != me) CHECK_EQ(pthread_cond_wait(&changed, &mutex), 0);
    turn = others;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
}

}  // namespace

int main() {
  const std::string before = here();
  CHECK(before != "/");
  umask(022);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 6; ++i)
    threads.push_back(start([&] {
      while (!stop) {
        CHECK(here() == before);
        sched_yield();
        nap(kMs);
      }
    }));
  const pthread_t other = start([&] {
    take_turns(1, 0, 2000);
    CHECK(here() == before);
  });
  const pthread_t own = start([&] {
    CHECK_EQ(unshare(CLONE_FS), 0);
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(umask(077), 022);
    take_turns(0, 1, 2000);
    CHECK(here() == "/");
    // Its own threads begin as it is.
    join(start([] {
      for (int i = 0; i < 100; ++i) {
        CHECK(here() == "/");
        sched_yield();
        nap(100'000);
      }
    }));
    timespec soon = after_ns(5 * kMs, CLOCK_REALTIME);
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&changed, &mutex, &soon) == 0) {
    }
    pthread_mutex_unlock(&mutex);
    CHECK(here() == "/");
    CHECK_EQ(umask(077), 077);
  });
  join(own);
  join(other);
  stop = true;
  join_all(threads);
  CHECK(here() == before);
  CHECK_EQ(umask(022), 022);
}

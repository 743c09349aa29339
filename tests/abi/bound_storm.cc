// abi: threads=900 bound=900 counters=bound_threads:300- timeout=60
// Threads that keep their kernel threads come, wait for each other in every way, are signalled and cancelled, and end, among
// others that do not; their kernel threads end with them.
#include <dirent.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/fsuid.h>

#include "abi.h"

namespace {

sem_t permits;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
long shared = 0;
std::atomic<int> handled{0};

void bind_self() { setfsuid(geteuid()); }

int kernel_threads() {
  DIR* tasks = opendir("/proc/self/task");
  CHECK(tasks != nullptr);
  int n = 0;
  while (const dirent* entry = readdir(tasks)) n += entry->d_name[0] != '.';
  closedir(tasks);
  return n;
}

void work(int i, int fd_in, int fd_out) {
  for (int k = 0; k < 20; ++k) {
    switch ((i + k) % 6) {
      case 0:
        while (sem_wait(&permits) != 0) CHECK_EQ(errno, EINTR);
        sched_yield();
        CHECK_EQ(sem_post(&permits), 0);
        break;
      case 1:
        pthread_mutex_lock(&mutex);
        ++shared;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        break;
      case 2: {
        const timespec soon = after_ns(kMs, CLOCK_REALTIME);
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&changed, &mutex, &soon);
        ++shared;
        pthread_mutex_unlock(&mutex);
        break;
      }
      case 3:
        CHECK_EQ(write(fd_out, "x", 1), 1);
        break;
      case 4: {
        char c;
        const timespec moment = to_timespec(100'000);
        nanosleep(&moment, nullptr);
        CHECK_EQ(write(fd_out, "x", 1), 1);
        CHECK_EQ(read(fd_in, &c, 1), 1);
        break;
      }
      default:
        burn(20'000);
        pthread_mutex_lock(&mutex);
        ++shared;
        pthread_mutex_unlock(&mutex);
    }
  }
}

}  // namespace

int main() {
  install(
      SIGUSR1, [](int) { ++handled; }, SA_RESTART);
  CHECK_EQ(sem_init(&permits, 0, 2), 0);
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  int sent = 0, most = 0;
  long expected = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<pthread_t> threads, sleepers;
    for (int i = 0; i < 20; ++i) {
      threads.push_back(start([=] {
        if (i % 2) bind_self();
        work(i, ends[0], ends[1]);
        if (i % 4 == 1) join(start([=] { work(i, ends[0], ends[1]); }));
      }));
      for (int k = 0; k < 20; ++k) {
        const int kind = (i + k) % 6;
        expected += (kind == 1 || kind == 2 || kind == 5) * (i % 4 == 1 ? 2 : 1);
      }
    }
    for (int i = 0; i < 6; ++i)
      sleepers.push_back(start([=] {
        if (i < 4) bind_self();
        for (;;) pause();
      }));
    settle();
    for (const pthread_t sleeper : sleepers) CHECK_EQ(pthread_kill(sleeper, SIGUSR1), 0);
    sent += static_cast<int>(sleepers.size());
    for (int waited = 0; handled < sent; ++waited, nap(kMs)) CHECK(waited < 10'000);
    for (const pthread_t sleeper : sleepers) CHECK_EQ(pthread_cancel(sleeper), 0);
    for (const pthread_t sleeper : sleepers) CHECK(join(sleeper) == PTHREAD_CANCELED);
    join_all(threads);
    const int n = kernel_threads();
    if (round == 4) most = n;
    if (round > 4 && n > most + 24)
      FAIL("%d kernel threads after round %d, %d after the fourth", n, round, most);
  }
  CHECK_EQ(shared, expected);
  CHECK_EQ(handled.load(), sent);
}

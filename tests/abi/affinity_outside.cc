// abi: threads=12
// Another process moves all kernel threads of this one from CPU to CPU and stops and continues it, while its threads block,
// fault, wait and compute: nothing is lost.
#include <dirent.h>
#include <sched.h>

#include "unseen.h"

static void move_all(pid_t process, const cpu_set_t& set) {
  const std::string path = "/proc/" + std::to_string(process) + "/task";
  DIR* directory = opendir(path.c_str());
  if (!directory) return;
  while (const dirent* entry = readdir(directory)) {
    const int id = atoi(entry->d_name);
    if (id > 0) sched_setaffinity(id, sizeof set, &set);
  }
  closedir(directory);
}

static void disturb(pid_t process) {
  cpu_set_t all;
  CPU_ZERO(&all);
  sched_getaffinity(process, sizeof all, &all);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) cpus.push_back(cpu);
  for (size_t i = 0; getppid() == process; ++i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[i % cpus.size()], &one);
    move_all(process, i % 3 == 2 ? all : one);
    nap(3 * kMs);
    if (i % 8 == 7) {
      kill(process, SIGSTOP);
      nap(2 * kMs);
      kill(process, SIGCONT);
    }
  }
  _exit(0);
}

int main() {
  auto call = made_syscall();
  const pid_t parent = getpid();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) disturb(parent);
  int pipes[2];
  CHECK_EQ(pipe(pipes), 0);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  long guarded = 0;
  std::vector<pthread_t> threads;
  for (int k = 0; k < 4; ++k)
    threads.push_back(start([&] {
      for (int i = 0; i < 100; ++i) {
        char c;
        CHECK_EQ(call(SYS_read, pipes[0], reinterpret_cast<long>(&c), 1), 1);
        pthread_mutex_lock(&mutex);
        ++guarded;
        pthread_mutex_unlock(&mutex);
      }
    }));
  for (int k = 0; k < 4; ++k)
    threads.push_back(start([&, k] {
      for (int i = 0; i < 100; ++i) {
        if ((i + k) % 4 == 0) burn(kMs);
        const char c = 'x';
        CHECK_EQ(write(pipes[1], &c, 1), 1);
      }
    }));
  for (int k = 0; k < 4; ++k)
    threads.push_back(start([&] {
      for (int i = 0; i < 100; ++i) {
        nap(kMs / 2);
        pthread_mutex_lock(&mutex);
        ++guarded;
        pthread_mutex_unlock(&mutex);
        sched_yield();
      }
    }));
  join_all(threads);
  CHECK_EQ(guarded, 800);
  CHECK_EQ(kill(child, SIGKILL), 0);
  int status;
  while (waitpid(child, &status, 0) < 0) CHECK_EQ(errno, EINTR);
}

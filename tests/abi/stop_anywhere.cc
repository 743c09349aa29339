// abi: threads=0
// SIGSTOP and SIGCONT, and SIGTSTP by default, at any moment in a process whose threads compute, lock, sleep, poll, read
// pipes, signal each other and create threads: it goes on each time, no call of the program fails, nothing is lost.
#include <poll.h>
#include <sys/mman.h>

#include "abi.h"

struct Shared {
  std::atomic<int64_t> steps;
  std::atomic<bool> stop;
};
static Shared* shared;
static std::atomic<int> sent{0}, got{0};

static void child() {
  setpgid(0, 0);
  install(
      SIGUSR1, [](int) { ++got; }, SA_RESTART);
  std::vector<pthread_t> threads;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static int64_t guarded = 0, made = 0;
  int there[2], back[2];
  CHECK_EQ(pipe(there) | pipe(back), 0);
  threads.push_back(start([&] {
    char byte = 'a';
    while (!shared->stop) {
      CHECK_EQ(write(there[1], &byte, 1), 1);
      CHECK_EQ(read(back[0], &byte, 1), 1);
      ++shared->steps;
    }
    close(there[1]);
  }));
  threads.push_back(start([&] {
    char byte;
    while (read(there[0], &byte, 1) == 1) CHECK_EQ(write(back[1], &byte, 1), 1);
  }));
  for (int i = 0; i < 2; ++i)
    threads.push_back(start([] {
      while (!shared->stop) {
        pthread_mutex_lock(&mutex);
        ++guarded;
        pthread_mutex_unlock(&mutex);
        burn(kMs / 20);
      }
    }));
  threads.push_back(start([] {
    while (!shared->stop) {
      CHECK_EQ(poll(nullptr, 0, 1), 0);
      const timespec time = to_timespec(kMs / 2);
      CHECK_EQ(nanosleep(&time, nullptr), 0);
    }
  }));
  threads.push_back(start([] {
    while (!shared->stop) {
      join(start([] { ++made; }));
      ++sent;
      CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
    }
  }));
  join_all(threads);
  CHECK_EQ(sent, got);
  CHECK_EQ(made, sent);
  _exit(3);
}

int main() {
  shared =
      static_cast<Shared*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(shared != MAP_FAILED);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) child();
  while (shared->steps == 0) nap(kMs);
  uint32_t random = 12345;
  for (int i = 0; i < 60; ++i) {
    random = random * 1664525 + 1013904223;
    CHECK_EQ(kill(pid, i % 3 == 2 ? SIGTSTP : SIGSTOP), 0);
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    if (!WIFSTOPPED(status)) FAIL("status 0x%x, not stopped, at %d", status, i);
    CHECK_EQ(kill(pid, SIGCONT), 0);
    nap(random % (2 * kMs));
  }
  const int64_t before = shared->steps;
  while (shared->steps == before) nap(kMs);
  shared->stop = true;
  wait_exit(pid, 3);
}

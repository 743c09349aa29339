// abi: threads=10 timeout=60
// The ids change while threads begin and end, block and come back, are signalled, and processes are forked: every change is
// complete when it returns, none hangs.
#include "credentials.h"

namespace {
std::atomic<int> handled{0};
}

int main() {
  need_root();
  install(
      SIGUSR1, [](int) { ++handled; }, SA_RESTART);
  std::atomic<bool> stop{false};
  std::vector<pthread_t> threads;
  int fds[2];
  CHECK_EQ(pipe(fds), 0);
  for (int i = 0; i < 2; ++i) {
    threads.push_back(start([&] {
      while (!stop) {
        std::vector<pthread_t> few;
        for (int n = 0; n < 5; ++n) few.push_back(start([] { burn(kMs / 100); }));
        join_all(few);
        usleep(500);
      }
    }));
    threads.push_back(start([&] {
      char byte = 0;
      while (!stop) {
        CHECK_EQ(write(fds[1], &byte, 1), 1);
        CHECK_EQ(read(fds[0], &byte, 1), 1);
        burn(kMs / 100);
      }
    }));
  }
  pthread_t target = threads[0];
  threads.push_back(start([&] {
    while (!stop) {
      pthread_kill(target, SIGUSR1);
      usleep(300);
    }
  }));
  threads.push_back(start([&] {
    while (!stop) {
      const pid_t child = fork();
      if (child == 0) {
        // Its ids are its own, and complete.
        const bool changed = seteuid(0) == 0 && seteuid(1234) == 0 && geteuid() == 1234;
        _exit(changed ? 0 : 1);
      }
      wait_exit(child, 0);
      usleep(2000);
    }
  }));
  for (unsigned i = 0; i < 6; ++i) {
    CHECK_EQ(seteuid(1000 + i % 7), 0);
    check_all(0, 1000 + i % 7, 0, 0, 0, 0);
    CHECK_EQ(seteuid(0), 0);
    check_all(0, 0, 0, 0, 0, 0);
  }
  stop = true;
  join_all(threads);
  CHECK(handled > 0);
}

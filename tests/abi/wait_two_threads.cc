// abi: threads=8
// wait(2): children are the process's: any thread may wait for any; of two that wait for the same child one gets it, the other
// ECHILD; several that wait for any child get one each; a handler without SA_RESTART ends the wait with EINTR, one with
// SA_RESTART does not (signal(7)).
#include <set>

#include "process.h"

namespace {

std::atomic<int> handled{0};

void same_child() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pid_t child = start_child([&] {
    char byte;
    _exit(read(ends[0], &byte, 1) == 1 ? 3 : 4);
  });
  std::atomic<int> got{0}, none{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 2; ++i)
    threads.push_back(start([&] {
      int status = 0;
      const pid_t result = waitpid(child, &status, 0);
      if (result == child && status == 3 << 8) ++got;
      if (result == -1 && errno == ECHILD) ++none;
    }));
  settle();
  CHECK_EQ(write(ends[1], "x", 1), 1);
  join_all(threads);
  CHECK(got == 1 && none == 1);
  close(ends[0]), close(ends[1]);
}

void any_child() {
  constexpr int count = 12;
  std::set<pid_t> children, seen;
  for (int i = 0; i < count; ++i) children.insert(start_child([i] { _exit(i); }));
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3; ++i)
    threads.push_back(start([&] {
      for (pid_t child; (child = wait(nullptr)) > 0;) {
        pthread_mutex_lock(&mutex);
        CHECK(seen.insert(child).second);
        pthread_mutex_unlock(&mutex);
      }
      CHECK_EQ(errno, ECHILD);
    }));
  join_all(threads);
  CHECK(seen == children);
}

void interrupted() {
  for (int flags : {0, SA_RESTART}) {
    handled = 0;
    install(
        SIGUSR1, [](int) { ++handled; }, flags);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    const pid_t child = start_child([&] {
      char byte;
      _exit(read(ends[0], &byte, 1) == 1 ? 3 : 4);
    });
    std::atomic<bool> over{false};
    const pthread_t waiting = start([&] {
      int status = 0;
      pid_t result = waitpid(child, &status, 0);
      if (flags == 0) {
        CHECK(result == -1 && errno == EINTR && handled > 0);
        over = true;
        do {
          result = waitpid(child, &status, 0);
        } while (result == -1 && errno == EINTR);
      }
      CHECK_EQ(result, child);
      CHECK_EQ(WEXITSTATUS(status), 3);
    });
    // Until it has been in the call: the handler may run before.
    for (int i = 0; flags == 0 ? !over : handled < 3 && i < 1000; ++i) {
      nap(2 * kMs);
      CHECK_EQ(pthread_kill(waiting, SIGUSR1), 0);
    }
    CHECK_EQ(write(ends[1], "x", 1), 1);
    join(waiting);
    close(ends[0]), close(ends[1]);
  }
}

}  // namespace

int main() {
  join(start([] {}));
  same_child();
  any_child();
  interrupted();
}

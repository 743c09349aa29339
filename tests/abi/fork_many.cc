// abi: threads=5
// Many forks from several threads at once, children with and without threads of their own, some waited for by another thread
// than the one that forked (wait(2): children belong to the process). None is lost, none has another's status.
#include <set>

#include "process.h"

int main() {
  constexpr int threads_forking = 4, each = 25;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::set<pid_t> left, ended;
  std::vector<pthread_t> threads;
  for (int id = 0; id < threads_forking; ++id)
    threads.push_back(start([&, id] {
      for (int i = 0; i < each; ++i) {
        const int code = (id * each + i) % 100 + 1;
        const pid_t child = start_child([&] {
          CHECK_EQ(gettid(), getpid());
          if (i % 8 == 0) use_threads(2);
          _exit(code);
        });
        if (i % 2 == 0) {
          wait_exit(child, code);
        } else {
          pthread_mutex_lock(&mutex);
          CHECK(left.insert(child).second);
          pthread_mutex_unlock(&mutex);
        }
      }
    }));
  const pthread_t waiting = start([&] {
    for (int done = 0; done < threads_forking * (each / 2);) {
      pthread_mutex_lock(&mutex);
      const pid_t child = left.empty() ? 0 : *left.begin();
      if (child) left.erase(child);
      pthread_mutex_unlock(&mutex);
      if (child == 0) {
        nap(kMs / 2);
        continue;
      }
      const int status = wait_status(child);
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) >= 1 && WEXITSTATUS(status) <= 100);
      CHECK(ended.insert(child).second);
      ++done;
    }
  });
  join_all(threads);
  join(waiting);
  CHECK_ERRNO(wait(nullptr), ECHILD);
}

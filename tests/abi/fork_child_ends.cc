// abi: threads=8
// How the child of a thread that is not main may end: by returning from that thread's function or pthread_exit, as the last
// thread of its process: status 0, atexit functions run, streams are flushed (pthread_exit(3)); by exit and by _exit; by a
// signal. Cleanup handlers and keys' destructors of the copied thread run in it.
#include <sys/mman.h>

#include "process.h"

namespace {

struct Seen {
  std::atomic<int> cleanups, destructors, exits;
};
Seen* seen;  // shared with the children
pid_t parent;
pthread_key_t key;

void forget() { seen->cleanups = seen->destructors = seen->exits = 0; }

void check(int cleanups, int destructors, int exits) {
  CHECK_EQ(seen->cleanups.load(), cleanups);
  CHECK_EQ(seen->destructors.load(), destructors);
  CHECK_EQ(seen->exits.load(), exits);
}

// Returns in the child.
template <class F>
void fork_in_thread(F in_child, int status) {
  forget();
  pid_t child = -1;
  join(start([&] {
    pthread_setspecific(key, &key);
    pthread_cleanup_push([](void*) { ++seen->cleanups; }, nullptr);
    child = fork();
    if (child == 0) in_child();
    if (child != 0) pthread_setspecific(key, nullptr);
    pthread_cleanup_pop(0);
  }));
  CHECK_EQ(getpid(), parent);
  CHECK_EQ(wait_status(child), status);
}

}  // namespace

int main() {
  parent = getpid();
  seen = static_cast<Seen*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(seen != MAP_FAILED);
  CHECK_EQ(pthread_key_create(&key, [](void*) { ++seen->destructors; }), 0);
  atexit([] { ++seen->exits; });
  Crowd crowd;
  fork_in_thread([] {}, 0);
  check(0, 1, 1);
  fork_in_thread([] { pthread_exit(&key); }, 0);
  check(1, 1, 1);
  // Not the last thread: the process goes on with the other one.
  fork_in_thread(
      [] {
        start([] {
          while (seen->destructors == 0) nap(kMs / 10);
          exit(4);
        });
        pthread_exit(nullptr);
      },
      4 << 8);
  check(1, 1, 1);
  fork_in_thread([] { exit(5); }, 5 << 8);
  check(0, 0, 1);
  fork_in_thread([] { _exit(6); }, 6 << 8);
  check(0, 0, 0);
  fork_in_thread([] { raise(SIGKILL); }, SIGKILL);
  fork_in_thread(
      [] {
        pthread_cancel(pthread_self());
        pthread_testcancel();
      },
      0);
  check(1, 1, 1);
  forget();
  crowd.end();
}

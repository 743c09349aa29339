// abi: threads=8
// fork(2), POSIX fork: "created with a single thread ... a replica of the calling thread", wherever that one is: in main, a
// thread, a handler, a cleanup handler, a destructor of a key, pthread_once; with others computing, waiting and blocked. The
// child is its own main thread to the kernel, has no other, and may use threads of its own.
#include "process.h"

namespace {

thread_local int own = 0;
std::atomic<int> forked{0};

void fork_here(int value) {
  own = value;
  const pthread_t me = pthread_self();
  run_child([&] {
    CHECK_EQ(gettid(), getpid());
    CHECK_EQ(kernel_threads(), 1);
    CHECK_EQ(own, value);
    CHECK(pthread_equal(me, pthread_self()));
    use_threads();
    CHECK_EQ(own, value);
  });
  ++forked;
}

pthread_key_t key;

}  // namespace

int main() {
  Crowd crowd;
  fork_here(1);
  join(start([] { fork_here(2); }));
  install(SIGUSR1, [](int) { fork_here(3); });
  raise(SIGUSR1);
  join(start([] { raise(SIGUSR1); }));
  const pthread_t asleep = start([] {
    const int before = forked;
    while (forked == before) nap(kSecond);
  });
  settle();
  pthread_kill(asleep, SIGUSR1);
  join(asleep);
  join(start([] {
    pthread_cleanup_push([](void*) { fork_here(4); }, nullptr);
    pthread_exit(nullptr);
    pthread_cleanup_pop(0);
  }));
  CHECK_EQ(pthread_key_create(&key, [](void*) { fork_here(5); }), 0);
  join(start([] { pthread_setspecific(key, &key); }));
  join(start([] {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { fork_here(6); });
  }));
  CHECK_EQ(forked.load(), 8);
  crowd.end();
}

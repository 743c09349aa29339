// abi: threads=8
// A call with a time-out that a signal disturbs without any handler being run goes on for the rest of its time, as
// restart_syscall(2) has it: signals of the process that another thread takes, and SIGCONT. It ends neither early nor
// late.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/sem.h>

#include "abi.h"

static std::atomic<bool> stop{false};
static std::atomic<int> taken{0};
static constexpr int64_t kTime = 150 * kMs, kLate = 350 * kMs;

template <class F>
static pthread_t timed(const char* name, F call) {
  return start([name, call] {
    const int64_t begin = now_ns();
    const long result = call();
    const int64_t took = now_ns() - begin;
    if (took < kTime - kMs || took > kTime + kLate * time_factor())
      FAIL("%s took %lld ms, not 150 (answer %ld)", name, static_cast<long long>(took / kMs), result);
  });
}

int main() {
  const sigset_t set = signal_set({SIGUSR1}), never = signal_set({SIGHUP});
  CHECK_EQ(sigprocmask(SIG_BLOCK, &never, nullptr), 0);
  install(SIGUSR1, [](int) { ++taken; });
  static uint32_t word = 0;
  const int queue = epoll_create1(0), semaphore = semget(IPC_PRIVATE, 1, 0600);
  const timespec time = to_timespec(kTime);
  std::vector<pthread_t> threads;
  threads.push_back(timed("nanosleep", [=] { return nanosleep(&time, nullptr); }));
  threads.push_back(
      timed("clock_nanosleep", [=] { return clock_nanosleep(CLOCK_REALTIME, 0, &time, nullptr); }));
  threads.push_back(timed("poll", [] { return poll(nullptr, 0, 150); }));
  threads.push_back(timed("epoll_wait", [=] {
    epoll_event event;
    return epoll_wait(queue, &event, 1, 150);
  }));
  threads.push_back(timed("futex", [=] { return futex(&word, FUTEX_WAIT_PRIVATE, 0, &time); }));
  threads.push_back(timed("sigtimedwait", [=] { return sigtimedwait(&never, nullptr, &time); }));
  threads.push_back(timed("semtimedop", [=] {
    sembuf down = {0, -1, 0};
    return semtimedop(semaphore, &down, 1, &time);
  }));
  // The signals are for whoever lets them through; these threads are to be bothered, not the sleepers ended.
  const pthread_t taker = start([] {
    while (!stop) burn(kMs / 4);
  });
  (void)set;
  for (int i = 0; i < 60; ++i) {
    CHECK_EQ(kill(getpid(), SIGCONT), 0);
    CHECK_EQ(kill(getpid(), SIGURG), 0);
    nap(kMs);
  }
  stop = true;
  join(taker);
  join_all(threads);
  semctl(semaphore, 0, IPC_RMID);
}

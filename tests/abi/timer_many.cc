// abi: threads=5
// timer_create(2) SIGEV_THREAD_ID: each of hundreds of timers, made and deleted over and over, signals the thread that it names and
// no other, the main thread included; invalid ids, signals and kinds are EINVAL.
#include "abi.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static constexpr int kThreads = 4, kTimers = 350;
static thread_local int mine = -1;
static std::atomic<int> hits{0};

static void handler(int, siginfo_t* info, void*) {
  CHECK_EQ(info->si_code, SI_TIMER);
  CHECK_EQ(info->si_value.sival_int % (kThreads + 1), mine);
  ++hits;
}

int main() {
  install_info(SIGRTMIN + 1, handler);
  pid_t ids[kThreads + 1] = {};
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start([&, i] {
      mine = i;
      ids[i] = gettid();
      ++ready;
      while (!stop) {
        if (i & 1)
          burn(kMs / 2);
        else
          nap(2 * kMs);
      }
    }));
  while (ready < kThreads) sched_yield();
  ids[kThreads] = gettid();
  mine = kThreads;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGRTMIN + 1;
  timer_t timers[kTimers];
  int expected = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kTimers; ++i) {
      event.sigev_value.sival_int = i;
      event.sigev_notify_thread_id = ids[i % (kThreads + 1)];
      CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timers[i]), 0);
      // Some of them are gone before others are made.
      if (round == 1 && i % 3 == 0) {
        CHECK_EQ(timer_delete(timers[i]), 0);
        CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timers[i]), 0);
      }
    }
    const itimerspec soon = {{0, 0}, {0, 100'000}};
    for (timer_t timer : timers) CHECK_EQ(timer_settime(timer, 0, &soon, nullptr), 0);
    expected += kTimers;
    for (int i = 0; hits < expected && i < 10000; ++i) nap(kMs);
    CHECK_EQ(hits, expected);
    for (timer_t timer : timers) CHECK_EQ(timer_delete(timer), 0);
  }
  stop = true;
  join_all(threads);

  join(start([&event, &ids] {
    timer_t timer;
    event.sigev_notify_thread_id = ids[0];  // has ended
    CHECK_ERRNO(timer_create(CLOCK_MONOTONIC, &event, &timer), EINVAL);
    event.sigev_notify_thread_id = getppid();
    CHECK_ERRNO(timer_create(CLOCK_MONOTONIC, &event, &timer), EINVAL);
    event.sigev_notify_thread_id = gettid();
    for (int signal : {0, -1, 65}) {
      event.sigev_signo = signal;
      CHECK_ERRNO(timer_create(CLOCK_MONOTONIC, &event, &timer), EINVAL);
    }
    event.sigev_signo = SIGRTMIN + 1;
    CHECK_ERRNO(timer_create(4711, &event, &timer), EINVAL);
    event.sigev_notify = 6;
    CHECK_ERRNO(timer_create(CLOCK_MONOTONIC, &event, &timer), EINVAL);
  }));
}

// abi: threads=3
// timer_create(2) SIGEV_THREAD_ID: when its thread has ended the timer signals nobody, least of all another thread or the process,
// whose default action would end it. It can be asked, set and deleted as before.
#include "abi.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static thread_local bool target = false;
static std::atomic<int> hits{0};

int main() {
  join(start([] {}));
  for (bool handled : {true, false}) {
    const int signal = handled ? SIGUSR1 : SIGUSR2;  // the other at its default: it ends the process
    if (handled)
      install(signal, [](int) {
        CHECK(target);
        ++hits;
      });
    std::atomic<pid_t> tid{0};
    std::atomic<bool> stop{false};
    const pthread_t thread = start([&] {
      target = true;
      tid = gettid();
      while (!stop) nap(kMs / 2);
    });
    while (tid == 0) sched_yield();
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event.sigev_notify_thread_id = tid;
    timer_t timer;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    const itimerspec every = {{0, 500'000}, {0, 500'000}};
    if (handled) {
      CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
      while (hits < 3) nap(kMs);
    }
    stop = true;
    join(thread);
    if (!handled) CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
    // Threads that may be what the ended one was before.
    std::vector<pthread_t> threads;
    for (int i = 0; i < 4; ++i) threads.push_back(start([] { nap(10 * kMs); }));
    join_all(threads);
    itimerspec left;
    CHECK_EQ(timer_gettime(timer, &left), 0);
    CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
    CHECK_EQ(timer_delete(timer), 0);
  }
}

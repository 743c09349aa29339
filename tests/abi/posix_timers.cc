// abi: threads=2
// POSIX timers: SIGEV_SIGNAL to the process, SIGEV_THREAD_ID to one thread, SIGEV_THREAD in a thread of its own,
// SIGEV_NONE polled; while all threads compute.
#include "abi.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static std::atomic<int> process_hits{0}, thread_hits{0}, wrong_thread{0}, called{0};
static std::atomic<pthread_t> target{};

static timer_t make(sigevent* event) {
  timer_t timer;
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, event, &timer), 0);
  const itimerspec every = {{0, 10'000'000}, {0, 10'000'000}};
  CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
  return timer;
}

static void wait_for(const std::atomic<int>& count, int wanted) {
  const int64_t end = now_ns() + 10 * kSecond;
  while (count < wanted && now_ns() < end) burn(kMs);
  CHECK(count >= wanted);
}

int main() {
  install_info(SIGUSR1, [](int, siginfo_t* info, void*) {
    CHECK_EQ(info->si_code, SI_TIMER);
    CHECK_EQ(info->si_value.sival_int, 99);
    ++process_hits;
  });
  install_info(SIGUSR2, [](int, siginfo_t*, void*) {
    if (pthread_equal(pthread_self(), target) == 0) ++wrong_thread;
    ++thread_hits;
  });
  std::atomic<bool> stop{false};
  std::atomic<pid_t> target_tid{0};
  const pthread_t computing = start([&] {
    target = pthread_self();
    target_tid = gettid();
    while (!stop) burn(kMs);
  });
  while (target_tid == 0) sched_yield();

  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  event.sigev_value.sival_int = 99;
  const timer_t to_process = make(&event);
  wait_for(process_hits, 3);
  CHECK_EQ(timer_delete(to_process), 0);

  event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR2;
  event.sigev_notify_thread_id = target_tid;
  const timer_t to_thread = make(&event);
  wait_for(thread_hits, 3);
  CHECK_EQ(timer_delete(to_thread), 0);
  CHECK_EQ(wrong_thread, 0);

  event = {};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_value.sival_int = 7;
  event.sigev_notify_function = [](sigval value) { called += value.sival_int == 7; };
  const timer_t in_thread = make(&event);
  wait_for(called, 3);
  CHECK_EQ(timer_delete(in_thread), 0);

  event = {};
  event.sigev_notify = SIGEV_NONE;
  const timer_t polled = make(&event);
  itimerspec left;
  CHECK_EQ(timer_gettime(polled, &left), 0);
  CHECK(left.it_value.tv_nsec > 0 && left.it_value.tv_nsec <= 10'000'000);
  CHECK_EQ(timer_delete(polled), 0);
  stop = true;
  join(computing);
}

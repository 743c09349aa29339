// abi: threads=6
// signal(7), sigqueue(3), signalfd(2): real-time signals are neither lost nor doubled, whoever sends them (two threads, a child, a timer's
// signals beside them) and however they are taken: by a handler, by two threads in sigwaitinfo, by a reader of a signalfd.
#include <sys/signalfd.h>

#include "abi.h"

static constexpr int kKinds = 3, kSenders = 3, kEach = 60;
static std::atomic<int> taken[kKinds][kSenders * kEach];
static std::atomic<int> total{0};

static void note(int signal, int value) {
  const int kind = signal - SIGRTMIN - 1;
  CHECK(kind >= 0 && kind < kKinds && value >= 0 && value < kSenders * kEach);
  ++taken[kind][value];
  ++total;
}

static bool send_all(pid_t to, int sender) {
  for (int i = 0; i < kEach; ++i)
    for (int kind = 0; kind < kKinds; ++kind)
      while (sigqueue(to, SIGRTMIN + 1 + kind, sigval{.sival_int = sender * kEach + i}) != 0) {
        if (errno != EAGAIN) return false;
        nap(kMs);
      }
  return true;
}

int main() {
  const sigset_t set = signal_set({SIGRTMIN + 1, SIGRTMIN + 2, SIGRTMIN + 3, SIGUSR1, SIGUSR2});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  install_info(
      SIGRTMIN + 1, [](int signal, siginfo_t* info, void*) { note(signal, info->si_value.sival_int); },
      SA_RESTART);
  static std::atomic<int> ticks{0};
  install(
      SIGUSR1, [](int) { ++ticks; }, SA_RESTART);
  std::atomic<bool> stop{false};
  const pthread_t handling = start([&stop] {
    const sigset_t own = signal_set({SIGRTMIN + 1, SIGUSR1});
    while (!stop) {
      CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &own, nullptr), 0);
      burn(kMs / 10);
      CHECK_EQ(pthread_sigmask(SIG_BLOCK, &own, nullptr), 0);
      nap(kMs / 10);
    }
  });
  const auto waiting = [&stop] {
    const sigset_t own = signal_set({SIGRTMIN + 2});
    const timespec shortly = {0, 2'000'000};
    siginfo_t info;
    while (!stop)
      if (sigtimedwait(&own, &info, &shortly) > 0) note(info.si_signo, info.si_value.sival_int);
  };
  const pthread_t first = start(waiting), second = start(waiting);
  const sigset_t read_set = signal_set({SIGRTMIN + 3, SIGUSR2});
  const int file = signalfd(-1, &read_set, SFD_CLOEXEC);
  const pthread_t reading = start([file] {
    signalfd_siginfo info;
    for (;;) {
      CHECK_EQ(read(file, &info, sizeof info), sizeof info);
      if (info.ssi_signo == SIGUSR2) return;
      note(static_cast<int>(info.ssi_signo), info.ssi_int);
    }
  });
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer;
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec every = {{0, 300'000}, {0, 300'000}};
  CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);

  const pid_t child = fork();
  if (child == 0) _exit(send_all(getppid(), 2) ? 0 : 1);
  const pthread_t senders[] = {start([] { CHECK(send_all(getpid(), 0)); }),
                               start([] { CHECK(send_all(getpid(), 1)); })};
  for (pthread_t sender : senders) join(sender);
  wait_exit(child, 0);
  for (int i = 0; (total < kKinds * kSenders * kEach || ticks < 3) && i < 10000; ++i) nap(kMs);
  CHECK_EQ(timer_delete(timer), 0);
  for (auto& kind : taken)
    for (auto& count : kind) CHECK_EQ(count, 1);
  CHECK_EQ(total, kKinds * kSenders * kEach);
  CHECK(ticks >= 3);
  stop = true;
  CHECK_EQ(pthread_kill(reading, SIGUSR2), 0);
  for (pthread_t thread : {handling, first, second, reading}) join(thread);
}

// abi: threads=3
// Signals from another process, by kill, sigqueue and pidfd_send_signal: one of the threads that do not block it handles it, whatever
// that one does (computes, sleeps, waits in a futex, reads), with the sender's pid; each once; real-time ones in order.
#include "abi.h"

static std::atomic<int> hits{0}, next{0};
static std::atomic<pid_t> sender{0};
static std::atomic<pthread_t> by{};

static void handler(int signal, siginfo_t* info, void*) {
  sender = info->si_pid;
  by = pthread_self();
  if (signal == SIGRTMIN + 1) CHECK_EQ(info->si_value.sival_int, next++);
  ++hits;
}

static void from_child(pthread_t taker) {
  const int before = hits;
  next = 0;
  const pid_t child = fork();
  if (child == 0) {
    const pid_t parent = getppid();
    if (kill(parent, SIGUSR1) != 0) _exit(1);
    for (int i = 0; i < 10; ++i)
      if (sigqueue(parent, SIGRTMIN + 1, sigval{.sival_int = i}) != 0) _exit(2);
    const int file = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
    if (file >= 0 && syscall(SYS_pidfd_send_signal, file, SIGUSR2, nullptr, 0) != 0) _exit(3);
    _exit(file >= 0 ? 0 : kill(parent, SIGUSR2));
  }
  wait_exit(child, 0);
  for (int i = 0; hits < before + 12 && i < 10000; ++i) nap(kMs);
  CHECK_EQ(hits, before + 12);
  CHECK_EQ(next, 10);
  CHECK_EQ(sender, child);
  CHECK(pthread_equal(by, taker) != 0);
}

int main() {
  for (int signal : {SIGUSR1, SIGUSR2, SIGRTMIN + 1}) install_info(signal, handler, SA_RESTART);
  const sigset_t set = signal_set({SIGUSR1, SIGUSR2, SIGRTMIN + 1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  std::atomic<bool> stop{false};
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs / 2);
  });
  uint32_t word = 0;
  for (int kind = 0; kind < 4; ++kind) {
    std::atomic<bool> end{false};
    const pthread_t taker = start([&] {
      CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
      char byte;
      if (kind == 3) CHECK_EQ(read(ends[0], &byte, 1), 1);
      while (!end) {
        if (kind == 0) burn(kMs / 2);
        if (kind == 1) nap(5 * kMs);
        if (kind == 2) futex(&word, FUTEX_WAIT_PRIVATE, 0);
      }
    });
    settle();
    from_child(taker);
    end = true;
    if (kind == 2) __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    futex(&word, FUTEX_WAKE_PRIVATE, 1);
    if (kind == 3) CHECK_EQ(write(ends[1], "x", 1), 1);
    join(taker);
  }
  // To the main thread, which waits for its child then.
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
  from_child(pthread_self());
  stop = true;
  join(computing);
}

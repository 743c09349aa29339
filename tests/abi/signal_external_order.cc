// abi: threads=4
// Real-time signals from another process come in the order in which they were sent, however they are taken: by a handler that is
// interrupted by none of them, by one whose thread opens and closes its mask all the time, by sigtimedwait with and without a
// time to wait. What the sender has said that it has sent is pending (sigpending) and is there for who asks once.
#include <sys/prctl.h>

#include "abi.h"

static constexpr int kSent = 200, kRounds = 100;
static std::atomic<int> next{0};
static int signal_number;
static sigset_t set;

static void in_order(const siginfo_t& info) {
  const int expected = next++;
  CHECK_EQ(info.si_value.sival_int, expected);
}

static void handler(int, siginfo_t* info, void*) { in_order(*info); }

static pid_t sender(int* ends) {
  const pid_t parent = getpid(), child = fork();
  CHECK(child >= 0);
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!ends)  // with pauses, in which the takers come to the end of what there is
    for (int i = 0; i < kSent; ++i) {
      if (sigqueue(parent, signal_number, sigval{.sival_int = i}) != 0) _exit(1);
      if (i % 8 == 0) nap(20'000);
    }
  char byte;
  for (int i = 0; ends && i < kRounds; ++i) {
    if (sigqueue(parent, signal_number, sigval{.sival_int = i}) != 0) _exit(1);
    if (write(ends[1], "s", 1) != 1 || read(ends[2], &byte, 1) != 1) _exit(2);
  }
  _exit(0);
}

template <class F>
static void all_in_order(F take) {
  next = 0;
  const pid_t child = sender(nullptr);
  join(start([take] {
    const int64_t end = now_ns() + 10 * kSecond * time_factor();
    while (next < kSent) {
      take();
      if (now_ns() > end) FAIL("only %d of %d have come", next.load(), kSent);
    }
  }));
  wait_exit(child, 0);
}

// `look` is called after the sender has said that it has sent.
template <class F>
static void known_at_once(F look) {
  next = 0;
  int to[2], back[2];
  CHECK_EQ(pipe(to) | pipe(back), 0);
  int ends[3] = {to[0], to[1], back[0]};
  const pid_t child = sender(ends);
  join(start([&] {
    char byte;
    for (int i = 0; i < kRounds; ++i) {
      CHECK_EQ(read(to[0], &byte, 1), 1);
      look();
      CHECK_EQ(next, i + 1);
      CHECK_EQ(write(back[1], "g", 1), 1);
    }
  }));
  wait_exit(child, 0);
  for (int file : {to[0], to[1], back[0], back[1]}) close(file);
}

static void take_now() {
  const timespec zero = {0, 0};
  siginfo_t info;
  CHECK_EQ(sigtimedwait(&set, &info, &zero), signal_number);
  in_order(info);
}

int main() {
  signal_number = SIGRTMIN + 1;
  set = signal_set({signal_number});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  install_info(signal_number, handler, SA_RESTART);
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs / 2);
  });
  all_in_order([] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    burn(kMs / 10);
  });
  all_in_order([] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  });
  for (const int64_t time : {int64_t{0}, kMs / 50, 50 * kMs})
    all_in_order([time] {
      const timespec wait = to_timespec(time);
      siginfo_t info;
      const int signal = sigtimedwait(&set, &info, &wait);
      if (signal == signal_number) in_order(info);
    });
  known_at_once(take_now);
  known_at_once([] {
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, signal_number), 1);
    take_now();
  });
  stop = true;
  join(computing);
}

// abi: threads=12
// Asynchronous cancellation (pthread_setcanceltype(3)) ends a thread that computes, that yields, that is blocked in a
// system call made by syscall(2), and one that waits for a futex, for a signal or for time. What could not be unwound
// elsewhere is in the call's own frame here.
#include "cancel.h"

static int ends[2];
static uint32_t word = 0;

static void asynchronous() {
  int old = -1;
  CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old), 0);
  CHECK_EQ(old, PTHREAD_CANCEL_DEFERRED);
}

int main() {
  CHECK_EQ(pipe(ends), 0);
  cancel_blocked({
      {"yielding",
       [] {
         asynchronous();
         for (;;) sched_yield();
       }},
      {"syscall(SYS_read)",
       [] {
         char byte;
         asynchronous();
         syscall(SYS_read, ends[0], &byte, 1);
       }},
      {"syscall(SYS_futex)",
       [] {
         asynchronous();
         futex(&word, FUTEX_WAIT_PRIVATE, 0);
       }},
      {"syscall(SYS_futex), shared",
       [] {
         asynchronous();
         futex(&word, FUTEX_WAIT, 0);
       }},
      {"syscall(SYS_nanosleep)",
       [] {
         const timespec t = {1000, 0};
         asynchronous();
         syscall(SYS_nanosleep, &t, nullptr);
       }},
      {"syscall(SYS_pause)",
       [] {
         asynchronous();
         syscall(SYS_pause);
       }},
      {"syscall(SYS_wait4)",
       [] {
         asynchronous();
         for (;;) syscall(SYS_wait4, -1, nullptr, 0, nullptr), sched_yield();
       }},
      {"read",
       [] {
         char byte;
         asynchronous();
         read(ends[0], &byte, 1);
       }},
      {"sleep",
       [] {
         asynchronous();
         sleep(1000);
       }},
      {"sigwait",
       [] {
         const sigset_t set = signal_set({SIGUSR1});
         int signal;
         asynchronous();
         sigwait(&set, &signal);
       }},
  });
  // Computing: the instruction is in no call, so that only keys' destructors run (see cancel_async). Beside one that
  // may not be cancelled and goes on.
  static std::atomic<int> entered{0};
  static std::atomic<bool> end{false};
  const auto compute = [](int state) {
    return start([state] {
      CHECK_EQ(pthread_setcancelstate(state, nullptr), 0);
      asynchronous();
      ++entered;
      while (!end) asm volatile("");
    });
  };
  const pthread_t may = compute(PTHREAD_CANCEL_ENABLE), may_not = compute(PTHREAD_CANCEL_DISABLE);
  while (entered < 2) nap(kMs / 2);
  CHECK_EQ(pthread_cancel(may), 0);
  CHECK_EQ(pthread_cancel(may_not), 0);
  CHECK(join(may) == PTHREAD_CANCELED);
  end = true;
  CHECK(join(may_not) == nullptr);
}

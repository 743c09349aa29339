// abi: threads=2
// A call that waits for some time from now on, in a thread that is told of signals that another one takes before it: it goes on
// for the rest of its time. If the thread handles one itself the call ends with EINTR, and is made again for the rest.
#include <linux/io_uring.h>
#include <sys/mman.h>

#include "abi.h"

static constexpr int64_t kTime = 100 * kMs, kLate = 400 * kMs;
static sigset_t set;

// `call` waits for a timespec and answers 0, or its errno.
template <class F>
static void goes_on(const char* name, int expected, F call) {
  std::atomic<bool> ended{false};
  const pthread_t waiter = start([&, call] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    const int64_t begin = now_ns();
    int error = EINTR;
    while (error == EINTR && now_ns() < begin + kTime) {
      const timespec rest = to_timespec(begin + kTime - now_ns());
      error = call(rest);
    }
    const int64_t took = now_ns() - begin;
    ended = true;
    if (error != EINTR) CHECK_EQ(error, expected);
    if (took < kTime - kMs || took > kTime + kLate * time_factor())
      FAIL("%s took %lld ms, not 100", name, static_cast<long long>(took / kMs));
  });
  const timespec zero = {0, 0};
  const int64_t end = now_ns() + 2 * kSecond;
  while (!ended && now_ns() < end) {
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    // Mostly quicker than the waiter, which has to come out of the kernel.
    const int signal = sigtimedwait(&set, nullptr, &zero);
    CHECK(signal == SIGUSR1 || errno == EAGAIN);
    nap(kMs);
  }
  join(waiter);
}

int main() {
  set = signal_set({SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  install(SIGUSR1, [](int) {});
  static uint32_t word = 0;
  goes_on("futex", ETIMEDOUT,
          [](const timespec& time) { return futex(&word, FUTEX_WAIT_PRIVATE, 0, &time) ? errno : 0; });
  goes_on("shared futex", ETIMEDOUT,
          [](const timespec& time) { return futex(&word, FUTEX_WAIT, 0, &time) ? errno : 0; });
  io_uring_params parameters = {};
  const int ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters));
  if (ring < 0) return 0;  // not allowed here
  goes_on("io_uring_enter", ETIME, [ring](const timespec& time) {
    io_uring_getevents_arg more = {};
    more.ts = reinterpret_cast<uint64_t>(&time);
    const unsigned flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    return syscall(SYS_io_uring_enter, ring, 0, 1, flags, &more, sizeof more) < 0 ? errno : 0;
  });
}

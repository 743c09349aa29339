// abi: threads=1
// Calls that no signal ends: waking a shared futex, close, stat, access, fcntl. A handler without SA_RESTART runs all the
// time, and none of them says EINTR or is left undone.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "abi.h"

static std::atomic<long> handled{0};
static std::atomic<bool> over{false};

int main() {
  struct sigaction action = {};
  action.sa_handler = [](int) { ++handled; };
  CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  static uint32_t word = 0;
  pthread_t caller = start([] {
    const int64_t end = now_ns() + kSecond;
    while (now_ns() < end) {
      for (int i = 0; i < 20; ++i) {
        CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0), 0);
        const int copy = dup(2);
        CHECK(copy > 2);
        CHECK_EQ(fcntl(copy, F_SETFD, FD_CLOEXEC), 0);
        CHECK_EQ(close(copy), 0);
        struct stat s;
        CHECK_EQ(stat("/", &s), 0);
        CHECK_EQ(access("/", F_OK), 0);
      }
    }
    over = true;
  });
  while (!over) {
    pthread_kill(caller, SIGUSR1);
    burn(5'000);
    sched_yield();
  }
  CHECK_EQ(pthread_join(caller, nullptr), 0);
  CHECK(handled > 0);
}

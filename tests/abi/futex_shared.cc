// abi: threads=3
// Futexes without the private flag, between threads and between processes on shared memory, while others compute.
#include <limits.h>
#include <sys/mman.h>

#include "abi.h"

int main() {
  auto* words = static_cast<std::atomic<uint32_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(words != MAP_FAILED);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    while (words[0] == 0) futex(&words[0], FUTEX_WAIT, 0);
    words[1] = 1;
    futex(&words[1], FUTEX_WAKE, INT_MAX);
    _exit(words[0] == 1 ? 0 : 1);
  }
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&] {
    while (!stop) burn(kMs);
  });
  const pthread_t waiter = start([&] {
    while (words[1] == 0) {
      const long result = futex(&words[1], FUTEX_WAIT, 0);
      CHECK(result == 0 || errno == EAGAIN);
    }
  });
  settle();
  words[0] = 1;
  CHECK(futex(&words[0], FUTEX_WAKE, INT_MAX) <= 1);
  join(waiter);
  wait_exit(child, 0);

  const pthread_t local = start([&] {
    while (words[2] == 0) futex(&words[2], FUTEX_WAIT, 0);
  });
  settle();
  words[2] = 1;
  CHECK_EQ(futex(&words[2], FUTEX_WAKE, 1), 1);
  join(local);
  stop = true;
  join(computing);
  const timespec timeout = to_timespec(20 * kMs);
  CHECK_ERRNO(futex(&words[3], FUTEX_WAIT, 0, &timeout), ETIMEDOUT);
}

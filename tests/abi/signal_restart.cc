// abi: threads=4
// SA_RESTART: read, waitpid and futex waits go on after the handler; without it they end with EINTR; nanosleep,
// poll and sem_timedwait... never restart.
#include <poll.h>

#include "abi.h"

static std::atomic<int> count{0};

static void hit(pthread_t target, int signal) {
  settle();
  const int before = count;
  CHECK_EQ(pthread_kill(target, signal), 0);
  for (int i = 0; count == before && i < 5000; ++i) nap(kMs);
  CHECK_EQ(count, before + 1);
}

int main() {
  install(
      SIGUSR1, [](int) { ++count; }, SA_RESTART);
  install(SIGUSR2, [](int) { ++count; });
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pthread_t reader = start([&ends] {
    char byte = 0;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    CHECK_ERRNO(read(ends[0], &byte, 1), EINTR);
  });
  hit(reader, SIGUSR1);
  hit(reader, SIGUSR1);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  hit(reader, SIGUSR2);
  join(reader);

  const pid_t child = fork();
  if (child == 0) {
    nap(900 * kMs);
    _exit(3);
  }
  const pthread_t waiter = start([child] {
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 3);
  });
  hit(waiter, SIGUSR1);
  join(waiter);

  const pthread_t poller = start([&ends] {
    pollfd item = {ends[0], POLLIN, 0};
    CHECK_ERRNO(poll(&item, 1, 60000), EINTR);
    const timespec minute = {60, 0};
    timespec left;
    CHECK_ERRNO(nanosleep(&minute, &left), EINTR);
  });
  hit(poller, SIGUSR1);
  hit(poller, SIGUSR1);
  join(poller);

  static uint32_t word = 0;
  const pthread_t in_futex = start([] { CHECK_EQ(futex(&word, FUTEX_WAIT_PRIVATE, 0), 0); });
  hit(in_futex, SIGUSR1);
  settle();
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 1), 1);
  join(in_futex);
}

// abi: threads=2
// Signal handlers that make system calls while the only thread of a process is blocked in one: before the first thread is
// made, and in a forked child, whose system calls are redirected already. Restarted, interrupted, and left by siglongjmp.
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "abi.h"

static volatile int handled;
static int handler_pipe[2];
static sigjmp_buf back;

static void calls(int) {
  const int before = errno;
  char byte = 'h';
  CHECK_EQ(write(handler_pipe[1], &byte, 1), 1);
  CHECK_EQ(read(handler_pipe[0], &byte, 1), 1);
  CHECK_EQ(syscall(SYS_getpid), getpid());
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  CHECK_EQ(munmap(page, 4096), 0);
  errno = before;
  handled = handled + 1;
}

static void leaves(int signal) {
  calls(signal);
  siglongjmp(back, 1);
}

static void every(int microseconds) {
  const itimerval timer = {{0, microseconds}, {0, microseconds}};
  CHECK_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
}

static void check() {
  CHECK_EQ(pipe(handler_pipe), 0);
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  install(SIGALRM, calls, SA_RESTART);
  const pid_t writer = fork();
  if (writer == 0) {
    nap(100 * kMs);
    CHECK_EQ(write(ends[1], "abcd", 4), 4);
    _exit(0);
  }
  every(2000);
  char text[8] = {};
  // By a number that no one can know in advance, and by the function.
  CHECK_EQ(syscall(SYS_read, ends[0], text, 2), 2);
  CHECK_EQ(read(ends[0], text + 2, 6), 2);
  CHECK(strcmp(text, "abcd") == 0);
  CHECK(handled > 3);
  wait_exit(writer, 0);

  install(SIGALRM, calls, 0);
  CHECK_ERRNO(syscall(SYS_read, ends[0], text, 2), EINTR);
  CHECK_ERRNO(read(ends[0], text, 2), EINTR);
  install(SIGALRM, leaves, 0);
  for (volatile int rounds = 0; rounds < 20;) {
    const int round = rounds;
    rounds = round + 1;
    if (sigsetjmp(back, 1) != 0) continue;
    if (round % 2) CHECK_EQ(read(ends[0], text, 2), -2);
    CHECK_EQ(syscall(SYS_read, ends[0], text, 2), -2);
  }
  every(0);

  // As often as it can be, with calls that are short: the signals hit the runtime's own instructions.
  install(SIGALRM, calls, SA_RESTART);
  every(50);
  for (const int64_t end = now_ns() + 300 * kMs; now_ns() < end;) {
    CHECK_EQ(syscall(SYS_getppid), getppid());
    void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    CHECK_EQ(munmap(page, 4096), 0);
  }
  every(0);
}

int main() {
  check();
  join(start([] {}));
  const pid_t child = fork();
  if (child == 0) {
    check();
    join(start([] { nap(kMs); }));
    _exit(5);
  }
  wait_exit(child, 5);
  join(start([] { nap(kMs); }));
}

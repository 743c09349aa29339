// abi: threads=0 upcall_stderr=could.not.be.redirected.*running.on.kernel.threads
// A program with a system call that cannot be redirected (a branch enters the instruction itself) stays on kernel threads:
// threads, conditions, semaphores, cancellation, signals and fork work as if the runtime were not there.
#include <semaphore.h>

#include "abi.h"

extern "C" long odd_syscall(long number);
__asm__(
    ".text\n"
    ".globl odd_syscall\n"
    ".type odd_syscall, @function\n"
    "odd_syscall:\n"
    "        .cfi_startproc\n"
    "        movq %rdi, %rax\n"
    "        testq %rax, %rax\n"
    "        js 1f + 1\n"
    "1:      syscall\n"
    "        nop\n"
    "        nop\n"
    "        nop\n"
    "        nop\n"
    "        ret\n"
    "        .cfi_endproc\n"
    "        .size odd_syscall, . - odd_syscall\n");

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static sem_t tokens;
static std::atomic<int> signalled{0};

static void turns(int own) {
  for (int i = 0; i < 200; ++i) {
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    while (turn % 4 != own) CHECK_EQ(pthread_cond_wait(&changed, &mutex), 0);
    ++turn;
    CHECK_EQ(pthread_cond_broadcast(&changed), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQ(sem_post(&tokens), 0);
  }
}

static void check() {
  std::vector<pthread_t> threads;
  turn = 0;
  CHECK_EQ(sem_init(&tokens, 0, 0), 0);
  for (int i = 0; i < 4; ++i) threads.push_back(start([i] { turns(i); }));
  for (int i = 0; i < 800; ++i) CHECK_EQ(sem_wait(&tokens), 0);
  join_all(threads);
  CHECK_EQ(turn, 800);

  const pthread_t waiting = start([] {
    for (;;) pause();
  });
  CHECK_EQ(pthread_kill(waiting, SIGUSR1), 0);
  while (!signalled) nap(kMs);
  CHECK_EQ(pthread_cancel(waiting), 0);
  CHECK(join(waiting) == PTHREAD_CANCELED);
}

int main() {
  install(SIGUSR1, [](int) { ++signalled; });
  CHECK_EQ(odd_syscall(SYS_getpid), getpid());
  check();
  // Those that the first threads make, as well.
  join(start([] {
    CHECK(gettid() != getpid());
    CHECK(gettid() < 1 << 22);  // the kernel's own
    check();
  }));
  const pid_t child = fork();
  if (child == 0) {
    signalled = 0;
    check();
    _exit(7);
  }
  wait_exit(child, 7);
  CHECK_EQ(system("exit 3") >> 8, 3);
  for (int i = 0; i < 500; ++i) join(start([] {}));
}

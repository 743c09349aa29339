// Blocks in the kernel for 10 ms, as often as the argument says, while another thread computes. With a second argument: where
// nothing announces it, in a system call from code that was made at run time.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

static atomic_int done, begun;

static void* compute(void* unused) {
  atomic_store(&begun, 1);
  while (!atomic_load(&done)) {
  }
  return unused;
}

// read(fd, buffer, bytes): xor eax, eax; syscall; ret
static const unsigned char code[] = {0x31, 0xc0, 0x0f, 0x05, 0xc3};

int main(int argc, char** argv) {
  int times = argc > 1 ? atoi(argv[1]) : 0;
  ssize_t (*wait)(int, void*, size_t) = read;
  if (argc > 2) {
    void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 1;
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC)) return 1;
    *(void**)&wait = page;
  }
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  pthread_t thread;
  if (times < 1 || timer < 0 || pthread_create(&thread, NULL, compute, NULL)) return 2;
  while (!atomic_load(&begun)) {
  }
  for (int i = 0; i < times; ++i) {
    const struct itimerspec in_10_ms = {{0, 0}, {0, 10000000}};
    uint64_t expirations;
    if (timerfd_settime(timer, 0, &in_10_ms, NULL) || wait(timer, &expirations, 8) != 8) return 3;
    // Gives the runtime a chance to find that the thread is back: it leaves alone who goes from one such call to the next.
    if (argc > 2) sched_yield();
  }
  atomic_store(&done, 1);
  return pthread_join(thread, NULL);
}

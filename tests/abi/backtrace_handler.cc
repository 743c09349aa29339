// abi: threads=2
// A handler on a thread that waits, or that computes, can unwind through the interrupted frame to the thread's
// own function (garbage collectors, profilers and crash reporters do).
#include <execinfo.h>

#include "abi.h"

static uint32_t word = 0;
static std::atomic<int> state{0};
static std::atomic<bool> stop{false}, found{false};

__attribute__((noinline, used)) static void wait_here() {
  state = 1;
  while (word == 0) futex(&word, FUTEX_WAIT_PRIVATE, 0);
  asm volatile("" ::: "memory");
}

__attribute__((noinline, used)) static void compute_here() {
  state = 1;
  while (!stop) asm volatile("");
}

static void (*expected)() = nullptr;

static void handler(int) {
  void* frames[64];
  const int depth = backtrace(frames, 64);
  for (int i = 0; i < depth; ++i) {
    const auto distance = reinterpret_cast<uintptr_t>(frames[i]) - reinterpret_cast<uintptr_t>(expected);
    if (distance < 256) found = true;
  }
  state = 2;
}

static void probe(void (*function)()) {
  expected = function;
  found = false;
  state = 0;
  const pthread_t thread = start([function] { function(); });
  while (state < 1) nap(kMs);
  settle();
  CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
  for (int i = 0; state < 2 && i < 5000; ++i) nap(kMs);
  CHECK_EQ(state, 2);
  CHECK(found);
  stop = true;
  word = 1;
  futex(&word, FUTEX_WAKE_PRIVATE, 1);
  join(thread);
}

int main() {
  void* frames[4];
  backtrace(frames, 4);  // loads the unwinder outside the handler
  install(SIGUSR1, handler);
  probe(wait_here);
  stop = false;
  probe(compute_here);
}

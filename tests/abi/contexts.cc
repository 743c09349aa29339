// abi: threads=6
// setjmp/longjmp, and coroutines by swapcontext that move between threads' stacks of their own making.
#include <setjmp.h>
#include <ucontext.h>

#include "abi.h"

static thread_local jmp_buf buffer;

__attribute__((noinline)) static int jump(int depth) {
  volatile char pad[512];
  pad[0] = 1;
  if (depth == 0) longjmp(buffer, 7);
  if (depth < 0) return 0;
  return jump(depth - 1) + pad[0];
}

__attribute__((noinline)) static void jumps() {
  static thread_local int left;
  for (left = 100; left > 0; --left) {
    const int came = setjmp(buffer);
    if (came == 0) jump(10);
    CHECK_EQ(came, 7);
  }
}

struct Coroutine {
  ucontext_t inside, outside;
  int steps = 0;
  bool done = false;
};

static void coroutine_body(unsigned low, unsigned high) {
  auto* self = reinterpret_cast<Coroutine*>(uintptr_t{high} << 32 | low);
  for (int i = 0; i < 100; ++i) {
    ++self->steps;
    if (i % 10 == 0) sched_yield();
    if (i % 25 == 0) nap(100'000);
    CHECK_EQ(swapcontext(&self->inside, &self->outside), 0);
  }
  self->done = true;
}

constexpr size_t kStack = 65536;

// By itself: getcontext may return twice, which spoils the variables of its caller.
__attribute__((noinline)) static void prepare(Coroutine* coroutine, char* stack) {
  CHECK_EQ(getcontext(&coroutine->inside), 0);
  coroutine->inside.uc_stack.ss_sp = stack;
  coroutine->inside.uc_stack.ss_size = kStack;
  coroutine->inside.uc_link = &coroutine->outside;
  const auto address = reinterpret_cast<uintptr_t>(coroutine);
  makecontext(&coroutine->inside, reinterpret_cast<void (*)()>(coroutine_body), 2,
              static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
}

static void coroutines() {
  Coroutine items[3];
  std::vector<std::vector<char>> stacks(3, std::vector<char>(kStack));
  for (int i = 0; i < 3; ++i) prepare(&items[i], stacks[static_cast<size_t>(i)].data());
  for (int round = 0; round <= 100; ++round)
    for (Coroutine& item : items) CHECK_EQ(swapcontext(&item.outside, &item.inside), 0);
  for (const Coroutine& item : items) {
    CHECK(item.done);
    CHECK_EQ(item.steps, 100);
  }
}

static void body() {
  jumps();
  coroutines();
}

int main() {
  body();
  std::vector<pthread_t> threads;
  for (int i = 0; i < 6; ++i) threads.push_back(start(body));
  join_all(threads);
}

// abi: threads=4
// Handlers that interrupt handlers, 20 deep, on the thread's stack and on an alternate one, while vector registers hold
// values: every level returns to the one below with its registers, its errno and its mask.
#include <immintrin.h>

#include "abi.h"

static thread_local int depth = 0, deepest = 0;
static thread_local char* alternate = nullptr;
constexpr size_t kAlternate = 512 * 1024;
constexpr int kDepth = 20;

static void descend();

static void handler(int signal) {
  const int before = errno;
  char here;
  if (alternate) CHECK(&here >= alternate && &here < alternate + kAlternate);
  ++depth;
  CHECK_EQ(signal, SIGRTMIN + depth - 1);
  if (depth > deepest) deepest = depth;
  sigset_t now;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
  for (int i = 0; i < kDepth; ++i) CHECK_EQ(sigismember(&now, SIGRTMIN + i), i < depth);
  descend();
  --depth;
  errno = before;
}

// Fifteen vectors of the depth's own numbers stay in registers over the signal.
static void descend() {
  if (depth == kDepth) {
    sched_yield();
    return;
  }
  errno = 1000 + depth;
  uint64_t numbers[4] = {};
  const auto base = static_cast<uint64_t>(depth + 1) * 0x0101010101010101u;
  const uint64_t tgid = static_cast<uint64_t>(getpid()), tid = static_cast<uint64_t>(gettid());
  uint64_t result = 0;
  asm volatile(
      "movq %[base], %%xmm0\n\tmovq %[base], %%xmm7\n\tmovq %[base], %%xmm15\n\t"
      "paddq %%xmm0, %%xmm7\n\tmov $234, %%eax\n\tsyscall\n\t"
      "movq %%xmm0, (%[out])\n\tmovq %%xmm7, 8(%[out])\n\tmovq %%xmm15, 16(%[out])\n\tmov %%rax, 24(%[out])"
      : "=m"(numbers), "+r"(result)
      : [base] "r"(base), [out] "r"(&numbers[0]), "D"(tgid), "S"(tid), "d"(SIGRTMIN + depth)
      : "rax", "rcx", "r11", "xmm0", "xmm7", "xmm15", "memory");
  CHECK_EQ(numbers[3], 0);
  CHECK_EQ(numbers[0], base);
  CHECK_EQ(numbers[1], 2 * base);
  CHECK_EQ(numbers[2], base);
  CHECK_EQ(errno, 1000 + depth);
}

static void body(bool on_alternate) {
  if (on_alternate) {
    stack_t stack = {};
    stack.ss_sp = malloc(kAlternate);
    stack.ss_size = kAlternate;
    CHECK_EQ(sigaltstack(&stack, nullptr), 0);
    alternate = static_cast<char*>(stack.ss_sp);
  }
  for (int i = 0; i < 5; ++i) {
    deepest = 0;
    descend();
    CHECK_EQ(deepest, kDepth);
    CHECK_EQ(depth, 0);
  }
}

int main() {
  for (int i = 0; i < kDepth; ++i) install(SIGRTMIN + i, handler, SA_ONSTACK);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start([i] { body(i % 2 == 0); }));
  join_all(threads);
  body(false);
}

// abi: threads=3
// A handler that comes while a thread computes with vector registers leaves them as they are, whatever it does with its
// own: 16 registers of the widest form up to 256 bits, MXCSR and the x87 control word; on the thread's stack and on an
// alternate one; handlers that block and let others run in between.
#include <fenv.h>

#include "abi.h"

static std::atomic<bool> stop{false};
static std::atomic<int> handled{0};
static bool wide = false;

static void handler(int) {
  ++handled;
  // Other values in all of them, and another rounding.
  if (wide)
    asm volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\tvmovdqa %%ymm0, %%ymm5\n\tvmovdqa %%ymm0, %%ymm15" ::
                     : "xmm0", "xmm5", "xmm15");
  else
    asm volatile("pcmpeqd %%xmm0, %%xmm0\n\tmovdqa %%xmm0, %%xmm5\n\tmovdqa %%xmm0, %%xmm15" ::
                     : "xmm0", "xmm5", "xmm15");
  fesetround(FE_UPWARD);
  if (handled % 3 == 0) nap(kMs / 10);
}

// Registers are loaded, kept over some computing without a call, and compared.
__attribute__((target("avx"))) static void compute_wide(uint64_t seed) {
  alignas(32) uint64_t in[16], out[16];
  for (int i = 0; i < 16; ++i) in[i] = seed * static_cast<uint64_t>(i + 1);
  asm volatile(
      "vmovdqa (%[in]), %%ymm0\n\tvmovdqa 32(%[in]), %%ymm5\n\tvmovdqa 64(%[in]), %%ymm12\n\t"
      "vmovdqa 96(%[in]), %%ymm15\n\tmov $30000, %%ecx\n1:\tdec %%ecx\n\tjnz 1b\n\t"
      "vmovdqa %%ymm0, (%[out])\n\tvmovdqa %%ymm5, 32(%[out])\n\tvmovdqa %%ymm12, 64(%[out])\n\t"
      "vmovdqa %%ymm15, 96(%[out])\n\tvzeroupper" ::[in] "r"(in),
      [out] "r"(out)
      : "ecx", "cc", "memory", "xmm0", "xmm5", "xmm12", "xmm15");
  CHECK_EQ(memcmp(in, out, sizeof in), 0);
}

static void compute_narrow(uint64_t seed) {
  alignas(16) uint64_t in[6], out[6];
  for (int i = 0; i < 6; ++i) in[i] = seed * static_cast<uint64_t>(i + 1);
  asm volatile(
      "movdqa (%[in]), %%xmm0\n\tmovdqa 16(%[in]), %%xmm5\n\tmovdqa 32(%[in]), %%xmm15\n\t"
      "mov $30000, %%ecx\n1:\tdec %%ecx\n\tjnz 1b\n\t"
      "movdqa %%xmm0, (%[out])\n\tmovdqa %%xmm5, 16(%[out])\n\tmovdqa %%xmm15, 32(%[out])" ::[in] "r"(in),
      [out] "r"(out)
      : "ecx", "cc", "memory", "xmm0", "xmm5", "xmm15");
  CHECK_EQ(memcmp(in, out, sizeof in), 0);
}

static void body(bool on_alternate) {
  static constexpr size_t kSize = 64 * 1024;
  stack_t stack = {};
  stack.ss_sp = malloc(kSize);
  stack.ss_size = kSize;
  if (on_alternate) CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  CHECK_EQ(fesetround(FE_DOWNWARD), 0);
  for (uint64_t seed = 0x123456789; !stop; seed = seed * 6364136223846793005u + 1) {
    compute_narrow(seed);
    if (wide) compute_wide(seed);
    CHECK_EQ(fegetround(), FE_DOWNWARD);
  }
  stack.ss_flags = SS_DISABLE;
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  free(stack.ss_sp);
}

int main() {
  wide = __builtin_cpu_supports("avx");
  install(SIGUSR1, handler, SA_ONSTACK);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3; ++i) threads.push_back(start([i] { body(i % 2 == 0); }));
  for (int i = 0; i < 80; ++i) {
    for (pthread_t thread : threads) CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
    nap(kMs / 2);
  }
  stop = true;
  join_all(threads);
  CHECK(handled > 20);
}

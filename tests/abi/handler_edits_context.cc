// abi: threads=4
// A handler that changes the saved registers: the thread goes on where and with what it was told.
#include <ucontext.h>

#include "abi.h"

static void handler(int, siginfo_t*, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  context->uc_mcontext.gregs[REG_RIP] = context->uc_mcontext.gregs[REG_RBX];
  context->uc_mcontext.gregs[REG_RAX] = 4711;
}

static long skip_fault() {
  long result = 0;
  asm volatile(
      "lea 1f(%%rip), %%rbx\n\t"
      "movl $1, 8(%%rax)\n\t"
      "mov $1, %%eax\n"
      "1:"
      : "+a"(result)
      :
      : "rbx", "memory", "cc");
  return result;
}

int main() {
  install_info(SIGSEGV, handler);
  CHECK_EQ(skip_fault(), 4711);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i)
    threads.push_back(start([] {
      for (int round = 0; round < 200; ++round) CHECK_EQ(skip_fault(), 4711);
    }));
  join_all(threads);
}

// abi: threads=2
// rt_sigaction(2), raw: EINVAL for sizes, numbers, SIGKILL and SIGSTOP; EFAULT for addresses, before anything is changed
// for the new action, after it for the old one; what is reported is what was set, without flags that the kernel does not
// know. Upper halves of the registers do not count.
#include "abi.h"

struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

static long action(long signal, const void* fresh, void* old, size_t size = 8) {
  return syscall(SYS_rt_sigaction, signal, fresh, old, size);
}

static void nothing(int) {}

static void body() {
  struct sigaction plain = {};
  plain.sa_handler = nothing;
  plain.sa_flags = SA_RESTART;
  CHECK_EQ(sigaction(SIGUSR1, &plain, nullptr), 0);
  KernelAction current = {}, old = {}, fresh = {};
  CHECK_EQ(action(SIGUSR1, nullptr, &current), 0);
  CHECK(current.handler == nothing);
  fresh = current;
  void* bad = reinterpret_cast<void*>(uintptr_t{8});
  for (size_t size : {0, 4, 7, 9, 16, 128}) CHECK_ERRNO(action(SIGUSR1, &fresh, &old, size), EINVAL);
  for (long signal : {0, -1, 65, 128, 1 << 30}) {
    CHECK_ERRNO(action(signal, nullptr, &old), EINVAL);
    CHECK_ERRNO(action(signal, &fresh, &old), EINVAL);
    CHECK_ERRNO(action(signal, bad, &old), EFAULT);
  }
  for (long signal : {SIGKILL, SIGSTOP}) {
    CHECK_ERRNO(action(signal, &fresh, nullptr), EINVAL);
    CHECK_ERRNO(action(signal, bad, nullptr), EFAULT);
    CHECK_EQ(action(signal, nullptr, &old), 0);
    CHECK(old.handler == SIG_DFL);
  }
  CHECK_ERRNO(action(SIGUSR1, bad, &old), EFAULT);
  fresh.handler = SIG_IGN;
  CHECK_ERRNO(action(SIGUSR1, &fresh, bad), EFAULT);
  CHECK_EQ(action(SIGUSR1, nullptr, &old), 0);
  CHECK(old.handler == SIG_IGN);
  CHECK_ERRNO(action(SIGUSR1, nullptr, bad), EFAULT);
  // The mask never has SIGKILL and SIGSTOP; unknown flags (0x400, and above 32 bits) go.
  fresh.handler = nothing;
  fresh.mask = ~0ul;
  fresh.flags = current.flags | SA_NODEFER | 0x400 | (1ul << 40);
  CHECK_EQ(action(SIGUSR1, &fresh, nullptr), 0);
  CHECK_EQ(action(SIGUSR1, nullptr, &old), 0);
  CHECK_EQ(old.mask, ~(1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)));
  CHECK_EQ(old.flags, current.flags | SA_NODEFER);
  CHECK(old.restorer == fresh.restorer);
  CHECK_EQ(action(static_cast<long>(0xabcd00000000ul | SIGUSR2), nullptr, &old), 0);
  CHECK(old.handler == SIG_DFL);
}

int main() {
  join(start(body));
  body();
  // By a call whose number is a constant at the site, too.
  join(start([] {
    long result;
    asm volatile("mov $8, %%r10\n\tmov $13, %%eax\n\tsyscall"
                 : "=a"(result)
                 : "D"(65l), "S"(nullptr), "d"(nullptr)
                 : "rcx", "r10", "r11", "memory");
    CHECK_EQ(result, -EINVAL);
  }));
}

// The one place where the runtime's C++ enters the kernel without the interruptible stub of arch/x86_64/entry.S.
// (The BPF loader, generated C, has its own: kernel/bpf/bpf/skel_internal.h.)
#pragma once

namespace upcall::kernel {

inline long raw_syscall(long nr, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) noexcept {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

}  // namespace upcall::kernel

// abi: threads=4
// Synchronous signals reach the thread that caused them, with their codes; siglongjmp out of the handler works.
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>

#include "abi.h"

static thread_local sigjmp_buf escape;
static thread_local siginfo_t seen;

static void handler(int, siginfo_t* info, void*) {
  seen = *info;
  siglongjmp(escape, 1);
}

template <class F>
static void expect(int signal, int code, F cause) {
  if (sigsetjmp(escape, 1) == 0) {
    cause();
    FAIL("signal %d did not come", signal);
  }
  CHECK_EQ(seen.si_signo, signal);
  CHECK_EQ(seen.si_code, code);
}

static void body() {
  static volatile int zero = 0;
  for (int i = 0; i < 20; ++i) {
    expect(SIGFPE, FPE_INTDIV, [] {
      volatile int result = 7 / zero;
      (void)result;
    });
    expect(SIGILL, ILL_ILLOPN, [] { asm volatile("ud2"); });
    expect(SIGTRAP, SI_KERNEL, [] { asm volatile("int3"); });
    expect(SIGSEGV, SEGV_MAPERR,
           [] { *reinterpret_cast<volatile char*>(uintptr_t{4096} + static_cast<uintptr_t>(zero)) = 1; });
    char path[] = "/tmp/abi_bus_XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0);
    unlink(path);
    auto* mapped = static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
    CHECK(mapped != MAP_FAILED);
    expect(SIGBUS, BUS_ADRERR, [mapped] { (void)mapped[0]; });
    munmap(const_cast<char*>(mapped), 4096);
    close(file);
    sched_yield();
  }
}

int main() {
  for (int signal : {SIGFPE, SIGILL, SIGTRAP, SIGSEGV, SIGBUS}) install_info(signal, handler);
  body();
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start(body));
  join_all(threads);
}

// abi: threads=2
// A handler whose stack has no room: the kernel gives the thread SIGSEGV instead (code SI_KERNEL), which a handler on an
// alternate stack gets; one that nests on the alternate stack until that is full dies by SIGSEGV without having written
// below it; without a handler, or where SIGSEGV's own has no room, the process dies by it.
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "abi.h"

static char* map(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  return static_cast<char*>(p);
}

static void use_stack(void* at, size_t size) {
  stack_t stack = {};
  stack.ss_sp = at;
  stack.ss_size = size;
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
}

static void give_core_up() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// raise() with the stack pointer in memory that cannot be written.
static long signal_without_stack(int signal) {
  long result;
  static char* bad = map(65536, PROT_NONE);
  asm volatile("mov %%rsp, %%rbx\n\tmov %[bad], %%rsp\n\tsyscall\n\tmov %%rbx, %%rsp"
               : "=a"(result)
               : "0"(static_cast<long>(SYS_tgkill)), "D"(static_cast<long>(getpid())),
                 "S"(static_cast<long>(gettid())), "d"(static_cast<long>(signal)), [bad] "r"(bad + 32768)
               : "rbx", "rcx", "r11", "memory");
  return result;
}

static sigjmp_buf escape;
static siginfo_t seen;

template <class F>
static int child_status(F body) {
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    give_core_up();
    join(start(body));
    _exit(3);
  }
  return wait_status(pid);
}

static void expect_killed(int status) {
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) FAIL("status 0x%x", status);
}

static int nested = 0;
static char* guard;

int main() {
  join(start([] {}));
  join(start([] {
    use_stack(map(65536, PROT_READ | PROT_WRITE), 65536);
    install(SIGUSR1, [](int) { FAIL("no room for it"); });
    install_info(
        SIGSEGV,
        [](int, siginfo_t* info, void*) {
          seen = *info;
          siglongjmp(escape, 1);
        },
        SA_ONSTACK);
    if (sigsetjmp(escape, 1) == 0) {
      signal_without_stack(SIGUSR1);
      FAIL("the signal is lost");
    }
    CHECK_EQ(seen.si_signo, SIGSEGV);
    CHECK_EQ(seen.si_code, SI_KERNEL);
    sigset_t now, pending;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    CHECK_EQ(sigismember(&now, SIGUSR1), 0);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGUSR1), 0);
  }));
  // Blocked, at its default, without an alternate stack.
  expect_killed(child_status([] {
    const sigset_t set = signal_set({SIGSEGV});
    use_stack(map(65536, PROT_READ | PROT_WRITE), 65536);
    install(
        SIGSEGV, [](int) { _exit(4); }, SA_ONSTACK);
    install(SIGUSR1, [](int) { _exit(5); });
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal_without_stack(SIGUSR1);
  }));
  expect_killed(child_status([] {
    install(SIGSEGV, SIG_DFL);
    install(SIGUSR1, [](int) { _exit(5); });
    signal_without_stack(SIGUSR1);
  }));
  expect_killed(child_status([] {
    install(SIGSEGV, [](int) { _exit(4); });
    install(SIGUSR1, [](int) { _exit(5); });
    signal_without_stack(SIGUSR1);
  }));
  // Every level takes a frame of the alternate stack; what lies below it is not the handler's.
  expect_killed(child_status([] {
    guard = map(128 * 1024, PROT_READ | PROT_WRITE);
    memset(guard, 0x5a, 64 * 1024);
    use_stack(guard + 64 * 1024, 64 * 1024);
    install(SIGSEGV, SIG_DFL);
    install(
        SIGUSR1,
        [](int) {
          for (int i = 0; i < 64 * 1024; i += 64)
            if (guard[i] != 0x5a) _exit(6);
          if (++nested > 1000) _exit(7);
          raise(SIGUSR1);
          _exit(8);
        },
        SA_ONSTACK | SA_NODEFER);
    raise(SIGUSR1);
  }));
}

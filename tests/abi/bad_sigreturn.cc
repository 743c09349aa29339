// abi: threads=2
// sigreturn(2): "If the frame is damaged, the thread gets SIGSEGV" (as the kernel does it): a program counter that is no
// address, a frame that is gone, floating-point state at an address that cannot be read; a null pointer there stands for
// the initial state. A handler of SIGSEGV on another stack may go on.
#include <fenv.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "abi.h"

static thread_local sigjmp_buf escape;
static thread_local int seen = 0, wanted = 0;
static thread_local siginfo_t info_seen;

static void on_segv(int, siginfo_t* info, void*) {
  ++seen;
  info_seen = *info;
  siglongjmp(escape, 1);
}

static void wreck(int, siginfo_t*, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  if (wanted == 0) context->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(0x8000000000001000u);
  if (wanted == 1) context->uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(uintptr_t{4096});
  if (wanted == 2) context->uc_mcontext.gregs[REG_RIP] = 16;
  if (wanted == 3) context->uc_mcontext.fpregs = nullptr;
}

static void body() {
  stack_t stack = {};
  stack.ss_sp = malloc(65536);
  stack.ss_size = 65536;
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  for (int round = 0; round < 3; ++round) {
    for (int how : {0, 1, 2}) {
      wanted = how;
      seen = 0;
      if (sigsetjmp(escape, 1) == 0) {
        raise(SIGUSR1);
        FAIL("went on after damage %d", how);
      }
      CHECK_EQ(seen, 1);
      CHECK_EQ(info_seen.si_signo, SIGSEGV);
      CHECK_EQ(info_seen.si_code, how == 2 ? int{SEGV_MAPERR} : int{SI_KERNEL});
      sched_yield();
    }
    wanted = 3;
    CHECK_EQ(fesetround(FE_DOWNWARD), 0);
    raise(SIGUSR1);
    CHECK_EQ(fegetround(), FE_TONEAREST);
  }
  stack.ss_flags = SS_DISABLE;
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  free(stack.ss_sp);
}

int main() {
  install_info(SIGUSR1, wreck);
  install_info(SIGSEGV, on_segv, SA_ONSTACK);
  join(start(body));
  join(start(body));
  body();
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    join(start([] {
      install(SIGSEGV, SIG_DFL);
      wanted = 1;
      raise(SIGUSR1);
    }));
    _exit(3);
  }
  const int status = wait_status(pid);
  CHECK(WIFSIGNALED(status));
  CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

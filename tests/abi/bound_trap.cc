// abi: threads=2 bound=1 counters=bound_threads:1-1
// A filter that traps: the handler runs on the thread, knows the call, and answers it; calls that may block, calls that do
// not, and those made elsewhere than in the C library.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "abi.h"

namespace {

std::atomic<int> trapped{0}, last{0};
pthread_t thread_of_last;

void on_trap(int, siginfo_t* info, void* context) {
  CHECK_EQ(info->si_code, 1);  // SYS_SECCOMP
  ++trapped;
  last = info->si_syscall;
  thread_of_last = pthread_self();
  auto* uc = static_cast<ucontext_t*>(context);
  const auto at = static_cast<uintptr_t>(uc->uc_mcontext.gregs[REG_RIP]);
  CHECK_EQ(reinterpret_cast<uintptr_t>(info->si_call_addr), at);
  CHECK(*reinterpret_cast<const unsigned char*>(at) != 0);
  uc->uc_mcontext.gregs[REG_RAX] = 4242;
}

long inline_getppid() {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(long{SYS_getppid}) : "rcx", "r11", "memory");
  return result;
}

}  // namespace

int main() {
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  CHECK_EQ(sigaction(SIGSYS, &action, nullptr), 0);
  const pthread_t other = start([] {
    for (int i = 0; i < 50; ++i) {
      CHECK(syscall(SYS_getppid) != 4242);
      nap(kMs);
    }
  });
  join(start([] {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter = {5, program};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
    for (int i = 0; i < 20; ++i) {
      CHECK_EQ(syscall(SYS_getppid), 4242);
      CHECK_EQ(last, SYS_getppid);
      CHECK_EQ(inline_getppid(), 4242);
      CHECK_EQ(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY), 4242);
      CHECK_EQ(last, SYS_openat);
      CHECK(pthread_equal(thread_of_last, pthread_self()));
      CHECK_EQ(open("/", O_RDONLY), 4242);
    }
    CHECK_EQ(trapped.load(), 80);
  }));
  join(other);
}

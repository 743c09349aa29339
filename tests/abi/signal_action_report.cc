// abi: threads=2
// sigaction(2): the action that was is reported exactly: handler, mask without SIGKILL and SIGSTOP, flags; unknown flags are
// cleared (Linux 5.11, "dynamically probing for flag bit support"); SA_RESETHAND leaves the default action and the other fields;
// SIGKILL and SIGSTOP can be asked for, not set. The action is the process's: every thread sees it.
#include <sys/utsname.h>

#include "abi.h"

struct KernelAction {
  uint64_t handler, flags, restorer, mask;
};

static long raw_action(int signal, const KernelAction* fresh, KernelAction* old) {
  return syscall(SYS_rt_sigaction, signal, fresh, old, 8);
}

static void handler(int) {}

static void reports(int signal) {
  struct sigaction action = {}, old = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER | SA_ONSTACK | SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO;
  sigfillset(&action.sa_mask);
  CHECK_EQ(sigaction(signal, &action, nullptr), 0);
  join(start([&] { CHECK_EQ(sigaction(signal, nullptr, &old), 0); }));
  CHECK(old.sa_handler == handler);
  CHECK_EQ(old.sa_flags & ~0x04000000, action.sa_flags);
  for (int s = 1; s < 65; ++s) {
    if (s == 32 || s == 33) continue;  // the C library's
    CHECK_EQ(sigismember(&old.sa_mask, s), s != SIGKILL && s != SIGSTOP);
  }

  KernelAction raw = {}, before = {};
  CHECK_EQ(raw_action(signal, nullptr, &before), 0);
  CHECK_EQ(before.handler, reinterpret_cast<uint64_t>(handler));
  CHECK_EQ(before.mask & (1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)), 0);
  CHECK(before.restorer != 0 && (before.flags & 0x04000000));
  raw = before;
  raw.flags |= 0x400 /* SA_UNSUPPORTED */ | 0x20 | 0x800 /* SA_EXPOSE_TAGBITS */;
  CHECK_EQ(raw_action(signal, &raw, nullptr), 0);
  CHECK_EQ(raw_action(signal, nullptr, &before), 0);
  utsname system;
  CHECK_EQ(uname(&system), 0);
  int major = 0, minor = 0;
  CHECK_EQ(sscanf(system.release, "%d.%d", &major, &minor), 2);
  if (major > 5 || (major == 5 && minor >= 11)) CHECK_EQ(before.flags, raw.flags & ~uint64_t{0x420});

  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGHUP);
  CHECK_EQ(sigaction(signal, &action, nullptr), 0);
  CHECK_EQ(raise(signal), 0);
  CHECK_EQ(sigaction(signal, nullptr, &old), 0);
  CHECK(old.sa_handler == SIG_DFL);
  CHECK_EQ(static_cast<unsigned>(old.sa_flags) & SA_RESETHAND, SA_RESETHAND);
  CHECK(sigismember(&old.sa_mask, SIGHUP) == 1 && sigismember(&old.sa_mask, SIGINT) == 0);
  install(signal, SIG_IGN);
  CHECK_EQ(sigaction(signal, nullptr, &old), 0);
  CHECK(old.sa_handler == SIG_IGN);
}

int main() {
  join(start([] {}));
  for (int signal : {SIGUSR1, SIGCHLD, SIGSEGV, SIGRTMIN + 26, SIGRTMAX}) reports(signal);
  struct sigaction action = {}, old = {};
  for (int signal : {SIGKILL, SIGSTOP}) {
    CHECK_ERRNO(sigaction(signal, &action, nullptr), EINVAL);
    CHECK_EQ(sigaction(signal, nullptr, &old), 0);
    CHECK(old.sa_handler == SIG_DFL);
  }
  CHECK_ERRNO(sigaction(0, nullptr, &old), EINVAL);
  CHECK_ERRNO(sigaction(65, nullptr, &old), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigaction, SIGUSR1, nullptr, nullptr, 4), EINVAL);
}

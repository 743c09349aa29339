// abi: threads=1
// kill(2), tgkill(2), rt_sigqueueinfo(2): EINVAL, ESRCH and EPERM; signal 0 only looks; any thread's id names the process for
// kill; codes of the kernel or of kill may be given only by a thread to itself.
#include "abi.h"

static std::atomic<int> count{0};

static long queue(pid_t pid, int signal, int code) {
  siginfo_t info = {};
  info.si_code = code;
  return syscall(SYS_rt_sigqueueinfo, pid, signal, &info);
}

static long queue_thread(pid_t tid, int signal, int code) {
  siginfo_t info = {};
  info.si_code = code;
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, signal, &info);
}

static void ask(pid_t other) {
  const pid_t pid = getpid();
  for (pid_t tid : {gettid(), other}) {
    CHECK_EQ(tgkill(pid, tid, 0), 0);
    CHECK_EQ(kill(tid, 0), 0);
    CHECK_ERRNO(tgkill(pid, tid, 65), EINVAL);
    CHECK_ERRNO(tgkill(pid, tid, -1), EINVAL);
    CHECK_ERRNO(tgkill(1, tid, SIGUSR1), ESRCH);
    CHECK_ERRNO(queue_thread(tid, 65, SI_QUEUE), EINVAL);
    CHECK_EQ(queue_thread(tid, 0, SI_QUEUE), 0);
  }
  CHECK_EQ(kill(pid, 0), 0);
  CHECK_ERRNO(kill(pid, 65), EINVAL);
  CHECK_ERRNO(kill(pid, -1), EINVAL);
  CHECK_ERRNO(tgkill(pid, 0, SIGUSR1), EINVAL);
  CHECK_ERRNO(tgkill(pid, -5, SIGUSR1), EINVAL);
  CHECK_ERRNO(tgkill(0, gettid(), SIGUSR1), EINVAL);
  CHECK_ERRNO(tgkill(pid, 0x3ffffffe, SIGUSR1), ESRCH);
  CHECK_ERRNO(kill(0x3ffffffe, SIGUSR1), ESRCH);
  CHECK_ERRNO(queue(0x3ffffffe, SIGUSR1, SI_QUEUE), ESRCH);
  CHECK_ERRNO(sigqueue(pid, 65, sigval{}), EINVAL);
  CHECK_EQ(sigqueue(pid, 0, sigval{}), 0);
  CHECK_ERRNO(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, nullptr), EFAULT);
  // Forged codes.
  CHECK_ERRNO(queue_thread(other, SIGUSR1, SI_USER), EPERM);
  CHECK_ERRNO(queue_thread(other, SIGUSR1, SI_TKILL), EPERM);
  CHECK_ERRNO(queue(getppid(), SIGUSR1, SI_KERNEL), EPERM);
  const int before = count;
  CHECK_EQ(queue_thread(gettid(), SIGUSR1, SI_USER), 0);
  CHECK_EQ(count, before + 1);
  if (gettid() == pid) {
    CHECK_EQ(queue(pid, SIGUSR1, SI_USER), 0);
    CHECK_EQ(count, before + 2);
  } else {
    CHECK_ERRNO(queue(pid, SIGUSR1, SI_USER), EPERM);
  }
}

int main() {
  install_info(SIGUSR1, [](int, siginfo_t* info, void*) {
    CHECK_EQ(info->si_code, SI_USER);
    ++count;
  });
  std::atomic<pid_t> tid{0};
  std::atomic<int> stage{0};
  const pthread_t thread = start([&] {
    tid = gettid();
    while (stage < 1) nap(kMs);
    ask(getpid());
    // For the process, although it is this thread's id.
    const sigset_t one = signal_set({SIGUSR1});
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
    const int before = count;
    CHECK_EQ(kill(gettid(), SIGUSR1), 0);
    for (int i = 0; count == before && i < 10000; ++i) nap(kMs);
    CHECK_EQ(count, before + 1);
    stage = 2;
  });
  while (tid == 0) nap(kMs);
  ask(tid);
  stage = 1;
  while (stage < 2) nap(kMs);
  join(thread);
  CHECK_EQ(pthread_kill(pthread_self(), 0), 0);
  CHECK_EQ(pthread_kill(pthread_self(), 65), EINVAL);
  CHECK_ERRNO(tgkill(getpid(), tid, 0), ESRCH);
  CHECK_ERRNO(kill(tid, 0), ESRCH);
}

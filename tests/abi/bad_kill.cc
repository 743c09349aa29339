// abi: threads=2
// kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, raw: EINVAL, ESRCH, EFAULT and EPERM as kill(2) and
// rt_sigqueueinfo(2) have them: nobody but the thread itself may say that a signal comes from the kernel or from kill.
#include "abi.h"

static std::atomic<int> other_tid{0};

static long queue_info(long tgid, long tid, long signal, const void* info) {
  return tid ? syscall(SYS_rt_tgsigqueueinfo, tgid, tid, signal, info)
             : syscall(SYS_rt_sigqueueinfo, tgid, signal, info);
}

static void body(bool main) {
  const pid_t pid = getpid(), tid = gettid();
  void* bad = reinterpret_cast<void*>(uintptr_t{8});
  for (int signal : {-1, 65, 1000, 1 << 30}) {
    CHECK_ERRNO(kill(pid, signal), EINVAL);
    CHECK_ERRNO(syscall(SYS_tkill, tid, signal), EINVAL);
    CHECK_ERRNO(syscall(SYS_tkill, other_tid.load(), signal), EINVAL);
    CHECK_ERRNO(syscall(SYS_tgkill, pid, tid, signal), EINVAL);
  }
  CHECK_EQ(kill(pid, 0), 0);
  CHECK_EQ(syscall(SYS_tkill, other_tid.load(), 0), 0);
  CHECK_EQ(syscall(SYS_tgkill, pid, other_tid.load(), 0), 0);
  CHECK_ERRNO(kill(0x7ffffff0, 0), ESRCH);
  CHECK_ERRNO(kill(-0x7ffffff0, SIGURG), ESRCH);
  for (int id : {0, -1, -5}) {
    CHECK_ERRNO(syscall(SYS_tkill, id, SIGURG), EINVAL);
    CHECK_ERRNO(syscall(SYS_tgkill, pid, id, SIGURG), EINVAL);
    CHECK_ERRNO(syscall(SYS_tgkill, id, tid, SIGURG), EINVAL);
  }
  CHECK_ERRNO(syscall(SYS_tkill, 0x7ffffff0, SIGURG), ESRCH);
  CHECK_ERRNO(syscall(SYS_tgkill, pid, 0x7ffffff0, SIGURG), ESRCH);
  CHECK_ERRNO(syscall(SYS_tgkill, 1, tid, SIGURG), ESRCH);
  CHECK_ERRNO(syscall(SYS_tgkill, pid, 0x7ffffff0, 65), ESRCH);

  siginfo_t info = {};
  info.si_code = SI_QUEUE;
  info.si_pid = pid;
  CHECK_ERRNO(queue_info(pid, 0, SIGURG, bad), EFAULT);
  CHECK_ERRNO(queue_info(pid, tid, SIGURG, bad), EFAULT);
  CHECK_ERRNO(queue_info(-1, -1, SIGURG, bad), EFAULT);
  CHECK_ERRNO(queue_info(pid, tid, 65, &info), EINVAL);
  CHECK_ERRNO(queue_info(pid, 0, 65, &info), EINVAL);
  CHECK_ERRNO(queue_info(-1, tid, SIGURG, &info), EINVAL);
  CHECK_ERRNO(queue_info(pid, -1, SIGURG, &info), EINVAL);
  CHECK_ERRNO(queue_info(pid, 0x7ffffff0, SIGURG, &info), ESRCH);
  CHECK_ERRNO(queue_info(0x7ffffff0, 0, SIGURG, &info), ESRCH);
  CHECK_EQ(queue_info(pid, other_tid, 0, &info), 0);
  CHECK_EQ(queue_info(pid, other_tid, SIGURG, &info), 0);
  for (int code : {int{SI_USER}, int{SI_KERNEL}, int{SI_TKILL}, 1}) {
    info.si_code = code;
    CHECK_ERRNO(queue_info(pid, other_tid, SIGURG, &info), EPERM);
    CHECK_ERRNO(queue_info(getppid(), 0, SIGURG, &info), EPERM);
    CHECK_EQ(queue_info(pid, tid, SIGURG, &info), 0);
    // A process's id is its first thread's.
    if (main) CHECK_EQ(queue_info(pid, 0, SIGURG, &info), 0);
  }
}

int main() {
  std::atomic<bool> stop{false};
  const pthread_t other = start([&] {
    other_tid = gettid();
    while (!stop) nap(kMs);
  });
  while (other_tid == 0) nap(kMs / 4);
  join(start([] { body(false); }));
  body(true);
  stop = true;
  join(other);
}

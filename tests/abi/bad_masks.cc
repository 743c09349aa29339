// abi: threads=2
// rt_sigprocmask, rt_sigpending, rt_sigsuspend, rt_sigtimedwait, raw: EINVAL for the size of the set, for `how` and times;
// EFAULT for addresses; a refused call changes nothing. ppoll, pselect6 and epoll_pwait: the same for their masks, in the
// kernel's order (times before masks), and the mask in force afterwards is the old one.
#include <sys/epoll.h>

#include "abi.h"

static uint64_t mask_now() {
  uint64_t now;
  CHECK_EQ(syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &now, 8), 0);
  return now;
}

static void body() {
  void* bad = reinterpret_cast<void*>(uintptr_t{8});
  const uint64_t hup = 1ul << (SIGHUP - 1), all = ~0ul;
  uint64_t set = hup, old = 0;
  CHECK_EQ(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, nullptr, 8), 0);
  for (size_t size : {0, 1, 4, 9, 16, 128}) {
    CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &old, size), EINVAL);
    CHECK_ERRNO(syscall(SYS_rt_sigsuspend, &all, size), EINVAL);
    CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &all, nullptr, nullptr, size), EINVAL);
  }
  CHECK_ERRNO(syscall(SYS_rt_sigpending, &old, 9), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigpending, &old, all), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigpending, bad, 8), EFAULT);
  CHECK_EQ(syscall(SYS_rt_sigpending, &old, 4), 0);
  CHECK_EQ(syscall(SYS_rt_sigpending, bad, 0), 0);
  CHECK_ERRNO(syscall(SYS_rt_sigprocmask, 3, &all, nullptr, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigprocmask, -1, &all, nullptr, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigprocmask, 3, bad, nullptr, 8), EFAULT);
  CHECK_EQ(syscall(SYS_rt_sigprocmask, 77, nullptr, &old, 8), 0);  // nothing is to be set
  CHECK_EQ(old, hup);
  CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_SETMASK, bad, &old, 8), EFAULT);
  CHECK_EQ(mask_now(), hup);
  // The new mask counts although the old one cannot be written.
  const uint64_t two = hup | 1ul << (SIGINT - 1);
  CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &two, bad, 8), EFAULT);
  CHECK_EQ(mask_now(), two);
  CHECK_EQ(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8), 0);
  CHECK_EQ(mask_now(), all & ~(1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)));
  CHECK_EQ(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &hup, nullptr, 8), 0);

  CHECK_ERRNO(syscall(SYS_rt_sigsuspend, bad, 8), EFAULT);
  const timespec none = {0, 0}, negative = {-1, 0}, large = {0, 1'000'000'000};
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, bad, nullptr, &none, 8), EFAULT);
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &hup, nullptr, bad, 8), EFAULT);
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &hup, nullptr, &negative, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &hup, nullptr, &large, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &hup, nullptr, &none, 8), EAGAIN);
  // The time is looked at first: the signal stays pending. Without room for what is known of it, it is taken.
  CHECK_EQ(raise(SIGHUP), 0);
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &hup, nullptr, &large, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &hup, bad, &none, 8), EFAULT);
  CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, &hup, nullptr, &none, 8), EAGAIN);

  const int queue = epoll_create1(0);
  epoll_event event;
  timespec short_time = {0, 1000};
  for (size_t size : {0, 4, 16, 128}) {
    CHECK_ERRNO(syscall(SYS_ppoll, nullptr, 0, &short_time, &all, size), EINVAL);
    CHECK_ERRNO(syscall(SYS_epoll_pwait, queue, &event, 1, 0, &all, size), EINVAL);
    const struct {
      const void* set;
      size_t bytes;
    } pair = {&all, size}, without = {nullptr, size};
    CHECK_ERRNO(syscall(SYS_pselect6, 0, nullptr, nullptr, nullptr, &short_time, &pair), EINVAL);
    CHECK_EQ(syscall(SYS_pselect6, 0, nullptr, nullptr, nullptr, &short_time, &without), 0);
    CHECK_EQ(syscall(SYS_ppoll, nullptr, 0, &short_time, nullptr, size), 0);
    CHECK_EQ(syscall(SYS_epoll_pwait, queue, &event, 1, 0, nullptr, size), 0);
  }
  const struct {
    const void* set;
    size_t bytes;
  } bad_pair = {bad, 8}, good_pair = {&all, 8};
  CHECK_ERRNO(syscall(SYS_ppoll, nullptr, 0, &short_time, bad, 8), EFAULT);
  CHECK_ERRNO(syscall(SYS_ppoll, nullptr, 0, bad, &all, 4), EFAULT);
  CHECK_ERRNO(syscall(SYS_ppoll, nullptr, 0, &negative, bad, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_ppoll, nullptr, 0, &large, &all, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_ppoll, bad, 1, &short_time, &all, 8), EFAULT);
  CHECK_ERRNO(syscall(SYS_pselect6, 0, nullptr, nullptr, nullptr, &short_time, bad), EFAULT);
  CHECK_ERRNO(syscall(SYS_pselect6, 0, nullptr, nullptr, nullptr, &short_time, &bad_pair), EFAULT);
  CHECK_ERRNO(syscall(SYS_pselect6, 0, nullptr, nullptr, nullptr, &negative, &bad_pair), EINVAL);
  CHECK_ERRNO(syscall(SYS_pselect6, -1, nullptr, nullptr, nullptr, &short_time, &good_pair), EINVAL);
  CHECK_ERRNO(syscall(SYS_epoll_pwait, queue, &event, 1, 0, bad, 8), EFAULT);
  CHECK_ERRNO(syscall(SYS_epoll_pwait, queue, &event, 0, 0, &all, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_epoll_pwait, 9999, &event, 1, 0, &all, 8), EBADF);
  close(queue);
  CHECK_EQ(mask_now(), hup);
}

int main() {
  join(start(body));
  join(start(body));
  body();
}

// Job control. Activations block SIGTTIN and SIGTTOU, and the kernel takes the calling kernel thread's word for it: a
// process in the background would get EIO instead of being stopped, or could change the terminal. So the kernel is asked
// once more, by a call that does nothing else, with the signal let through.
#include <initializer_list>

#include "linux/descriptors.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using namespace signals;

namespace {

constexpr int sigttin = 21, sigttou = 22;
constexpr long e_io = 5;
constexpr uint64_t get_group = 0x540f, flow = 0x540a, get_pty_number = 0x80045430;

// Could the signal be meant for this thread? The terminal `fd` is ours, and another group has it.
bool in_background(const Thread* t, int signal, uint64_t fd) noexcept {
  if ((t->signals.mask.load(relaxed) & bit(signal)) || action_of(signal).handler == 1) return false;
  // The other end of a terminal answers for it, but is nobody's controlling terminal.
  int32_t group, number;
  if (!kernel::is_error(kernel::sys(__NR_ioctl, fd, get_pty_number, &number))) return false;
  return !kernel::is_error(kernel::sys(__NR_ioctl, fd, get_group, &group)) &&
         group != kernel::sys(__NR_getpgid, 0);
}

// Threads that ask about SIGTTIN and SIGTTOU now. As long as there are any, the kernel's action of a signal with a handler is
// ours: with the default one that another thread has put back the next to ask would be stopped.
struct Asked {
  uint32_t threads = 0;
  bool caught = false;
};
Asked g_asked[2];
SpinLock g_asked_lock{Rank::terminal};

void begin_asking(int signal) noexcept {
  LockGuard guard(g_asked_lock);
  Asked& a = g_asked[signal - sigttin];
  ++a.threads;
  if (a.caught || action_of(signal).handler <= 1) return;
  a.caught = true;
  interrupt_in_kernel(signal);
}

void put_back(int signal) noexcept {
  Asked& a = g_asked[signal - sigttin];
  if (!a.caught) return;
  a.caught = false;
  Action now;
  do {  // a thread that changes it tells the kernel as well, before us or after
    now = action_of(signal);
    mirror_in_kernel(signal, now);
  } while (action_of(signal).handler != now.handler);
}

void end_asking(int signal) noexcept {
  LockGuard guard(g_asked_lock);
  if (--g_asked[signal - sigttin].threads == 0) put_back(signal);
}

// Default action: the process stops here, and goes on here. 0: in the foreground now; -EINTR: there is a handler, and
// upcall_on_signal has posted the signal; -EIO: in an orphaned group, which is not stopped.
long ask(int signal, long nr, uint64_t fd, uint64_t second, uint64_t third) noexcept {
  uint64_t set = bit(signal);
  begin_asking(signal);
  kernel::sys(__NR_rt_sigprocmask, 1, &set, nullptr, mask_bytes);
  long r = kernel::sys(nr, fd, second, third);
  kernel::sys(__NR_rt_sigprocmask, 0, &set, nullptr, mask_bytes);
  end_asking(signal);
  return r == -e_io || r == -e_intr ? r : 0;
}

}  // namespace

void signals::lock_asking_for_fork() noexcept { g_asked_lock.lock(); }

void signals::unlock_asking_after_fork(bool in_child) noexcept {
  for (int signal : {sigttin, sigttou}) {
    if (!in_child) continue;
    g_asked[signal - sigttin].threads = 0;
    put_back(signal);
  }
  g_asked_lock.unlock();
}

// A read has answered -EIO. True: it is to be made again.
bool read_in_background(Thread* t) noexcept {
  if ((t->nr != __NR_read && t->nr != __NR_readv) || !in_background(t, sigttin, t->rdi)) return false;
  char byte;
  return ask(sigttin, __NR_read, t->rdi, reinterpret_cast<uint64_t>(&byte), 0) != -e_io;
}

Thread* sys_ioctl(Thread* t) noexcept {
  // What tty_check_change() guards: TCSETS to TCSETSF, TCSETA to TCFLSH, TIOCSPGRP, TCSBRKP, TCSETS2 to TCSETSF2.
  auto number = static_cast<uint32_t>(t->rsi);
  constexpr uint32_t fionbio = 0x5421;
  bool changes = (number >= 0x5402 && number <= 0x5404) || (number >= 0x5406 && number <= 0x540b) ||
                 number == 0x5410 || number == 0x5425 || (number >= 0x402c542b && number <= 0x402c542d);
  if (changes && in_background(t, sigttou, t->rdi)) {
    constexpr uint64_t nothing = 99;  // no flow control that there is: EINVAL, after the check
    long r = ask(sigttou, __NR_ioctl, t->rdi, flow, nothing);
    if (r == -e_io) return answer(t, r);
    if (r == -e_intr) {
      t->interrupted_call = sched::Interrupted::restarts;
      t->call_deadline = 0;
      t->attention.store(1, relaxed);
      return answer(t, r);
    }
  }
  if (number != fionbio) return activation::blocking_call(t);
  pass(t);  // as F_SETFL
  modes_changed();
  return t;
}

}  // namespace upcall::linux_abi

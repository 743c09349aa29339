// One entry per system call. What is not named passes through on the kernel thread that runs the thread: it never
// blocks (or only for as long as a disk access lasts) and asks nothing about the thread's identity.
#include "linux/linux.h"

#include "base/log.h"
#include "linux/descriptors.h"
#include "linux/signal.h"

using upcall::sched::Thread;

extern "C" {
__attribute__((visibility("hidden"))) upcall::linux_abi::Handler upcall_syscall_table[SYSCALL_TABLE_SIZE + 1];
}

namespace upcall::linux_abi {

namespace {

struct Entry {
  int nr;
  Handler handler;
};

Thread* sys_fcntl(Thread* t) noexcept {
  constexpr uint32_t setlkw = 7, ofd_setlkw = 38;  // these wait
  auto command = static_cast<uint32_t>(t->rsi);
  constexpr uint32_t setfl = 4;
  if (command == setfl) {
    pass(t);  // does not wait, and what it changes must be known before the thread goes on anywhere
    modes_changed();
    return t;
  }
  if (is_owner_call(static_cast<int32_t>(command))) return sys_file_owner(t);
  return command == setlkw || command == ofd_setlkw ? may_block(t) : activation::uninterrupted_call(t);
}

// getrandom(2): up to 256 bytes come whole, whatever signals there are.
Thread* sys_getrandom(Thread* t) noexcept {
  constexpr uint64_t whole = 256;
  return t->rsi <= whole ? activation::uninterrupted_call(t) : may_block(t);
}

const Entry entries[] = {
    // thread
    {__NR_clone, sys_clone},
    {__NR_clone3, sys_clone3},
    {__NR_exit, sys_exit},
    {__NR_gettid, sys_gettid},
    {__NR_set_tid_address, sys_set_tid_address},
    {__NR_set_robust_list, sys_set_robust_list},
    {__NR_get_robust_list, sys_get_robust_list},
    {__NR_rseq, sys_rseq},
    {__NR_sched_yield, sys_sched_yield},
    // futex and time
    {__NR_futex, sys_futex},
    {__NR_nanosleep, sys_nanosleep},
    {__NR_clock_nanosleep, sys_clock_nanosleep},
    // memory: stacks, and objects mapped executable
    {__NR_mmap, sys_mmap},
    {__NR_munmap, sys_munmap},
    {__NR_mprotect, sys_mprotect},
    {__NR_madvise, sys_madvise},
    // signals
    {__NR_rt_sigaction, sys_rt_sigaction},
    {__NR_rt_sigprocmask, sys_rt_sigprocmask},
    {__NR_rt_sigpending, sys_rt_sigpending},
    {__NR_rt_sigtimedwait, sys_rt_sigtimedwait},
    {__NR_rt_sigsuspend, sys_rt_sigsuspend},
    {__NR_pause, sys_pause},
    {__NR_sigaltstack, sys_sigaltstack},
    {__NR_rt_sigreturn, signals::sys_rt_sigreturn},
    {__NR_kill, sys_kill},
    {__NR_tkill, sys_tkill},
    {__NR_tgkill, sys_tgkill},
    {__NR_rt_tgsigqueueinfo, sys_tgsigqueueinfo},
    {__NR_signalfd, sys_signalfd},
    {__NR_signalfd4, sys_signalfd},
    {__NR_rt_sigqueueinfo, sys_sigqueueinfo},
    {__NR_pidfd_send_signal, sys_pidfd_send_signal},
    {__NR_timer_create, sys_timer_create},
    {__NR_timer_settime, sys_timer_settime},
    {__NR_timer_getoverrun, sys_timer_getoverrun},
    {__NR_timer_delete, sys_timer_delete},
    {__NR_ioctl, sys_ioctl},
    // waiting for a time, or under a mask
    {__NR_poll, sys_poll},
    {__NR_epoll_wait, sys_epoll_wait},
    {__NR_semtimedop, sys_semtimedop},
    {__NR_io_getevents, sys_io_getevents},
    {__NR_ppoll, sys_ppoll},
    {__NR_pselect6, sys_pselect6},
    {__NR_epoll_pwait, sys_epoll_pwait},
    {epoll_pwait2, sys_epoll_pwait},
    {333 /* io_pgetevents */, sys_io_pgetevents},
    {426 /* io_uring_enter */, sys_io_uring_enter},
    // process
    {__NR_fork, sys_fork},
    {__NR_vfork, sys_vfork},
    {__NR_execve, sys_exec},
    {__NR_execveat, sys_exec},
    {__NR_exit_group, sys_exit_group},
    // identity
    {__NR_sched_getaffinity, sys_sched_getaffinity},
    {__NR_sched_setaffinity, sys_sched_setaffinity},
    {__NR_sched_setparam, sys_sched_attributes},
    {__NR_sched_getparam, sys_sched_attributes},
    {__NR_sched_setscheduler, sys_sched_attributes},
    {__NR_sched_getscheduler, sys_sched_attributes},
    {__NR_sched_rr_get_interval, sys_sched_attributes},
    {__NR_prctl, sys_prctl},
    {__NR_getpriority, sys_priority},
    {__NR_setpriority, sys_priority},
    {__NR_fcntl, sys_fcntl},
    {__NR_getrandom, sys_getrandom},
    {__NR_setuid, sys_set_ids},
    {__NR_setgid, sys_set_ids},
    {__NR_setreuid, sys_set_ids},
    {__NR_setregid, sys_set_ids},
    {__NR_setresuid, sys_set_ids},
    {__NR_setresgid, sys_set_ids},
    {__NR_setgroups, sys_set_ids},
};

Thread* sys_sendmmsg(Thread* t) noexcept {
  descriptors_shared();  // perhaps some are in it
  return may_block(t);
}

// Descriptors whose threads wait for events (--descriptors events).
const Entry event_entries[] = {
    {__NR_read, sys_read},
    {__NR_write, sys_write},
    {__NR_readv, sys_readv},
    {__NR_writev, sys_writev},
    {__NR_recvfrom, sys_recvfrom},
    {__NR_sendto, sys_sendto},
    {__NR_recvmsg, sys_recvmsg},
    {__NR_sendmsg, sys_sendmsg},
    {__NR_accept, sys_accept},
    {__NR_accept4, sys_accept},
    {__NR_close, sys_close},
    {436 /* close_range */, sys_close_range},
    {__NR_dup2, sys_dup_onto},
    {__NR_dup3, sys_dup_onto},
    {__NR_setsockopt, sys_setsockopt},
    {__NR_shutdown, sys_shutdown},
    {__NR_connect, sys_connect},
    {__NR_socket, sys_socket},
    {__NR_pipe, sys_pipe},
    {__NR_pipe2, sys_pipe},
    {__NR_epoll_ctl, sys_epoll_ctl},
    {__NR_sendmmsg, sys_sendmmsg},
    {__NR_poll, poll_as_event},
    {__NR_ppoll, ppoll_as_event},
    {__NR_pselect6, pselect6_as_event},
    {__NR_epoll_wait, epoll_as_event},
    {__NR_epoll_pwait, epoll_as_event},
    {epoll_pwait2, epoll_as_event},
};

// The processor is free for others meanwhile.
const int blocking[] = {
    __NR_read,
    __NR_write,
    __NR_open,
    __NR_poll,
    __NR_pread64,
    __NR_pwrite64,
    __NR_readv,
    __NR_writev,
    __NR_select,
    __NR_connect,
    __NR_accept,
    __NR_sendto,
    __NR_recvfrom,
    __NR_sendmsg,
    __NR_recvmsg,
    __NR_wait4,
    __NR_semop,
    __NR_msgsnd,
    __NR_msgrcv,
    __NR_flock,
    __NR_creat,
    __NR_semtimedop,
    __NR_epoll_wait,
    __NR_mq_timedsend,
    __NR_mq_timedreceive,
    __NR_waitid,
    __NR_openat,
    __NR_splice,
    __NR_tee,
    __NR_vmsplice,
    __NR_sendfile,
    __NR_accept4,
    __NR_preadv,
    __NR_pwritev,
    __NR_recvmmsg,
    __NR_sendmmsg,
    __NR_getrandom,
    __NR_copy_file_range,
    __NR_preadv2,
    __NR_pwritev2,
    __NR_io_getevents,
    __NR_fallocate,
    333 /* io_pgetevents */,
    426 /* io_uring_enter */,
    437 /* openat2 */,
    449 /* futex_waitv */,
};

// The same, but no signal ends or restarts them: programs do not look for EINTR, and a close is not repeated.
const int uninterrupted[] = {
    __NR_close,      __NR_fsync,           __NR_fdatasync,  __NR_truncate,  __NR_ftruncate, __NR_getdents,
    __NR_getdents64, __NR_sync_file_range, __NR_syncfs,     __NR_sync,      __NR_msync,     __NR_rename,
    __NR_unlink,     __NR_unlinkat,        __NR_renameat,   __NR_renameat2, __NR_mkdir,     __NR_rmdir,
    __NR_stat,       __NR_lstat,           __NR_newfstatat, __NR_statx,     __NR_access,
};

bool all_wanted() noexcept { return log_on(Topic::syscall); }

Thread* traced(Thread* t) noexcept;
Handler g_traced[SYSCALL_TABLE_SIZE + 1];

// UPCALL_LOG=syscall: each call before it is carried out.
Thread* traced(Thread* t) noexcept {
  auto nr = static_cast<uint64_t>(t->nr) < SYSCALL_TABLE_SIZE ? t->nr : SYSCALL_TABLE_SIZE;
  Line line;
  line << "thread " << t->tid << " call " << static_cast<long>(t->nr) << " (";
  line.hex(t->rdi) << ", ";
  line.hex(t->rsi) << ", ";
  line.hex(t->rdx) << ")";
  line.write();
  return g_traced[nr](t);
}

}  // namespace

Thread* may_block(Thread* t) noexcept {
  signals::lend_signals(t);
  return activation::blocking_call(t);
}

Thread* pass(Thread* t) noexcept { return answer(t, raw_call(t)); }

bool may_block_call(long nr) noexcept {
  if (nr == __NR_fcntl || nr == __NR_ioctl) return true;
  for (int b : blocking)
    if (b == nr) return true;
  return false;
}

bool wants_substitution(long nr) noexcept {
  if (nr < 0 || nr >= SYSCALL_TABLE_SIZE || all_wanted()) return true;
  for (const Entry& e : entries)
    if (e.nr == nr) return true;
  for (const Entry& e : event_entries)
    if (e.nr == nr) return true;
  for (int u : uninterrupted)
    if (u == nr) return true;
  return may_block_call(nr) || may_bind_call(nr);
}

void install_table(bool started) noexcept {
  // Not from here before the start: handlers of the kernel's signals interrupt the call, and make calls themselves.
  for (Handler& h : upcall_syscall_table) h = started ? pass : leave_to_stub;
  if (started) {
    for (int nr : blocking) upcall_syscall_table[nr] = may_block;
    for (int nr : uninterrupted) upcall_syscall_table[nr] = activation::uninterrupted_call;
    for (int nr = 0; nr < SYSCALL_TABLE_SIZE; ++nr)
      if (may_bind_call(nr)) upcall_syscall_table[nr] = sys_bound;
    for (const Entry& e : entries) upcall_syscall_table[e.nr] = e.handler;
    if (activation::g_runtime.descriptor_events)
      for (const Entry& e : event_entries) upcall_syscall_table[e.nr] = e.handler;
  } else {
    // One thread: the kernel's own answers are right. Only what starts the runtime, maps code, or makes a process that
    // shares our memory needs us.
    for (const Entry& e : entries) {
      bool needed = e.nr == __NR_clone || e.nr == __NR_clone3 || e.nr == __NR_vfork || e.nr == __NR_mmap ||
                    e.nr == __NR_munmap || e.nr == __NR_mprotect || e.nr == __NR_madvise ||
                    e.nr == __NR_signalfd4 || e.nr == __NR_rt_sigreturn || e.nr == __NR_exit_group;
      if (needed) upcall_syscall_table[e.nr] = e.handler;
    }
  }
  if (!log_on(Topic::syscall)) return;
  for (int i = 0; i <= SYSCALL_TABLE_SIZE; ++i) {
    g_traced[i] = upcall_syscall_table[i];
    upcall_syscall_table[i] = traced;
  }
}

}  // namespace upcall::linux_abi

// The system calls that the runtime makes for itself, and the program's one that may block.
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/time_types.h>
#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/fence.h"
#include "machine.h"

namespace upcall::sim {

namespace {

uint64_t to_ns(const __kernel_timespec* ts) noexcept {
  return ts ? static_cast<uint64_t>(ts->tv_sec) * 1'000'000'000u + static_cast<uint64_t>(ts->tv_nsec) : ~0ull;
}

KernelThread* find(int32_t tid) noexcept {
  for (int i = 0; i < g.count; ++i)
    if (g.thread[i].tid == tid) return &g.thread[i];
  return nullptr;
}

long futex(const void* word, int op, uint32_t value, const __kernel_timespec* ts) noexcept {
  int cmd = op & FUTEX_CMD_MASK;
  if (cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET) {
    uint32_t now;
    memcpy(&now, word, sizeof now);
    if (now != value) return -EAGAIN;
    uint64_t until = to_ns(ts);
    if (until <= g.now) return -ETIMEDOUT;
    return block(Why::futex, until, word, true);
  }
  SIM_CHECK(cmd == FUTEX_WAKE, "futex operation %d", op);
  long woken = 0;
  for (int i = 0; i < g.count && woken < static_cast<long>(value); ++i) {
    KernelThread* k = &g.thread[i];
    if (k->why != Why::futex || k->futex != word) continue;
    wake(k, 0);
    ++woken;
  }
  return woken;
}

long clock_time(int clock, __kernel_timespec* ts) noexcept {
  uint64_t t = g.now;
  if (clock < 0) {  // a kernel thread's: clock_getcpuclockid's encoding
    KernelThread* k = find(static_cast<int32_t>(~static_cast<uint32_t>(clock) >> 3) & 0x1fffffff);
    if (!k) return -EINVAL;
    t = k->cpu_time;
  }
  ts->tv_sec = static_cast<long long>(t / 1'000'000'000u);
  ts->tv_nsec = static_cast<long long>(t % 1'000'000'000u);
  return 0;
}

// /proc/self/task/TID/stat, opened as 1000 + its index.
constexpr long stat_files = 1'000'000, task_directory = 999'999;

long open_stat(const char* path) noexcept {
  KernelThread* k = find(atoi(path));
  return k ? stat_files + k->index : -ENOENT;
}

long read_stat(long fd, char* to, size_t bytes) noexcept {
  const KernelThread& k = g.thread[fd - stat_files];
  char letter = k.why == Why::runnable ? 'R' : k.interruptible ? 'S' : 'D';
  return snprintf(to, bytes, "%d (a ) name) %c 1 2 3", k.tid, letter);
}

long signal_wait(const __kernel_timespec* ts) noexcept {
  KernelThread* k = g.current;
  if (k->signal_pending) {
    k->signal_pending = false;
    return activation::preempt_signal;
  }
  // The call takes a duration. However long the monitor was kept from making it, it is not to look later than it said.
  uint64_t until = ts ? g.now + to_ns(ts) : ~0ull, said = peek(activation::g_monitor_deadline);
  return block(Why::signal_wait, until < said ? until : said, nullptr, false);
}

long send(int32_t tid) noexcept {
  KernelThread* k = find(tid);
  SIM_CHECK(k, "a signal to %d, which does not exist", tid);
  post_signal(k);
  return 0;
}

long set_mask(int how, const uint64_t* set, uint64_t* old) noexcept {
  uint64_t& mask = g.current->blocked_signals;
  if (old) *old = mask;
  if (set) mask = how == 0 ? mask | *set : how == 1 ? mask & ~*set : *set;
  return 0;
}

template <typename T>
T* pointer(long v) noexcept {
  return reinterpret_cast<T*>(v);
}

long carry_out(long nr, long a, long b, long c, long d) noexcept {
  switch (nr) {
    case __NR_futex:
      return futex(pointer<void>(a), static_cast<int>(b), static_cast<uint32_t>(c),
                   pointer<__kernel_timespec>(d));
    case __NR_gettid:
      return g.current->tid;
    case __NR_sched_yield:
      reschedule(true);
      return 0;
    case __NR_membarrier:
      if (a == MEMBARRIER_CMD_PRIVATE_EXPEDITED) drain_all();
      return 0;
    case __NR_mmap:
      return reinterpret_cast<long>(runtime_memory(static_cast<size_t>(b)));
    case __NR_clock_gettime:
      return clock_time(static_cast<int>(a), pointer<__kernel_timespec>(b));
    case __NR_tgkill:
      return send(static_cast<int32_t>(b));
    case __NR_rt_sigtimedwait:
      return signal_wait(pointer<__kernel_timespec>(c));
    case __NR_rt_sigprocmask:
      return set_mask(static_cast<int>(a), pointer<uint64_t>(b), pointer<uint64_t>(c));
    case __NR_nanosleep:
      return block(Why::asleep, g.now + to_ns(pointer<__kernel_timespec>(a)), nullptr, true);
    case __NR_sched_setscheduler:
      g.current->background = b == SCHED_IDLE;
      return 0;
    case __NR_open:
      return task_directory;
    case __NR_openat:
      return open_stat(pointer<char>(b));
    case __NR_read:
      return read_stat(a, pointer<char>(b), static_cast<size_t>(c));
    case __NR_write:
      fail("the runtime says: %.*s", static_cast<int>(c), pointer<char>(b));
    case __NR_exit_group:
      fail("the runtime ends the process with status %ld", a);
    case __NR_munmap:
    case __NR_madvise:
    case __NR_mprotect:
    case __NR_sigaltstack:
    case __NR_sched_setaffinity:
    case __NR_sched_setattr:
    case __NR_close_range:
    case __NR_close:
      return 0;
    default:
      fail("system call %ld is not simulated", nr);
  }
}

const char* role_of(const void* argument) noexcept {
  if (!argument) return "answers";  // activation/task_state.cc
  const activation::Runtime& r = activation::g_runtime;
  if (!argument) return "helper";
  if (argument >= r.processor && argument < r.processor + r.processors) return "sentinel";
  return static_cast<const Activation*>(argument)->is_monitor ? "monitor" : "activation";
}

}  // namespace

}  // namespace upcall::sim

namespace upcall::kernel {

long raw_syscall(long nr, long a, long b, long c, long d, long, long) noexcept {
  using namespace sim;
  step("system call", static_cast<uint64_t>(nr));
  drain(g.current);
  long r = carry_out(nr, a, b, c, d);
  if (g.quiet) return r;
  record("system call's result", nullptr, static_cast<uint64_t>(r));
  pass_time(random_below(500));
  deliver_signals();
  return r;
}

}  // namespace upcall::kernel

extern "C" {

long upcall_clone(unsigned long, void* stack, void (*f)(void*), void* argument, int* parent_tid, int*) {
  using namespace upcall::sim;
  step("clone");
  KernelThread* parent = g.current;
  KernelThread* k = new_kernel_thread(stack, f, argument, role_of(argument));
  k->gs = parent->gs;
  k->fs = parent->fs;
  k->vectors = parent->vectors;
  k->blocked_signals = parent->blocked_signals;
  *parent_tid = k->tid;
  step("clone's return");
  return k->tid;
}

// args[2]: for how many nanoseconds the call blocks.
long upcall_blocking_syscall(long, const long args[6]) {
  using namespace upcall::sim;
  KernelThread* k = g.current;
  auto* a = reinterpret_cast<Activation*>(k->gs);
  k->place = Place::before_call;
  k->call_cancelled = false;
  step("before the call");
  bool cancelled = a->interrupt.load(upcall::relaxed) || k->call_cancelled;
  step("about to enter the kernel");
  cancelled |= k->call_cancelled;
  k->place = Place::library;
  if (cancelled) return -512;
  long r = args[2] ? block(Why::call, g.now + static_cast<uint64_t>(args[2]), nullptr, true) : 0;
  record("the call returns", nullptr, static_cast<uint64_t>(r));
  deliver_signals();
  return r;
}

}  // extern "C"

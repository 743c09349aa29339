// Calls that wait for descriptors and events: for some time from now on, of which only the rest is left when such a call
// is repeated; and under a mask of signals of their own.
#include <linux/time_types.h>

#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using namespace signals;

namespace {

struct Arguments {
  long at[6];
  explicit Arguments(const Thread* t) noexcept
      : at{static_cast<long>(t->rdi), static_cast<long>(t->rsi), static_cast<long>(t->rdx),
           static_cast<long>(t->r10), static_cast<long>(t->r8),  static_cast<long>(t->r9)} {}
};

// Milliseconds in argument `n`; the call is repeated with what is left of them.
void limit_milliseconds(Thread* t, Arguments* args, int n) noexcept {
  constexpr uint64_t ns = 1'000'000;
  auto wanted = static_cast<int32_t>(args->at[n]);
  uint64_t known = sched::take_restart_deadline(t);
  t->call_deadline = 0;
  if (wanted <= 0) return;
  uint64_t now = kernel::now();
  t->call_deadline = known ? known : now + static_cast<uint64_t>(wanted) * ns;
  if (known) args->at[n] = known > now ? static_cast<long>((known - now + ns - 1) / ns) : 0;
}

__kernel_timespec rest_until(uint64_t deadline) noexcept {
  uint64_t now = kernel::now(), left = deadline > now ? deadline - now : 0;
  return {static_cast<int64_t>(left / 1'000'000'000u), static_cast<long long>(left % 1'000'000'000u)};
}

// The same for a pointer to a timespec; `rest` must last as long as the call.
void limit_timespec(Thread* t, Arguments* args, int n, __kernel_timespec* rest) noexcept {
  uint64_t ns, known = sched::take_restart_deadline(t);
  t->call_deadline = 0;
  if (!args->at[n] || read_timespec(reinterpret_cast<void*>(args->at[n]), &ns)) return;
  uint64_t now = kernel::now();
  t->call_deadline = known ? known : now + ns;
  if (!known) return;
  *rest = rest_until(known);
  args->at[n] = reinterpret_cast<long>(rest);
}

Thread* wait_in_kernel(Thread* t, const Arguments& args) noexcept {
  lend_signals(t);  // a signalfd may be among the descriptors
  return activation::blocking_call(t, t->nr, args.at);
}

// A signal is pending that the borrowed mask lets through. As in the kernel: what is ready is answered, and the signal
// stays pending; only where the call would wait it ends with EINTR. `args` have a time-out of 0.
Thread* look_once(Thread* t, const Arguments& args) noexcept {
  long r = kernel::raw_syscall(t->nr, args.at[0], args.at[1], args.at[2], args.at[3], args.at[4], args.at[5]);
  if (r) {
    return_mask(t);
    return answer(t, r);
  }
  t->interrupted_call = sched::Interrupted::ends;
  t->attention.store(1, relaxed);
  return answer(t, -e_intr);
}

const __kernel_timespec no_time = {0, 0};

}  // namespace

Thread* sys_poll(Thread* t) noexcept {
  Arguments args(t);
  limit_milliseconds(t, &args, 2);
  return wait_in_kernel(t, args);
}

Thread* sys_epoll_wait(Thread* t) noexcept {
  Arguments args(t);
  limit_milliseconds(t, &args, 3);
  return wait_in_kernel(t, args);
}

Thread* sys_semtimedop(Thread* t) noexcept {
  Arguments args(t);
  __kernel_timespec rest;
  limit_timespec(t, &args, 3, &rest);
  return wait_in_kernel(t, args);
}

Thread* sys_io_getevents(Thread* t) noexcept {
  Arguments args(t);
  __kernel_timespec rest;
  limit_timespec(t, &args, 4, &rest);
  return wait_in_kernel(t, args);
}

// In all of these the kernel must not see the mask: it would unblock its own signals on this kernel thread. A mask that
// cannot be read is left to the kernel, which finds the other errors in its own order.

Thread* sys_ppoll(Thread* t) noexcept {
  Arguments args(t);
  t->call_deadline = t->sleep_rem = 0;  // the kernel writes what is left
  if (t->r10) {
    if (borrow_mask(t, t->r10, t->r8)) return pass(t);
    args.at[3] = args.at[4] = 0;
    if (lets_something_through(t)) {
      args.at[2] = reinterpret_cast<long>(&no_time);
      return look_once(t, args);
    }
  }
  return wait_in_kernel(t, args);
}

Thread* sys_pselect6(Thread* t) noexcept {
  constexpr int most = 1024;
  Arguments args(t);
  uint64_t pair[2] = {};
  if (t->r9 && upcall_copy_user(pair, reinterpret_cast<void*>(t->r9), sizeof pair)) return pass(t);
  t->call_deadline = t->sleep_rem = 0;
  if (!pair[0]) return wait_in_kernel(t, args);
  if (borrow_mask(t, pair[0], pair[1])) return pass(t);
  args.at[5] = 0;
  auto count = static_cast<int32_t>(args.at[0]);
  if (!lets_something_through(t) || count < 0 || count > most) return wait_in_kernel(t, args);
  // A look at the sets would change them.
  uint64_t sets[3][most / 64];
  for (int i = 0; i < 3; ++i) {
    auto* user = reinterpret_cast<void*>(args.at[1 + i]);
    if (user && upcall_copy_user(sets[i], user, static_cast<size_t>((count + 63) / 64 * 8)))
      return wait_in_kernel(t, args);
    if (user) args.at[1 + i] = reinterpret_cast<long>(sets[i]);
  }
  args.at[4] = reinterpret_cast<long>(&no_time);
  long r = kernel::raw_syscall(t->nr, args.at[0], args.at[1], args.at[2], args.at[3], args.at[4], 0);
  Arguments again(t);
  again.at[4] = args.at[4], again.at[5] = 0;
  if (r) return look_once(t, again);
  t->interrupted_call = sched::Interrupted::ends;
  t->attention.store(1, relaxed);
  return answer(t, -e_intr);
}

// epoll_pwait and epoll_pwait2: the same places for mask and size.
Thread* sys_epoll_pwait(Thread* t) noexcept {
  Arguments args(t);
  __kernel_timespec rest;
  bool milliseconds = t->nr == __NR_epoll_pwait;
  if (milliseconds)
    limit_milliseconds(t, &args, 3);
  else
    limit_timespec(t, &args, 3, &rest);
  if (t->r8) {
    if (borrow_mask(t, t->r8, t->r9)) return pass(t);
    args.at[4] = args.at[5] = 0;
    if (lets_something_through(t)) {
      args.at[3] = milliseconds ? 0 : reinterpret_cast<long>(&no_time);
      return look_once(t, args);
    }
  }
  return wait_in_kernel(t, args);
}

Thread* sys_io_pgetevents(Thread* t) noexcept {
  Arguments args(t);
  __kernel_timespec rest;
  limit_timespec(t, &args, 4, &rest);
  uint64_t pair[2] = {};
  if (t->r9 && upcall_copy_user(pair, reinterpret_cast<void*>(t->r9), sizeof pair)) return pass(t);
  if (pair[0]) {
    if (borrow_mask(t, pair[0], pair[1])) return pass(t);
    args.at[5] = 0;
  }
  return wait_in_kernel(t, args);
}

// The mask is the fifth argument, or the first member of what that points to (IORING_ENTER_EXT_ARG).
Thread* sys_io_uring_enter(Thread* t) noexcept {
  constexpr uint64_t get_events = 1, extended = 8, absolute = 32, registered = 64, extended_size = 24;
  Arguments args(t);
  uint64_t known = sched::take_restart_deadline(t);
  t->call_deadline = 0;
  if (!(t->r10 & get_events) || !t->r8) return wait_in_kernel(t, args);
  if (!(t->r10 & extended)) {
    if (borrow_mask(t, t->r8, t->r9)) return pass(t);
    args.at[4] = 0, args.at[5] = mask_bytes;
    return wait_in_kernel(t, args);
  }
  struct {
    uint64_t mask;
    uint32_t size, wait_usec;
    uint64_t time;
  } more;
  static_assert(sizeof more == extended_size);
  if (t->r9 != extended_size || upcall_copy_user(&more, reinterpret_cast<void*>(t->r8), sizeof more) ||
      (t->r10 & registered))
    return wait_in_kernel(t, args);
  // A call that has submitted something says so when it is interrupted, and is not repeated.
  __kernel_timespec rest;
  uint64_t ns;
  if (more.time && !(t->r10 & absolute) && !read_timespec(reinterpret_cast<void*>(more.time), &ns)) {
    t->call_deadline = known ? known : kernel::now() + ns;
    if (known) {
      rest = rest_until(known);
      more.time = reinterpret_cast<uint64_t>(&rest);
    }
  }
  if (more.mask && borrow_mask(t, more.mask, more.size)) return pass(t);
  more.mask = 0;
  args.at[4] = reinterpret_cast<long>(&more);
  return wait_in_kernel(t, args);
}

}  // namespace upcall::linux_abi

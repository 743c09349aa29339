// Sleeping. A sleeper is a thread with a timer and nothing else.
#include <cerrno>
#include <ctime>

#include "arch/x86_64/cpu.h"
#include "kernel/clock.h"
#include "linux/linux.h"

namespace upcall::linux_abi {

namespace {

uint64_t clock_ns(int clock) noexcept {
  timespec ts;
  if (kernel::read_clock(clock, &ts)) return 0;
  return static_cast<uint64_t>(ts.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(ts.tv_nsec);
}

Thread* sleep_until(Thread* t, uint64_t deadline, uint64_t remaining_to) noexcept {
  Activation* a = activation::self();
  activation::Processor* p = a->processor;
  t->sleep_rem = remaining_to;
  if (deadline <= kernel::now()) {
    t->rax = 0;
    if (!p->has_work()) return t;
    activation::save_for_switch(t);
    activation::ready_last(a, t);
    return activation::schedule(a);
  }
  activation::save_for_switch(t);
  t->timeout_result = 0;
  t->interrupted_call = sched::Interrupted::ends;
  uint64_t word = sched::begin_wait_until(t, &p->timers, deadline);
  if (!word) return answer(t, -e_nomem);
  ++p->counters.sleeps;
  bool over = sched::came_early(t, deadline);
  // fenced: pairs with signal posting, see begin_wait
  if ((over || t->attention.load(fenced)) && sched::claim_wait(t, word)) {
    if (sched::is_armed(t)) t->timers->cancel(t);
    t->state.store(sched::State::running, relaxed);
    return answer(t, over ? t->timeout_result : -e_intr);
  }
  return activation::schedule(a);
}

Thread* sleep_for(Thread* t, uint64_t ns, uint64_t remaining_to) noexcept {
  uint64_t known = sched::take_restart_deadline(t);
  t->call_deadline = known ? known : kernel::now() + ns;
  return sleep_until(t, t->call_deadline, remaining_to);
}

}  // namespace

long read_timespec(const void* user, uint64_t* nanoseconds) noexcept {
  timespec ts;
  if (upcall_copy_user(&ts, user, sizeof ts)) return -e_fault;
  if (ts.tv_sec < 0 || static_cast<uint64_t>(ts.tv_nsec) >= 1'000'000'000u) return -e_inval;
  // 292 years are "for ever".
  if (static_cast<uint64_t>(ts.tv_sec) > 9'000'000'000u)
    *nanoseconds = sched::never / 2;
  else
    *nanoseconds = static_cast<uint64_t>(ts.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(ts.tv_nsec);
  return 0;
}

// A clock that is set later does not move a wait that has begun.
uint64_t to_monotonic(int clock, uint64_t absolute) noexcept {
  if (clock == CLOCK_MONOTONIC) return absolute;
  uint64_t there = clock_ns(clock), here = kernel::now();
  return absolute <= there ? 0 : here + (absolute - there);
}

void report_remaining(Thread* t) noexcept {
  // Only a sleep that has just been interrupted: an earlier one may have left its pointer.
  bool sleeps = t->nr == __NR_nanosleep || t->nr == __NR_clock_nanosleep;
  if (!t->sleep_rem || (!sleeps && t->nr != __NR_ppoll && t->nr != __NR_pselect6)) return;
  uint64_t now = kernel::now();
  uint64_t left = t->call_deadline > now ? t->call_deadline - now : 0;
  timespec ts = {static_cast<time_t>(left / 1'000'000'000u), static_cast<long>(left % 1'000'000'000u)};
  if (upcall_copy_user(reinterpret_cast<void*>(t->sleep_rem), &ts, sizeof ts) && sleeps)
    t->rax = static_cast<uint64_t>(-e_fault);
  t->sleep_rem = 0;
}

Thread* sleep_native(Thread* t) noexcept {
  t->call_deadline = 0;
  return sleep_until(t, kernel::now() + t->rsi, 0);
}

Thread* sleep_milliseconds(Thread* t, uint64_t milliseconds) noexcept {
  return sleep_for(t, milliseconds * 1'000'000, 0);
}

Thread* sleep_for_call(Thread* t, uint64_t deadline, uint64_t remaining_to) noexcept {
  t->call_deadline = deadline;
  return sleep_until(t, deadline, remaining_to);
}

Thread* sys_nanosleep(Thread* t) noexcept {
  uint64_t ns;
  if (long r = read_timespec(reinterpret_cast<void*>(t->rdi), &ns)) return answer(t, r);
  return sleep_for(t, ns, t->rsi);
}

Thread* sys_clock_nanosleep(Thread* t) noexcept {
  auto clock = static_cast<int>(t->rdi);
  bool absolute = t->rsi & TIMER_ABSTIME;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_MONOTONIC:
    case CLOCK_BOOTTIME:
    case CLOCK_TAI:
      break;
    default:             // CPU clocks, alarm clocks, and what does not exist
      t->sleep_rem = 0;  // the kernel tells the rest
      return activation::blocking_call(t);
  }
  uint64_t ns;
  if (long r = read_timespec(reinterpret_cast<void*>(t->rdx), &ns)) return answer(t, r);
  if (!absolute) return sleep_for(t, ns, t->r10);
  t->call_deadline = 0;
  return sleep_until(t, to_monotonic(clock, ns), 0);
}

}  // namespace upcall::linux_abi

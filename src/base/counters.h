// Counters: one list makes the fields, the names and the report.
#pragma once

#include <cstdint>

#include "base/atomic.h"

// Kept per processor, written by its owner without a locked instruction; read by anyone.
#define UPCALL_PROCESSOR_COUNTERS(X)                                                 \
  X(threads_created, "threads made, those in the place of an ended one included")    \
  X(threads_reused, "threads made in the place of an ended one")                     \
  X(switches, "times a processor went on with another thread")                       \
  X(yields, "sched_yield calls that gave the processor to another thread")           \
  X(steals, "threads taken from another processor")                                  \
  X(futex_waits, "waits on private futexes that blocked the thread only")            \
  X(futex_wakes, "threads woken through private futexes")                            \
  X(sleeps, "nanosleep and clock_nanosleep waits")                                   \
  X(event_waits, "waits for descriptors that blocked the thread only")               \
  X(event_looks, "looks for events by processors that run threads")                  \
  X(event_sleeps, "waits of idle processors for events")                             \
  X(event_calls, "calls on descriptors made at once, without leaving the processor") \
  X(lone_waits, "waits for descriptors in the kernel: nothing else was to run")      \
  X(blocking_calls, "system calls made that may block")                              \
  X(signals_delivered, "signal handlers run on threads")

// Kept once, with atomic additions: rare events, or from outside any processor.
#define UPCALL_GLOBAL_COUNTERS(X)                                                                \
  X(sentinel_wakes, "hand-overs started by a sentinel")                                          \
  X(detached_by_sentinel,                                                                        \
    "activations blocked unseen (page fault, call not substituted), found by a sentinel")        \
  X(detached_by_monitor, "the same, found by the monitor")                                       \
  X(detached_by_bpf, "the same, known from the kernel's scheduler events")                       \
  X(preempted_left, "looks at an owner that by these events was only preempted: left alone")     \
  X(bpf_loaded, "1: the scheduler's events are read (BPF)")                                      \
  X(bpf_lost, "1: they have stopped coming")                                                     \
  X(taken_back, "of these, activations that had their processor back on return")                 \
  X(surrendered, "of these, activations that left their thread to others on return")             \
  X(outpost_events, "events found by an activation that waited for them while threads computed") \
  X(driver_requests, "requests submitted to drivers (upcall/event.h)")                            \
  X(driver_polls, "looks at the requests of a driver")                                           \
  X(driver_hooks, "times a poller waited for an idle processor, a switch or a tick")             \
  X(driver_sleeps, "times a poller slept")                                                       \
  X(driver_blocks, "times a poller waited in the kernel")                                        \
  X(driver_refusals, "requests and calls that drivers have failed")                              \
  X(monitor_wakes, "hand-overs started by the monitor")                                          \
  X(activations_created, "kernel threads made to run threads, the first included")               \
  X(beyond_cap, "of these, made beyond the soft cap (--activations)")                            \
  X(activations_refused, "kernel threads that the system did not give")                          \
  X(helpers, "monitor, sentinels, keeper of BPF programs: kernel threads that run no thread")    \
  X(weight_changes, "times a kernel thread was given another weight (--share threads)")          \
  X(bound_threads, "threads tied to a kernel thread of their own")                               \
  X(stacks_pooled, "stacks handed out by the pool")                                              \
  X(stacks_mapped, "stacks that the pool had to add memory for")

namespace upcall {

#define UPCALL_FIELD(name, text) uint64_t name = 0;
struct ProcessorCounters {
  UPCALL_PROCESSOR_COUNTERS(UPCALL_FIELD)
};
#undef UPCALL_FIELD

#define UPCALL_FIELD(name, text) atomic<uint64_t> name{0};
struct GlobalCounters {
  UPCALL_GLOBAL_COUNTERS(UPCALL_FIELD)
  atomic<uint64_t> threads_parked{0};
  // Before the runtime has started, and in a fork's child: the main thread, and the kernel thread that runs it.
  atomic<uint64_t> threads_peak{1};
  atomic<uint64_t> kernel_threads_live{1};
  atomic<uint64_t> kernel_threads_peak{1};
};
#undef UPCALL_FIELD

extern GlobalCounters g_counters;

// A peak of a value that others raise too. relaxed: a figure for reports, it orders nothing.
inline void raise_peak(atomic<uint64_t>& peak, uint64_t value) noexcept {
  uint64_t seen = peak.load(relaxed);
  while (value > seen && !peak.compare_exchange_weak(seen, value, relaxed, relaxed)) {
  }
}

}  // namespace upcall

// Upcalls: what a kernel with scheduler activations would tell the program (Anderson et al. 1992, table II), found out
// here without its help. Each is one numbered event, and all go through deliver(): counted, and kept in a ring for
// UPCALL_LOG=sched and for a debugger.
//
// Numbers grow with what happens to one activation. Who takes a processor numbers the event before the atomic step on
// the owner word that makes it true (if another one wins, that number is left out); the activation that comes back
// numbers its own after having seen that step.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace upcall::activation {

enum class Upcall : uint8_t {
  add_processor,        // an activation runs a processor that had none
  processor_preempted,  // a thread's turn was ended before it gave the processor away; it is ready again
  activation_blocked,  // an activation lost its processor while it was in the kernel; another one goes on there
  activation_unblocked,  // it is back, and finds that
};
inline constexpr uint32_t upcall_kinds = 4;
inline constexpr const char* upcall_names[upcall_kinds] = {"add processor", "processor preempted",
                                                           "activation blocked", "activation unblocked"};

struct Event {
  uint64_t sequence = 0;  // from 1
  uint64_t time = 0;      // the time stamp counter's; from read_event: CLOCK_MONOTONIC, ns
  uint32_t processor = 0, activation = 0;
  int32_t thread = 0;  // id; 0: none
  Upcall kind = Upcall::add_processor;
};

// Events are kept and times taken only where somebody will ask (--stats, UPCALL_LOG=sched): they cost a hand-over a tenth of
// its time. Counted always. Set before the first thread runs.
extern bool g_measuring;

// Takes the next number, and the time; neither while nothing is measured.
Event new_event(Upcall kind, uint32_t processor, uint32_t activation, int32_t thread) noexcept;
// It has come true. From any kernel thread, with or without a processor; takes no lock.
void deliver(const Event& e) noexcept;

uint64_t upcalls(Upcall kind) noexcept;
// Calls f(event) for those still in the ring, oldest first. Returns how many older ones are not there any more.
inline constexpr uint32_t ring_events = 4096;
uint64_t last_event() noexcept;
// False: overwritten, being written, or its number was left out.
bool read_event(uint64_t sequence, Event* out) noexcept;
// The runtime starts, or a fork's child has nothing to do with what its parent saw. Nobody else delivers.
void reset_events() noexcept;
uint64_t events_began() noexcept;  // when; CLOCK_MONOTONIC, ns

// Times in powers of two: bucket b counts those from 2^b to below 2^(b+1) ns; the first begins at 0, the last has no end.
struct Histogram {
  static constexpr uint32_t buckets = 40;
  uint64_t count[buckets] = {};
  static uint32_t bucket_of(uint64_t ns) noexcept {
    uint32_t b = ns < 2 ? 0 : 63 - static_cast<uint32_t>(__builtin_clzll(ns));
    return b < buckets ? b : buckets - 1;
  }
  void add(uint64_t ns) noexcept { ++count[bucket_of(ns)]; }
};

// Nanoseconds since that value of the time stamp counter.
uint64_t ns_since(uint64_t tsc) noexcept;

}  // namespace upcall::activation

// One schedule, and what it leaves behind.
#pragma once

#include <cstdint>

#include "program.h"

namespace upcall::sim {

struct Result {
  bool failed;
  char message[300];
  char settings[200];
  uint64_t hash, steps, owner_checks, quiet_checks, handovers, detached, surrendered, preemptions, reused,
      steals;
};
extern Result* g_result;

struct Options {
  uint64_t seed = 0;
  bool report = true, trace = false;
  uint64_t events = 120;
  uint32_t processors = 0;  // 0: by the seed
  int focus = -1;           // the only thing that threads do; -1: by the seed
};
extern Options g_options;

// In a process of its own: ends it.
[[noreturn]] void run_schedule() noexcept;
Thread* thread_of(const User& u) noexcept;

}  // namespace upcall::sim

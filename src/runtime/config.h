// Configuration from the environment (UPCALL_*), as `upcall run` sets it.
#pragma once

#include <cstdint>

#include "activation/activation.h"

namespace upcall::runtime {

struct Config {
  uint32_t processors = 0;           // 0: as many as the affinity mask has CPUs
  uint64_t quantum_ns = 10'000'000;  // 0: no time slices
  activation::Events events = activation::Events::sentinel;
  uint32_t activations = 1024;  // soft cap
  bool descriptor_events = true;
  bool pipe_events = true;
  bool share_threads = false;  // beside other programs, processors weigh as much as their threads
  bool symbols = true;         // false: pthread functions are glibc's, on substituted system calls
  bool follow = true;          // into the programs that this one executes
  bool stats = false;          // text on standard error at exit
  // JSON; %p is the process id. A copy: programs write over their environment.
  char stats_file[4096] = {};
  uint64_t stats_pid = 0;  // without %p: the process that may write it, 0: the one that loaded us
};

extern Config g_config;

// A bad value ends the process with status 2 and one line.
void read_environment(char** env) noexcept;

}  // namespace upcall::runtime

// What the user asked of the runtime, by options or by UPCALL_* variables, and its way into the environment.
#pragma once

#include <string>
#include <vector>

#include "environment.h"

namespace upcall::tool {

struct RunSettings {
  std::string processors;  // each: "" means not given
  std::string quantum;
  std::string events;
  std::string activations;
  std::string descriptors;
  std::string share;
  std::string stats_file;
  std::string log;
  std::string follow;  // true or false
  bool stats = false;
};

// The CPUs of this process's affinity mask, ascending.
std::vector<int> usable_cpus();

// Checks the options, then the UPCALL_* variables of `environment` that no option overrides, and writes the
// result to `environment`. Throws Failure (usage) and names the option or variable and what it accepts.
void apply_settings(const RunSettings& settings, Environment& environment);

}  // namespace upcall::tool

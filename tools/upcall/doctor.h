// `upcall doctor`: what this machine offers the runtime, what is used, and what each missing part costs.
#pragma once

#include <string>
#include <vector>

namespace upcall::tool {

struct Finding {
  enum class Level { good, note, bad };  // bad: programs cannot run on Upcall
  Level level = Level::good;
  std::string name;
  std::string found;
  std::string used;
  std::string cost;  // "" when nothing is missing
};

// One line or several of them, by area.
std::vector<Finding> probe_machine();  // kernel, processor, system calls
std::vector<Finding> probe_limits();   // CPUs, control groups, limits, policies
std::vector<Finding> probe_others();   // scheduling class, weight, other programs
std::vector<Finding> probe_runtime();  // libupcall.so, and a trial run
std::vector<Finding> probe_descriptors();   // descriptors
Finding probe_bpf();                   // the kernel's scheduler events
std::vector<Finding> probe_program(const std::string& name);

// Prints and returns the exit status.
int doctor(const std::string& program, bool json);

}  // namespace upcall::tool

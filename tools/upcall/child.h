// Child processes with captured output, a time limit and an end when the user interrupts.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "environment.h"

namespace upcall::tool {

// The user pressed Ctrl-C or the like; the child is already gone when this is thrown.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal_(signal) {}
  int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

struct ChildResult {
  int status = 0;  // as from waitpid
  bool timed_out = false;
  std::string output;
  std::string errors;
  double wall_ms = 0;  // from before fork until the end was noticed

  bool succeeded() const;
  // "exit status 1: <first line of errors>", "killed by signal 11 (Segmentation fault)", "no end within 60
  // s".
  std::string failure(int limit_seconds) const;
};

// From here on SIGINT, SIGTERM and SIGHUP throw Interrupted from run_child, and only there.
void catch_interrupts();
// Ends this process by `signal`, as if it had never been caught.
[[noreturn]] void die_by(int signal);

// `cpus` empty: affinity as it is.
ChildResult run_child(const std::vector<std::string>& command, const Environment& environment,
                      const std::vector<int>& cpus, int limit_seconds);

}  // namespace upcall::tool

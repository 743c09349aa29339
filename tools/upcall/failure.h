// The one way a command refuses: a line for the user and the exit status of the process.
#pragma once

#include <stdexcept>
#include <string>

namespace upcall::tool {

// Shell conventions (POSIX, "Exit Status for Commands"); 2 is what usage errors give everywhere else.
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kCannotRun = 126;
inline constexpr int kNotFound = 127;

class Failure : public std::runtime_error {
 public:
  Failure(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const noexcept { return status_; }

 private:
  int status_;
};

}  // namespace upcall::tool

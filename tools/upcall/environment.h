// The environment of a program that is about to be started.
#pragma once

#include <string>
#include <vector>

namespace upcall::tool {

class Environment {
 public:
  // A copy of this process's environment.
  static Environment inherited();

  void set(const std::string& name, const std::string& value);
  void unset(const std::string& name);
  std::string get(const std::string& name) const;  // "" when unset
  // Removes every UPCALL_* variable and libupcall.so from LD_PRELOAD: plain kernel threads.
  void remove_upcall();
  // For execve; valid until the next change.
  std::vector<char*> pointers() const;

 private:
  std::vector<std::string> entries_;
};

// LD_PRELOAD with `library` first and once, what was there behind it in its order.
std::string preload_list(const std::string& library, const std::string& existing);

}  // namespace upcall::tool

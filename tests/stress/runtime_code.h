// Where the runtime's code lies in another process, and which of its functions an address belongs to.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace upcall::test {

class RuntimeCode {
 public:
  // Reads the process's mappings again; to be called when it has become another program.
  void refresh(pid_t process);

  // Is the address in libupcall.so or in a stub? Looks at the mappings again when it is in none that is known.
  bool contains(pid_t process, uint64_t address);

  // The function, "stub", or "?" for what is not the runtime's.
  std::string name(uint64_t address) const;

  // The entry points of all functions, in this process; empty as long as the library is not loaded.
  const std::vector<uint64_t>& entries() const { return entries_; }
  uint64_t entry(const std::string& name) const;

 private:
  enum class Kind { library, stub, other };
  struct Range {
    uint64_t begin, end;
    Kind kind;
  };
  struct Function {
    uint64_t begin;  // as in the file
    std::string name;
  };

  const Range* find(uint64_t address) const;
  void read_symbols(const std::string& path, uint64_t mapped_at, uint64_t offset);

  std::vector<Range> ranges_;
  std::vector<Function> functions_;  // by address
  std::vector<uint64_t> entries_;
  uint64_t bias_ = 0, read_for_ = 0;
};

}  // namespace upcall::test

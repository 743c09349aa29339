// Can this program run on Upcall? Found as a shell finds it, followed through its #! lines.
#pragma once

#include <string>
#include <vector>

namespace upcall::tool {

struct Program {
  std::string path;                // what execve gets
  std::vector<std::string> chain;  // `path`, then each #! interpreter; the last one is the ELF program
  std::string loader;              // its dynamic loader, "" when the program is the loader itself
};

// Throws Failure: 127 when there is no such program, 126 when it cannot run on Upcall, with the reason.
Program check_program(const std::string& name);

}  // namespace upcall::tool

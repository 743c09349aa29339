// `upcall run`: this process becomes the program, with the runtime preloaded.
#pragma once

#include <string>
#include <vector>

#include "settings.h"

namespace upcall::tool {

// Does not return when all is well. Throws Failure before anything is changed.
[[noreturn]] void run_program(const RunSettings& settings, const std::vector<std::string>& command);

}  // namespace upcall::tool

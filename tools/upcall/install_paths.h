// Where this executable's companions are, in the build tree and installed.
#pragma once

#include <string>

namespace upcall::tool {

std::string own_path();

// Absolute path of libupcall.so, checked to be one that ld.so can preload. Throws Failure (126).
std::string find_library();

// Absolute path of the benchmark program. Throws Failure (126).
std::string find_bench_worker();

}  // namespace upcall::tool

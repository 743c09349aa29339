// Where this executable's companions are, in the build tree and installed.
#pragma once

#include <string>

namespace upcall::tool {

std::string own_path();

// Absolute path of libupcall.so, checked to be one that ld.so can preload. Throws Failure (126).
std::string find_library();

// Absolute path of the benchmark program. Throws Failure (126).
std::string find_bench_worker();

// The program of that name beside it, which need not have been built: "" where it was not.
std::string find_bench_peer(const std::string& name);

// The program of that name as a shell finds it, with its folder: "" where there is none.
std::string find_on_path(const std::string& name);

}  // namespace upcall::tool

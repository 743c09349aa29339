// `upcall run --no-follow`: the programs that this one starts are to be plain.
#pragma once

namespace upcall::runtime {

// Takes this library out of LD_PRELOAD, in place: `env` is the array that the program finds. `own` is the loader's name of
// this library; entries whose file is called libupcall.so count as well, as they do for the `upcall` command.
void leave_preload(char** env, const char* own) noexcept;

}  // namespace upcall::runtime

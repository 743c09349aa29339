// Assertions that work where nothing else does: they neither allocate nor lock,
// write one line to standard error and end the process with SIGABRT's status.
#pragma once

#include <cstdint>

namespace upcall {

// Writes "upcall: file:line: what" and ends the process. Async-signal-safe.
[[noreturn]] void fatal_check(const char* file, int line, const char* what) noexcept;

// Ends the process with a plain message and `status` (126 refusals, 2 usage). Async-signal-safe.
[[noreturn]] void fatal_exit(int status, const char* message, const char* detail = nullptr) noexcept;

}  // namespace upcall

#define CHECK(cond)                                                                     \
  do {                                                                                  \
    if (__builtin_expect(!(cond), 0)) ::upcall::fatal_check(__FILE__, __LINE__, #cond); \
  } while (0)

#ifdef NDEBUG
#define DCHECK(cond)       \
  do {                     \
    (void)sizeof(!(cond)); \
  } while (0)
#else
#define DCHECK(cond) CHECK(cond)
#endif

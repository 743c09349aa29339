// Frames of another object between a thread's start and where it waits; with tables, destructors and a handler that
// rethrows.
#include <atomic>

extern "C" {
std::atomic<int> unwind_library_left{0}, unwind_library_caught{0};

__attribute__((noinline)) void unwind_library_call(int depth, void (*body)(void*), void* argument) {
  struct Frame {
    ~Frame() { ++unwind_library_left; }
  };
  const Frame frame;
  if (depth == 0) {
    body(argument);
    return;
  }
  try {
    unwind_library_call(depth - 1, body, argument);
  } catch (...) {
    ++unwind_library_caught;
    throw;
  }
}
}

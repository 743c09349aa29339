// Formatted lines to standard error without libc: no allocation, no lock, no errno,
// one write(2) per line. Safe in signal handlers and inside the runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace upcall {

// A line under construction. Overlong lines are cut, never overrun.
class Line {
 public:
  Line() noexcept { *this << "upcall: "; }
  explicit Line(const char* prefix) noexcept { *this << prefix; }
  Line& operator<<(const char* s) noexcept;
  Line& operator<<(char c) noexcept;
  Line& operator<<(long v) noexcept;
  Line& operator<<(unsigned long v) noexcept;
  Line& operator<<(int v) noexcept { return *this << static_cast<long>(v); }
  Line& operator<<(unsigned v) noexcept { return *this << static_cast<unsigned long>(v); }
  Line& hex(unsigned long v) noexcept;
  // Appends '\n' and writes to `fd` (2: standard error).
  void write(int fd = 2) noexcept;
  const char* data() const noexcept { return text_; }
  size_t size() const noexcept { return size_; }

 private:
  char text_[1000];
  size_t size_ = 0;
};

// Topics of UPCALL_LOG, a comma-separated list.
enum class Topic : uint32_t {
  patch = 1u << 0,
  syscall = 1u << 1,
  sched = 1u << 2,
  signal = 1u << 3,
  start = 1u << 4
};
extern uint32_t g_log_topics;
inline bool log_on(Topic t) noexcept {
  return __builtin_expect((g_log_topics & static_cast<uint32_t>(t)) != 0, 0);
}

}  // namespace upcall

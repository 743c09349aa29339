// Buffered output of any length to one descriptor, with raw calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/syscall.h"

namespace upcall::runtime {

class Out {
 public:
  explicit Out(int fd) noexcept : fd_(fd) {}
  ~Out() { flush(); }
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  Out& operator<<(const char* s) noexcept {
    for (; s && *s; ++s) put(*s);
    return *this;
  }
  Out& operator<<(uint64_t v) noexcept { return number(v, 1, '0'); }
  // At least `width` characters.
  Out& number(uint64_t v, int width, char fill) noexcept {
    char digits[20];
    int n = 0;
    do digits[n++] = static_cast<char>('0' + v % 10);
    while (v /= 10);
    for (int i = n; i < width; ++i) put(fill);
    while (n) put(digits[--n]);
    return *this;
  }
  Out& quoted(const char* s) noexcept {
    put('"');
    for (; s && *s; ++s) {
      if (*s == '"' || *s == '\\') put('\\');
      if (static_cast<unsigned char>(*s) >= 32) put(*s);
    }
    put('"');
    return *this;
  }

 private:
  void put(char c) noexcept {
    buffer_[size_++] = c;
    if (size_ == sizeof buffer_) flush();
  }
  void flush() noexcept {
    for (size_t done = 0; done < size_;) {
      long r = kernel::sys(__NR_write, fd_, buffer_ + done, size_ - done);
      if (r <= 0) break;
      done += static_cast<size_t>(r);
    }
    size_ = 0;
  }
  int fd_;
  size_t size_ = 0;
  char buffer_[2048];
};

}  // namespace upcall::runtime

#include "base/log.h"

#include "base/check.h"
#include "base/syscall.h"

namespace upcall {

uint32_t g_log_topics = 0;

Line& Line::operator<<(const char* s) noexcept {
  for (; s && *s; ++s) *this << *s;
  return *this;
}

Line& Line::operator<<(char c) noexcept {
  if (size_ < sizeof text_ - 1) text_[size_++] = c;
  return *this;
}

Line& Line::operator<<(unsigned long v) noexcept {
  char digits[20];
  int n = 0;
  do digits[n++] = static_cast<char>('0' + v % 10);
  while (v /= 10);
  while (n) *this << digits[--n];
  return *this;
}

Line& Line::operator<<(long v) noexcept {
  if (v < 0) return *this << '-' << (0ul - static_cast<unsigned long>(v));
  return *this << static_cast<unsigned long>(v);
}

Line& Line::hex(unsigned long v) noexcept {
  *this << "0x";
  int shift = 60;
  while (shift && !((v >> shift) & 15)) shift -= 4;
  for (; shift >= 0; shift -= 4) *this << "0123456789abcdef"[(v >> shift) & 15];
  return *this;
}

void Line::write(int fd) noexcept {
  text_[size_] = '\n';
  kernel::sys(__NR_write, fd, static_cast<const char*>(text_), size_ + 1);
}

void fatal_check(const char* file, int line, const char* what) noexcept {
  (Line() << "internal error at " << file << ':' << line << ": " << what).write();
  // The default action: whatever handler the program has must not run on a broken runtime.
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  } action = {nullptr, 0, nullptr, 0};
  kernel::sys(__NR_rt_sigaction, 6, &action, nullptr, 8);
  unsigned long none = 0;
  kernel::sys(__NR_rt_sigprocmask, 2, &none, nullptr, 8);
  kernel::sys(__NR_tkill, kernel::sys(__NR_gettid), 6);
  for (;;) kernel::sys(__NR_exit_group, 134);
}

void fatal_exit(int status, const char* message, const char* detail) noexcept {
  Line line;
  line << message;
  if (detail) line << detail;
  line.write();
  for (;;) kernel::sys(__NR_exit_group, status);
}

}  // namespace upcall

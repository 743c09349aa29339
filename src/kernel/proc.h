// Reading /proc: the entries of a directory, and short files.
#pragma once

#include <fcntl.h>

#include <initializer_list>

#include "base/syscall.h"

namespace upcall::kernel {

// A path in parts, cut at its end if it does not fit.
struct Path {
  char text[96];
  template <typename... Parts>
  explicit Path(Parts... parts) noexcept {
    size_t n = 0;
    for (const char* part : {parts...})
      for (; *part && n < sizeof text - 1; ++part) text[n++] = *part;
    text[n] = 0;
  }
};

// The beginning of a file as a string. False: there is nothing to be read.
inline bool read_text(const Path& path, char* to, size_t size) noexcept {
  long fd = sys(__NR_openat, AT_FDCWD, static_cast<const char*>(path.text), O_RDONLY | O_CLOEXEC);
  if (is_error(fd)) return false;
  long got = sys(__NR_read, fd, to, size - 1);
  sys(__NR_close, fd);
  to[got > 0 ? got : 0] = 0;
  return got > 0;
}

// Calls f(descriptor of the directory, name) for each entry but "." and "..". False: it cannot be read.
template <typename F>
bool each_entry(const char* path, F f) noexcept {
  struct Entry {  // linux_dirent64
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
  };
  long fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (is_error(fd)) return false;
  alignas(8) char buffer[2048];
  long got;
  while ((got = sys(__NR_getdents64, fd, static_cast<char*>(buffer), sizeof buffer)) > 0) {
    for (long at = 0; at < got;) {
      auto* e = reinterpret_cast<Entry*>(buffer + at);
      if (e->name[0] != '.') f(fd, static_cast<const char*>(e->name));
      at += e->length;
    }
  }
  sys(__NR_close, fd);
  return true;
}

}  // namespace upcall::kernel

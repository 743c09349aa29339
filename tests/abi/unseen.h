// Blocking that no substituted call announces: a system call in code made at run time, a page fault served by a thread.
#pragma once

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "abi.h"

#ifndef UFFD_USER_MODE_ONLY  // Debian 11's headers
#define UFFD_USER_MODE_ONLY 1
#endif

namespace upcall::test {

// A function `long (long nr, long a, long b, long c)` around a syscall instruction, on a page that was written first and
// made executable afterwards, as a compiler at run time does.
inline long (*made_syscall())(long, long, long, long) {
  static const unsigned char code[] = {0x48, 0x89, 0xf8,   // mov %rdi, %rax
                                       0x48, 0x89, 0xf7,   // mov %rsi, %rdi
                                       0x48, 0x89, 0xd6,   // mov %rdx, %rsi
                                       0x48, 0x89, 0xca,   // mov %rcx, %rdx
                                       0x0f, 0x05, 0xc3};  // syscall; ret
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  memcpy(page, code, sizeof code);
  CHECK_EQ(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
  return reinterpret_cast<long (*)(long, long, long, long)>(page);
}

// Pages that appear when `serve` says so.
class SlowPages {
 public:
  explicit SlowPages(size_t pages) : bytes_(pages * 4096) {
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
    if (fd_ < 0) skip("userfaultfd is not allowed here");
    uffdio_api api = {};
    api.api = UFFD_API;
    CHECK_EQ(ioctl(fd_, UFFDIO_API, &api), 0);
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    base_ = static_cast<char*>(at);
    uffdio_register range = {};
    range.range.start = reinterpret_cast<uint64_t>(base_);
    range.range.len = bytes_;
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    CHECK_EQ(ioctl(fd_, UFFDIO_REGISTER, &range), 0);
  }
  volatile char* page(size_t i) const { return base_ + i * 4096; }
  // A page number somebody waits for, -1: nobody.
  long waiting() const {
    uffd_msg message;
    const ssize_t n = read(fd_, &message, sizeof message);
    if (n < 0 && errno == EAGAIN) return -1;
    CHECK_EQ(n, sizeof message);
    CHECK_EQ(message.event, UFFD_EVENT_PAGEFAULT);
    return static_cast<long>((message.arg.pagefault.address - reinterpret_cast<uint64_t>(base_)) / 4096);
  }
  void serve(size_t i, char value) const {
    static thread_local char content[4096];
    memset(content, value, sizeof content);
    uffdio_copy copy = {};
    copy.dst = reinterpret_cast<uint64_t>(base_) + i * 4096;
    copy.src = reinterpret_cast<uint64_t>(content);
    copy.len = 4096;
    if (ioctl(fd_, UFFDIO_COPY, &copy) != 0) CHECK_EQ(errno, EEXIST);  // asked for twice
  }

 private:
  int fd_;
  size_t bytes_;
  char* base_;
};

}  // namespace upcall::test

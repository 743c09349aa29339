// Which signals are read through descriptors that were opened before the runtime started, or by an earlier program.
#include "kernel/proc.h"
#include "linux/signal.h"

namespace upcall::linux_abi::signals {

namespace {

bool begins(const char* text, const char* with) noexcept {
  while (*with && *text == *with) ++text, ++with;
  return !*with;
}

// proc_pid_fdinfo(5): a line "sigmask:", sixteen digits.
uint64_t mask_in(const char* text) noexcept {
  for (; *text; ++text) {
    if (!begins(text, "sigmask:")) continue;
    text += sizeof "sigmask:" - 1;
    while (*text == ' ' || *text == '\t') ++text;
    uint64_t mask = 0;
    for (;; ++text) {
      char c = *text;
      unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                       : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                                              : 16;
      if (digit > 15) return mask;
      mask = mask << 4 | digit;
    }
  }
  return 0;
}

uint64_t mask_of(long directory, const char* name) noexcept {
  char link[32] = {};
  long n = kernel::sys(__NR_readlinkat, directory, name, static_cast<char*>(link), sizeof link - 1);
  if (kernel::is_error(n) || !begins(link, "anon_inode:[signalfd]")) return 0;
  char text[512];
  return kernel::read_text(kernel::Path("/proc/self/fdinfo/", name), text, sizeof text) ? mask_in(text) : 0;
}

}  // namespace

uint64_t read_by_signalfds() noexcept {
  uint64_t all = 0;
  kernel::each_entry("/proc/self/fd",
                     [&](long directory, const char* name) { all |= mask_of(directory, name); });
  return all;
}

}  // namespace upcall::linux_abi::signals

#include "linux/patch/maps.h"

namespace upcall::patch {
namespace {

constexpr int kAtFdcwd = -100;
constexpr int kReadOnlyCloexec = 02000000;
constexpr uintptr_t kReach = 0x7f000000;  // of a signed 32-bit displacement, with a margin
constexpr uintptr_t kLowest = 0x10000;    // vm.mmap_min_addr
constexpr uintptr_t kHighest = 0x7ffffffff000;

uint64_t number(const char*& p, unsigned base) {
  uint64_t v = 0;
  for (;; ++p) {
    unsigned d = *p >= '0' && *p <= '9'   ? static_cast<unsigned>(*p - '0')
                 : *p >= 'a' && *p <= 'f' ? static_cast<unsigned>(*p - 'a' + 10)
                                          : 99;
    if (d >= base) return v;
    v = v * base + d;
  }
}

// One mapping to the program; the kernel keeps parts of it apart, as some have been writable.
bool continues(const Mapping& m, const Mapping& next) {
  return m.inode && m.inode == next.inode && m.device == next.device && m.prot == next.prot &&
         m.end == next.start && m.offset + (m.end - m.start) == next.offset;
}

}  // namespace

bool Maps::read() {
  text_.clear();
  mappings_.clear();
  long fd = kernel::sys(__NR_openat, kAtFdcwd, "/proc/self/maps", kReadOnlyCloexec, 0);
  if (kernel::is_error(fd)) return false;
  text_.reserve(1 << 15);
  for (;;) {
    size_t have = text_.size();
    text_.reserve(have + kPage);
    long n = kernel::sys(__NR_read, fd, text_.begin() + have, kPage);
    if (n <= 0) break;
    text_.resize(have + static_cast<size_t>(n));
  }
  kernel::sys(__NR_close, fd);
  text_.push('\0');
  parse();
  return !mappings_.empty();
}

void Maps::parse() {
  char* p = text_.begin();
  while (*p) {
    Mapping m{};
    const char* q = p;
    m.start = number(q, 16);
    ++q;
    m.end = number(q, 16);
    ++q;
    m.prot = static_cast<uint8_t>((q[0] == 'r' ? kRead : 0) | (q[1] == 'w' ? kWrite : 0) |
                                  (q[2] == 'x' ? kExec : 0));
    q += 5;
    m.offset = number(q, 16);
    ++q;
    m.device = number(q, 16) << 32;
    ++q;
    m.device |= number(q, 16);
    ++q;
    m.inode = number(q, 10);
    while (*q == ' ') ++q;
    m.path = static_cast<uint32_t>(q - text_.begin());
    p = text_.begin() + m.path;
    while (*p && *p != '\n') ++p;
    if (*p) *p++ = '\0';
    if (!mappings_.size() || !continues(mappings_.back(), m))
      mappings_.push(m);
    else
      mappings_.back().end = m.end;
  }
}

void Maps::release() {
  text_.release();
  mappings_.release();
}

const Mapping* Maps::find(uintptr_t address) const {
  for (const Mapping& m : mappings_)
    if (m.start <= address && address < m.end) return &m;
  return nullptr;
}

uintptr_t Maps::room_near(uintptr_t lo, uintptr_t hi, size_t bytes, unsigned attempt) const {
  uintptr_t lowest = hi > kReach + kLowest ? hi - kReach : kLowest;
  uintptr_t highest = lo + kReach < kHighest ? lo + kReach : kHighest;
  size_t n = mappings_.size();
  // Gap i lies before mapping i. Downwards first, its upper end taken; then upwards, the middle: a heap grows up from the
  // lower end, a stack down from the upper one. What has been mapped since the maps were read is not known, and the kernel
  // likes the same places: with all gaps tried they are tried again, further inside.
  constexpr uintptr_t step = 1 << 20;
  bool room = true;
  for (uintptr_t inside = 0; room; inside = inside ? 2 * inside : step) {
    room = false;
    for (size_t i = n; i-- > 0;) {
      uintptr_t top = mappings_[i].start, bottom = i ? mappings_[i - 1].end : kLowest;
      if (top > lo) continue;
      if (bottom < lowest) bottom = page_up(lowest);
      if (top < bottom || top - bottom < bytes + inside) continue;
      if (attempt-- == 0) return top - bytes - inside;
      room = true;
    }
    for (size_t i = 0; i < n; ++i) {
      uintptr_t bottom = mappings_[i].end, top = i + 1 < n ? mappings_[i + 1].start : kHighest;
      if (bottom < hi) continue;
      if (top > highest) top = page_down(highest);
      if (top < bottom || top - bottom < bytes + 2 * inside) continue;
      if (attempt-- == 0) return page_down(bottom + (top - bottom - bytes) / 2) + inside;
      room = true;
    }
  }
  return 0;
}

}  // namespace upcall::patch

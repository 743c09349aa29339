// Why this needs no decode: only the five bytes of one instruction change, which stands right before a `syscall`. A jump
// to either of the two from anywhere finds an instruction of the same effect. That the bytes are these two instructions
// is known for functions with these names in libc, and looked up byte by byte.
#include "linux/patch/early.h"

#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/syscall.h"

extern "C" {
struct UpcallEarlySite {
  uint8_t* at;    // the instruction
  uint8_t* next;  // the syscall behind it
};
__attribute__((visibility("hidden"))) UpcallEarlySite upcall_early_sites[3];
__attribute__((visibility("hidden"))) void upcall_early_0();
__attribute__((visibility("hidden"))) void upcall_early_plain_0();
__attribute__((visibility("hidden"))) void upcall_early_1();
__attribute__((visibility("hidden"))) void upcall_early_plain_1();
__attribute__((visibility("hidden"))) void upcall_early_2();
__attribute__((visibility("hidden"))) void upcall_early_plain_2();
}

namespace upcall::patch {

namespace {

constexpr size_t length = 5;
struct Bytes {
  uint8_t code[length + 2];
};
constexpr Bytes patterns[3] = {{{0xb8, 56, 0, 0, 0, 0x0f, 0x05}},
                               {{0xb8, 0xb3, 1, 0, 0, 0x0f, 0x05}},
                               {{0x4c, 0x8b, 0x4c, 0x24, 8, 0x0f, 0x05}}};  // mov 8(%rsp), %r9

struct Text {
  const uint8_t *lo, *hi;
  bool found;
};

// The executable segment that `clone` lies in.
int look_at(dl_phdr_info* info, size_t, void* out) {
  auto* text = static_cast<Text*>(out);
  auto wanted = reinterpret_cast<uintptr_t>(&clone);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& h = info->dlpi_phdr[i];
    uintptr_t lo = info->dlpi_addr + h.p_vaddr;
    if (h.p_type != PT_LOAD || !(h.p_flags & PF_X) || wanted < lo || wanted >= lo + h.p_filesz) continue;
    *text = {reinterpret_cast<const uint8_t*>(lo), reinterpret_cast<const uint8_t*>(lo + h.p_filesz), true};
    return 1;
  }
  return 0;
}

uint8_t* find(const Text& text, const uint8_t* from, const uint8_t* to, const Bytes& pattern) noexcept {
  if (from < text.lo) from = text.lo;
  if (to > text.hi) to = text.hi;
  for (; from + sizeof pattern <= to; ++from)
    if (*from == pattern.code[0] && !__builtin_memcmp(from, pattern.code, sizeof pattern))
      return const_cast<uint8_t*>(from);
  return nullptr;
}

void write_five(uint8_t* at, const uint8_t* code) noexcept {
  for (size_t i = 0; i < length; ++i) at[i] = code[i];
}

Text g_text;

// The pages from the first to the last of the sites.
bool protect(int protection) noexcept {
  constexpr uintptr_t page = 4096;
  uintptr_t lo = ~0ul, hi = 0;
  for (const UpcallEarlySite& site : upcall_early_sites) {
    if (!site.next) continue;
    auto end = reinterpret_cast<uintptr_t>(site.next), at = end - length;
    if (at < lo) lo = at;
    if (end > hi) hi = end;
  }
  lo &= ~(page - 1);
  hi = (hi + page - 1) & ~(page - 1);
  return !kernel::is_error(kernel::sys(__NR_mprotect, lo, hi - lo, protection));
}
bool open_text() noexcept { return protect(PROT_READ | PROT_WRITE | PROT_EXEC); }
bool close_text() noexcept { return protect(PROT_READ | PROT_EXEC); }

// The jump from a site's instruction to `to`; false: too far.
bool jump(const UpcallEarlySite& site, void (*to)(), uint8_t code[length]) noexcept {
  int64_t distance = reinterpret_cast<intptr_t>(to) - reinterpret_cast<intptr_t>(site.next);
  auto d = static_cast<int32_t>(distance);
  code[0] = 0xe9;
  __builtin_memcpy(code + 1, &d, sizeof d);
  return d == distance;
}

constexpr void (*entries[3])() = {upcall_early_0, upcall_early_1, upcall_early_2};

bool find_sites() noexcept {
  dl_iterate_phdr(look_at, &g_text);
  if (!g_text.found) return false;
  constexpr size_t body = 96, around = 16384;
  auto* by_clone = reinterpret_cast<const uint8_t*>(&clone);
  auto* by_syscall = reinterpret_cast<const uint8_t*>(&syscall);
  // clone3 has no public name. It stands beside clone where it exists (glibc 2.34 and later).
  uint8_t* found[3] = {find(g_text, by_clone, by_clone + body, patterns[0]),
                       find(g_text, by_clone, by_clone + around, patterns[1]),
                       find(g_text, by_syscall, by_syscall + body, patterns[2])};
  if (!found[0] || !found[2]) return false;
  if (!found[1]) found[1] = find(g_text, by_clone - around, by_clone, patterns[1]);
  if (!found[1]) found[1] = find(g_text, g_text.lo, g_text.hi, patterns[1]);
  for (int i = 0; i < 3; ++i)
    if (found[i]) upcall_early_sites[i] = {found[i], found[i] + length};
  return true;
}

}  // namespace

bool arm_early() noexcept {
  if (!find_sites()) return false;
  uint8_t code[3][length];
  for (int i = 0; i < 3; ++i)
    if (upcall_early_sites[i].at && !jump(upcall_early_sites[i], entries[i], code[i])) return false;
  if (!open_text()) return false;
  for (int i = 0; i < 3; ++i)
    if (upcall_early_sites[i].at) write_five(upcall_early_sites[i].at, code[i]);
  CHECK(close_text());
  return true;
}

void disarm_early() noexcept {
  if (!open_text()) {  // forbidden since: the sites stay as they are, and lead on to what they have replaced
    constexpr void (*plain[3])() = {upcall_early_plain_0, upcall_early_plain_1, upcall_early_plain_2};
    for (int i = 0; i < 3; ++i)
      if (upcall_early_sites[i].at) upcall_early_sites[i].at = reinterpret_cast<uint8_t*>(plain[i]);
    return;
  }
  for (int i = 0; i < 3; ++i)
    if (upcall_early_sites[i].at) write_five(upcall_early_sites[i].at, patterns[i].code);
  CHECK(close_text());
}

bool early_sites_redirected() noexcept {
  for (int i = 0; i < 2; ++i) {
    const auto& [at, next] = upcall_early_sites[i];
    if (!at) continue;
    if (at + length != next || !__builtin_memcmp(at, patterns[i].code, sizeof patterns[i])) return false;
  }
  return true;
}

}  // namespace upcall::patch

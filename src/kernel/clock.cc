#include "kernel/clock.h"

#include <elf.h>

#include "base/syscall.h"

namespace upcall::kernel {
namespace {

using ClockFunction = int (*)(int, timespec*);
ClockFunction g_vdso_clock = nullptr;

bool same(const char* a, const char* b) {
  for (; *a && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

}  // namespace

void init_clock(const void* vdso_base) noexcept {
  if (!vdso_base) return;
  auto base = reinterpret_cast<uintptr_t>(vdso_base);
  auto* header = static_cast<const Elf64_Ehdr*>(vdso_base);
  auto* segments = reinterpret_cast<const Elf64_Phdr*>(base + header->e_phoff);
  const Elf64_Dyn* dynamic = nullptr;
  uintptr_t bias = 0;
  bool have_bias = false;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && !have_bias) {
      bias = base + segments[i].p_offset - segments[i].p_vaddr;
      have_bias = true;
    }
    if (segments[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const Elf64_Dyn*>(base + segments[i].p_offset);
  }
  if (!dynamic || !have_bias) return;
  const char* strings = nullptr;
  const Elf64_Sym* symbols = nullptr;
  const uint32_t* hash = nullptr;
  const uint32_t* gnu_hash = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    uintptr_t p = bias + dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(p);
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(p);
    if (dynamic->d_tag == DT_HASH) hash = reinterpret_cast<const uint32_t*>(p);
    if (dynamic->d_tag == DT_GNU_HASH) gnu_hash = reinterpret_cast<const uint32_t*>(p);
  }
  if (!strings || !symbols) return;
  uint32_t count = 0;
  if (hash) {
    count = hash[1];
  } else if (gnu_hash) {  // the last chain's end gives the number of symbols
    const uint32_t* buckets = gnu_hash + 4 + gnu_hash[2] * 2;
    const uint32_t* chains = buckets + gnu_hash[0];
    uint32_t last = 0;
    for (uint32_t i = 0; i < gnu_hash[0]; ++i)
      if (buckets[i] > last) last = buckets[i];
    while (last >= gnu_hash[1] && !(chains[last - gnu_hash[1]] & 1)) ++last;
    count = last + 1;
  }
  for (uint32_t i = 0; i < count; ++i)
    if (symbols[i].st_shndx && same(strings + symbols[i].st_name, "__vdso_clock_gettime"))
      g_vdso_clock = reinterpret_cast<ClockFunction>(bias + symbols[i].st_value);
}

long read_clock(int clock, timespec* ts) noexcept {
  if (g_vdso_clock) return g_vdso_clock(clock, ts);
  return sys(__NR_clock_gettime, clock, ts);
}

uint64_t now() noexcept {
  timespec ts;
  read_clock(CLOCK_MONOTONIC, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * 1000000000u + static_cast<uint64_t>(ts.tv_nsec);
}

}  // namespace upcall::kernel

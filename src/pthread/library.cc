// Where the C library lies: its own set*id calls are made for all threads (linux/credentials.cc).
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "pthread/hull.h"

namespace upcall::pthread_abi {

namespace {

using linux_abi::CodeRange;

struct Search {
  uintptr_t inside;
  CodeRange found = {};
};

int look_at(dl_phdr_info* info, size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  CodeRange object = {~0ul, 0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& ph = info->dlpi_phdr[i];
    if (ph.p_type != PT_LOAD) continue;
    uintptr_t at = info->dlpi_addr + ph.p_vaddr;
    if (at < object.begin) object.begin = at;
    if (at + ph.p_memsz > object.end) object.end = at + ph.p_memsz;
  }
  if (!object.holds(search.inside)) return 0;
  search.found = object;
  return 1;
}

CodeRange object_with(void* code) {
  Search search{.inside = reinterpret_cast<uintptr_t>(code)};
  dl_iterate_phdr(look_at, &search);
  return search.found;
}

}  // namespace

void find_library() {
  // Its own functions, by the version: a sanitizer's may stand before them. Not by dlopen, which would initialise the library
  // before the loader does, without the environment.
  void* plain = dlvsym(RTLD_NEXT, "syscall", "GLIBC_2.2.5");
  void* create = dlvsym(RTLD_NEXT, "pthread_create", "GLIBC_2.2.5");
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (!plain || !create ||
      !dladdr1(plain, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) ||
      !symbol)
    return;
  auto begin = reinterpret_cast<uintptr_t>(plain);
  linux_abi::know_library(object_with(plain), object_with(create), {begin, begin + symbol->st_size});
}

}  // namespace upcall::pthread_abi

// What a new thread must not see of the one before it. TLS of every object but glibc's own is laid out anew from its
// image; of glibc's, what a program can see: errno, h_errno, dlerror, cancellation, locale, resolver. Anything
// else that a thread leaves behind (values of keys, objects with destructors, robust mutexes it holds) makes it exit
// through glibc.
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <netdb.h>
#include <string.h>

#include "pthread/hull.h"

extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));  // NOLINT: the linker's
}

namespace upcall::pthread_abi {

atomic<uint32_t> g_locales{0};

namespace {

struct Image {
  const void* from;
  int64_t offset;  // from the thread pointer
  size_t filled, size;
};

constexpr uint32_t max_images = 32;
Image g_images[max_images];
uint32_t g_image_count = 0;
uint32_t g_modules = 0;  // TLS modules at start, whose TLS is static
bool g_understood = false;
pthread_attr_t g_default;
char* (*g_dlerror)() = nullptr;

// relaxed: hints; a thread that has just called dlopen sees its own.
atomic<uint32_t> g_seen{0};  // value of g_objects_mapped at the last look
atomic<bool> g_all_static{false};

// Between the mapping of an object and its entry in the loader's list others may look: as many objects must have been
// entered as have been mapped since both were last known to agree. Programs may also map code themselves; what is not in
// the list after a while is taken for that.
constexpr uint64_t a_while_cycles = 2'000'000'000;
atomic<uint64_t> g_entered{0}, g_entered_mapped{0};           // when they agreed
atomic<uint64_t> g_waiting_mapped{~0ul}, g_waiting_since{0};  // they do not, since

struct Look {
  const void* in_libc = nullptr;
  uint32_t objects = 0, modules = 0;
  unsigned long long loaded = 0, entered = 0;
  bool first;
  bool fits = true;
};

bool contains(const dl_phdr_info* info, uint64_t address) noexcept {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& ph = info->dlpi_phdr[i];
    if (ph.p_type == PT_LOAD && address - (info->dlpi_addr + ph.p_vaddr) < ph.p_memsz) return true;
  }
  return false;
}

int look_at(dl_phdr_info* info, size_t, void* argument) {
  auto& look = *static_cast<Look*>(argument);
  ++look.objects;
  look.loaded = info->dlpi_adds - info->dlpi_subs;
  look.entered = info->dlpi_adds;
  if (!info->dlpi_tls_modid) return 0;
  ++look.modules;
  if (!look.first) return 0;
  bool own = contains(info, reinterpret_cast<uint64_t>(__ehdr_start));
  bool libc = contains(info, reinterpret_cast<uint64_t>(look.in_libc));
  if (own || libc) return 0;
  if (!info->dlpi_tls_data || g_image_count == max_images) {
    look.fits = false;
    return 0;
  }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& ph = info->dlpi_phdr[i];
    if (ph.p_type != PT_TLS) continue;
    auto offset = reinterpret_cast<int64_t>(info->dlpi_tls_data) - static_cast<int64_t>(arch::read_fs());
    g_images[g_image_count++] = {reinterpret_cast<const void*>(info->dlpi_addr + ph.p_vaddr), offset,
                                 ph.p_filesz, ph.p_memsz};
  }
  return 0;
}

// Objects have been mapped since the last look: has one of them TLS of its own, or is one where we do not look
// (another namespace)?
void look_again(uint32_t mapped) {
  Look look{.first = false};
  dl_iterate_phdr(look_at, &look);
  if (look.entered - g_entered.load(relaxed) != mapped - g_entered_mapped.load(relaxed)) {
    uint64_t now = arch::tsc();
    if (g_waiting_mapped.load(relaxed) != mapped) {
      g_waiting_since.store(now, relaxed);
      g_waiting_mapped.store(mapped, relaxed);
    }
    if (now - g_waiting_since.load(relaxed) < a_while_cycles) {
      g_all_static.store(false, relaxed);
      return;
    }
  }
  g_entered.store(look.entered, relaxed);
  g_entered_mapped.store(mapped, relaxed);
  g_all_static.store(g_understood && look.modules == g_modules && look.objects == look.loaded, relaxed);
  g_seen.store(mapped, relaxed);
}

bool robust_list_is_empty(const Thread* t) noexcept {
  const auto* head = static_cast<const uint64_t*>(t->robust_list);
  return !head || (head[0] == reinterpret_cast<uint64_t>(head) && !head[2]);
}

// The mark lies up to two pages below a thread's first frames.
bool stacks_are_large_enough() {
  pthread_attr_t usual;
  size_t size = 0;
  if (pthread_getattr_default_np(&usual)) return false;
  pthread_attr_getstacksize(&usual, &size);
  pthread_attr_destroy(&usual);
  size_t tls = 0;
  for (uint32_t i = 0; i < g_image_count; ++i) tls += g_images[i].size;
  return size >= tls + 128 * 1024;
}

}  // namespace

void find_tls_images() {
  // Not a function that glibc's other libraries had, too, before 2.34.
  Look look{.in_libc = dlsym(RTLD_NEXT, "gnu_get_libc_version"), .first = true};
  uint32_t mapped = linux_abi::g_objects_mapped.load(relaxed);
  dl_iterate_phdr(look_at, &look);
  g_modules = look.modules;
  g_entered.store(look.entered, relaxed);
  g_entered_mapped.store(mapped, relaxed);
  g_dlerror = reinterpret_cast<char* (*)()>(dlsym(RTLD_NEXT, "dlerror"));
  if (g_dlerror) g_dlerror();  // of what was not found
  pthread_attr_init(&g_default);
  g_understood = look.fits && g_dlerror && stacks_are_large_enough();
  g_all_static.store(g_understood && look.objects == look.loaded, relaxed);
  g_seen.store(mapped, relaxed);
}

void forbid_reuse() noexcept {
  g_understood = false;
  g_all_static.store(false, relaxed);
}

bool can_refresh() {
  uint32_t mapped = linux_abi::g_objects_mapped.load(relaxed);
  if (__builtin_expect(g_seen.load(relaxed) != mapped, 0)) look_again(mapped);
  return g_all_static.load(relaxed);
}

bool is_default(const pthread_attr_t* attributes) noexcept {
  return !attributes || !__builtin_memcmp(attributes, &g_default, sizeof g_default);
}

bool leaves_no_trace(const Hull& h) {
  const Thread* t = h.thread.load(relaxed);
  if (h.marks || (h.word.load(relaxed) & word_keep_out) || h.locales != g_locales.load(relaxed)) return false;
  if (linux_abi::g_objects_mapped.load(relaxed) != g_seen.load(relaxed) || !g_all_static.load(relaxed))
    return false;
  if (!robust_list_is_empty(t)) return false;
  int before;
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
  return true;
}

void make_fresh() {
  for (uint32_t i = 0; i < g_image_count; ++i) {
    const Image& image = g_images[i];
    auto* to = reinterpret_cast<char*>(arch::read_fs()) + image.offset;
    __builtin_memcpy(to, image.from, image.filled);
    __builtin_memset(to + image.filled, 0, image.size - image.filled);
  }
  errno = 0;
  h_errno = 0;
  g_dlerror();
}

}  // namespace upcall::pthread_abi

// The functions that ours stand before, looked up once at load; and those that are interposed only to notice that
// the calling thread cannot be made fresh.
#include <dlfcn.h>
#include <locale.h>
#include <threads.h>

#include "pthread/hull.h"
#include "pthread/real.h"

namespace upcall::pthread_abi {

Real g_real;

namespace {

struct Noticed {
  int (*setspecific)(pthread_key_t, const void*);
  int (*tss_set)(tss_t, void*);
  int (*thread_atexit)(void (*)(void*), void*, void*);
  locale_t (*uselocale)(locale_t);
  char* (*setlocale)(int, const char*);
  void* (*res_state)();
  int (*setattr_default)(const pthread_attr_t*);
  void (*exit)(int);
} g_noticed;

bool g_ready = false;

}  // namespace

// Under its other name, until ours has been found: before 2.34 dlsym allocates, and a malloc that is not glibc's may keep
// something of each thread's.
// NOLINTNEXTLINE: glibc's name
extern "C" int __pthread_setspecific(pthread_key_t, const void*) __attribute__((weak));

namespace {

template <typename F>
bool find(F** to, const char* name) noexcept {
  *to = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
  return *to != nullptr;
}

}  // namespace

void find_all() noexcept {
  if (g_ready) return;
  g_ready = true;
  Real& r = g_real;
  Noticed& n = g_noticed;
  n.setspecific = __pthread_setspecific;
  find(&n.setspecific, "pthread_setspecific");
  find(&n.tss_set, "tss_set");
  find(&n.thread_atexit, "__cxa_thread_atexit_impl");
  find(&n.uselocale, "uselocale");
  find(&n.setlocale, "setlocale");
  find(&n.res_state, "__res_state");
  find(&n.setattr_default, "pthread_setattr_default_np");
  find(&n.exit, "_exit");
  find(&r.create, "pthread_create");
  find(&r.join, "pthread_join");
  find(&r.tryjoin, "pthread_tryjoin_np");
  find(&r.timedjoin, "pthread_timedjoin_np");
  find(&r.clockjoin, "pthread_clockjoin_np");
  find(&r.detach, "pthread_detach");
  find(&r.cancel, "pthread_cancel");
  find(&r.kill, "pthread_kill");
  find(&r.thrd_join, "thrd_join");
}

namespace {

// Programs' and libraries' early code may come before prepare().
Noticed& noticed() noexcept {
  if (__builtin_expect(!g_ready, 0)) find_all();
  return g_noticed;
}

void set_up() {
  find_all();
  find_library();
  pthread::find_real();
}

// Before load() in runtime/start.cc, which lets functions answer.
__attribute__((constructor(101))) void prepare() {
  if (linux_abi::g_set_up) return;
  find_all();
  find_tls_images();
  install_hooks();
  linux_abi::g_set_up = set_up;
}

}  // namespace

}  // namespace upcall::pthread_abi

void upcall::pthread::first_thread() {
  pthread_abi::prepare();
  linux_abi::upcall_first_thread();
}

using namespace upcall::pthread_abi;  // NOLINT: what follows are glibc's names

// NOLINTBEGIN: glibc's names
extern "C" {

INTERPOSED(int, pthread_setspecific, (pthread_key_t key, const void* value)) {
  if (value) own_hull()->marks |= mark_destructors;
  return noticed().setspecific(key, value);
}

INTERPOSED(int, tss_set, (tss_t key, void* value)) {
  if (value) own_hull()->marks |= mark_destructors;
  return noticed().tss_set(key, value);
}

INTERPOSED(int, __cxa_thread_atexit_impl, (void (*destructor)(void*), void* object, void* dso)) {
  own_hull()->marks |= mark_destructors;
  return noticed().thread_atexit(destructor, object, dso);
}

INTERPOSED(locale_t, uselocale, (locale_t locale)) {
  if (locale == LC_GLOBAL_LOCALE)
    own_hull()->marks &= ~mark_locale;
  else if (locale)
    own_hull()->marks |= mark_locale;
  return noticed().uselocale(locale);
}

INTERPOSED(locale_t, __uselocale, (locale_t locale)) { return upcall_uselocale(locale); }

// A thread's pointers to character classes are set when it is made.
INTERPOSED(char*, setlocale, (int category, const char* locale)) {
  char* r = noticed().setlocale(category, locale);
  if (locale) g_locales.fetch_add(1, upcall::relaxed);
  return r;
}

INTERPOSED(void*, __res_state, ()) {
  own_hull()->marks |= mark_resolver;
  return noticed().res_state();
}

INTERPOSED(int, pthread_setattr_default_np, (const pthread_attr_t* attributes)) {
  int r = noticed().setattr_default(attributes);
  if (r == 0) forbid_reuse();
  return r;
}

INTERPOSED(void, _exit, (int status)) {
  upcall::linux_abi::leaves_early();
  noticed().exit(status);
  __builtin_unreachable();
}

INTERPOSED(void, _Exit, (int status)) { upcall__exit(status); }

}  // extern "C"
// NOLINTEND

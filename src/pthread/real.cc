#include "pthread/real.h"

#include <dlfcn.h>
#include <time.h>

#include "base/check.h"

namespace upcall::pthread {

constinit Real g_real = {};

namespace {

// The next definition, which may be a sanitizer's (dlvsym would pass over objects without that version).
template <typename F>
void find(F** to, const char* name) noexcept {
  void* f = dlsym(RTLD_NEXT, name);
  if (!f) fatal_exit(126, "this C library lacks a pthread function");
  *to = reinterpret_cast<F*>(f);
}

// Of several versions the default one. Condition variables have another form in the first; older C libraries (2.31) give
// that to those who ask for no version.
template <typename F>
void find_newest(F** to, const char* name) noexcept {
  F* f;
  find(&f, name);
  void* newer = nullptr;
  if (dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5") == reinterpret_cast<void*>(f))
    newer = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  *to = newer ? reinterpret_cast<F*>(newer) : f;  // at once: others may look
}

// Where is it kept that a condition is shared, and on which clock? Both at once are no other word's value.
void find_cond_flags(Real* r) noexcept {
  constexpr uint32_t shared_monotonic = 3;
  constexpr uint32_t words = sizeof(pthread_cond_t) / sizeof(uint32_t);
  pthread_condattr_t kind;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  pthread_condattr_init(&kind);
  pthread_condattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
  r->cond_init(&cond, &kind);
  const auto* word = reinterpret_cast<const uint32_t*>(&cond);
  uint32_t i = 0;
  while (i < words && word[i] != shared_monotonic) ++i;
  if (i == words) fatal_exit(126, "this C library has condition variables of an unknown form");
  r->cond_flags_word = i;
}

// The others when one of them is needed, at the latest for the first thread: most programs call none. This one also from
// signal handlers.
__attribute__((constructor)) void load() noexcept { find(&g_real.sem_post, "sem_post"); }

}  // namespace

void find_real() noexcept {
  Real& r = g_real;
  find_newest(&r.cond_init, "pthread_cond_init");
  find_newest(&r.cond_destroy, "pthread_cond_destroy");
  find_newest(&r.cond_wait, "pthread_cond_wait");
  find_newest(&r.cond_timedwait, "pthread_cond_timedwait");
  find(&r.cond_clockwait, "pthread_cond_clockwait");
  find_newest(&r.cond_signal, "pthread_cond_signal");
  find_newest(&r.cond_broadcast, "pthread_cond_broadcast");
  find(&r.sem_wait, "sem_wait");
  find(&r.sem_timedwait, "sem_timedwait");
  find(&r.sem_clockwait, "sem_clockwait");
  find(&r.sem_trywait, "sem_trywait");
  find(&r.sem_post, "sem_post");
  find(&r.spin_lock, "pthread_spin_lock");
  find(&r.spin_trylock, "pthread_spin_trylock");
  pthread_spinlock_t free;
  r.spin_free_is_one = pthread_spin_init(&free, PTHREAD_PROCESS_PRIVATE) == 0 && free == 1;
  find(&r.setcanceltype, "pthread_setcanceltype");
  find(&r.cleanup_push, "_pthread_cleanup_push");
  find(&r.cleanup_pop, "_pthread_cleanup_pop");
  find_cond_flags(&r);
  find(&r.cancel, "pthread_cancel");  // last: see real()
}

}  // namespace upcall::pthread

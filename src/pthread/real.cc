#include "pthread/real.h"

#include <dlfcn.h>

#include "base/check.h"

namespace upcall::pthread {

Real g_real;

namespace {

// The next definition, which may be a sanitizer's; of several versions in libc the default one (dlvsym would pass
// over objects without that version).
template <typename F>
void find(F** to, const char* name) noexcept {
  void* f = dlsym(RTLD_NEXT, name);
  if (!f) fatal_exit(126, "this C library lacks a pthread function");
  *to = reinterpret_cast<F*>(f);
}

__attribute__((constructor)) void load() noexcept { find_real(); }

}  // namespace

void find_real() noexcept {
  Real& r = g_real;
  find(&r.cond_init, "pthread_cond_init");
  find(&r.cond_destroy, "pthread_cond_destroy");
  find(&r.cond_wait, "pthread_cond_wait");
  find(&r.cond_timedwait, "pthread_cond_timedwait");
  find(&r.cond_clockwait, "pthread_cond_clockwait");
  find(&r.cond_signal, "pthread_cond_signal");
  find(&r.cond_broadcast, "pthread_cond_broadcast");
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
  find(&r.cancel, "pthread_cancel");
}

}  // namespace upcall::pthread

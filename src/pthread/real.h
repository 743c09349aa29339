// glibc's own functions behind those that are interposed here: for process-shared objects, for UPCALL_SYMBOLS=off, and
// where the program runs on kernel threads.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <cstdint>

namespace upcall::pthread {

struct Real {
  int (*cond_init)(pthread_cond_t*, const pthread_condattr_t*) noexcept;
  int (*cond_destroy)(pthread_cond_t*) noexcept;
  int (*cond_wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*cond_timedwait)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  int (*cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  int (*cond_signal)(pthread_cond_t*) noexcept;
  int (*cond_broadcast)(pthread_cond_t*) noexcept;
  uint32_t cond_flags_word;  // of a pthread_cond_t; found out at load, as it is another one from 2.41 on
  int (*sem_wait)(sem_t*);
  int (*sem_timedwait)(sem_t*, const timespec*);
  int (*sem_clockwait)(sem_t*, clockid_t, const timespec*);
  int (*sem_trywait)(sem_t*) noexcept;
  int (*sem_post)(sem_t*) noexcept;
  int (*spin_lock)(pthread_spinlock_t*) noexcept;
  int (*spin_trylock)(pthread_spinlock_t*) noexcept;
  bool spin_free_is_one;  // as glibc has it on x86-64
  int (*setcanceltype)(int, int*);
  int (*cancel)(pthread_t);
  // For functions compiled without exceptions: a list in glibc's record of the thread, no stack frame to be found.
  void (*cleanup_push)(_pthread_cleanup_buffer*, void (*)(void*), void*);
  void (*cleanup_pop)(_pthread_cleanup_buffer*, int);
};

extern Real g_real;
void find_real() noexcept;
// Found when one is needed; before the first thread.
inline const Real& real() noexcept {
  if (__builtin_expect(!g_real.cancel, 0)) find_real();
  return g_real;
}

// Sets the runtime up, if it is not. Before glibc 2.34 constructors of other libraries may make threads before ours have run.
void first_thread();

// The definition of an interposed function: what programs, and libraries, find first.
#define UPCALL_EXPORT extern "C" __attribute__((visibility("default")))

}  // namespace upcall::pthread

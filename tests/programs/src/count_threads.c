// Preloaded into plain runs only: counts the threads that a program makes and leaves the number in
// $COUNT_THREADS_FILE.PID at exit. What Upcall's own statistics are held against.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long made;

static void restart_in_child(void) { atomic_store(&made, 0); }

__attribute__((constructor)) static void start(void) { pthread_atfork(NULL, NULL, restart_in_child); }

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  static _Atomic(void*) real;
  void* next = atomic_load(&real);
  if (next == NULL) atomic_store(&real, next = dlsym(RTLD_NEXT, "pthread_create"));
  int error = ((int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))next)(thread, attributes,
                                                                                          body, argument);
  if (error == 0) atomic_fetch_add(&made, 1);
  return error;
}

__attribute__((destructor)) static void report(void) {
  const char* base = getenv("COUNT_THREADS_FILE");
  char name[4096];
  if (base == NULL || snprintf(name, sizeof name, "%s.%d", base, (int)getpid()) >= (int)sizeof name) return;
  FILE* file = fopen(name, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", atomic_load(&made));
  fclose(file);
}

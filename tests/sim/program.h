// The simulated program: its threads, and the C library's part of them.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "machine.h"

namespace upcall::sim {

// A thread as its library knows it. `fs` points to a block with the record of src/pthread, itself, its id, and this.
struct User {
  int index;
  uint64_t fs;
  void* sp;          // its stack, while it does not run
  KernelThread* on;  // the kernel thread that runs its code
  bool entered;      // the runtime, at least once: until then its registers are nobody's
  bool ended;
  long result;  // of its call
  uint64_t vectors, saved_vectors;
  void* (*start)(void*);
  void* argument;
  void* returned;
  atomic<uint32_t>* tid;  // cleared at its end
  const char* doing;
};

inline constexpr int max_users = 64;
extern User g_users[max_users];
extern int g_user_count;

inline User* user_of(const Thread* t) noexcept { return *reinterpret_cast<User**>(t->fs + 32); }
// The calling one.
inline User* me() noexcept { return g.current->user; }

// --- libc.cc
User* new_user(void* (*start)(void*), void* argument) noexcept;
void install_library() noexcept;
int real_join(pthread_t p, void** result);
long call(long nr, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept;
uint64_t monotonic() noexcept;

// --- program.cc
// How long the program's doings take, and which it prefers: drawn for each schedule.
void prepare_program() noexcept;
// -1: there is none of that name.
int doing_named(const char* name) noexcept;
void* program_main(void*);

}  // namespace upcall::sim

extern "C" {
int sim_mutex_lock(pthread_mutex_t* m);
int sim_mutex_unlock(pthread_mutex_t* m);
int sim_mutex_clocklock(pthread_mutex_t* m, uint64_t deadline);
}

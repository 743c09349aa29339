// A hull: a real glibc thread whose function has returned and which waits to run another one. Its struct pthread,
// stack and TLS stay as they are; what a program could see of the former thread is made fresh (fresh.cc), and a
// thread that cannot be made fresh exits through glibc as ever.
//
// The record lies in the thread's TLS, at the same distance from every thread pointer. A pthread_t is the thread
// pointer (the x86-64 ABI of glibc), so the record of any thread is one addition away, and zero in threads that
// have none.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "arch/x86_64/cpu.h"
#include "linux/linux.h"

namespace upcall::pthread_abi {

using activation::Activation;
using sched::Thread;

// Hull::word: what joiners, cancellers and the thread itself agree on. Above the low six bits: the joiner that
// waits natively (descriptors are aligned to 64 bytes).
//   none      not ours: glibc's functions are right
//   running   the program's thread runs. -> finished, exiting
//   finished  its function has returned, it waits to be joined. -> spare, exiting
//   spare     joined, in a list of spares. -> running, exiting
//   exiting   the thread leaves through glibc: glibc's functions are right
enum class Phase : uint64_t { none = 0, running = 1, finished = 2, spare = 3, exiting = 4 };
inline constexpr uint64_t word_phase = 7;
inline constexpr uint64_t word_keep_out = 8;  // while running: to exit through glibc (cancelled, detached)
inline constexpr uint64_t word_flags = 63;

// Why the thread itself is not to be reused, Hull::marks.
inline constexpr uint32_t mark_destructors = 1;  // has values or objects that glibc destroys at its exit
inline constexpr uint32_t mark_locale = 2;       // uselocale has set one
inline constexpr uint32_t mark_resolver = 4;     // has taken the address of its resolver state

using Start = void* (*)(void*);

struct Hull {
  atomic<uint64_t> word;
  Start start;
  void* argument;
  void* result;
  atomic<Thread*> thread;
  pthread_t id;
  Hull* next;        // list of spares
  uint32_t marks;    // the thread's own
  uint32_t locales;  // setlocale calls before it was made
  bool
      id_unknown;  // the library's record of the id is not right: 0, as the thread has ended, or the former thread's
};

inline Phase phase_of(uint64_t word) noexcept { return static_cast<Phase>(word & word_phase); }
inline Thread* joiner_of(uint64_t word) noexcept { return reinterpret_cast<Thread*>(word & ~word_flags); }

// What pthread_create asks the runtime for.
struct Launch {
  Start start;  // null: the real thing, not a hull
  void* argument;
  pthread_t* out;
};

// --- recycle.cc: handlers of upcall_native_call, on the activation's stack
enum Answer : long { job = 0, out = 1, look = 2, leave = 3, retire = 4 };
// (Launch*): gives the function to a spare. 0, or -EAGAIN: there is none.
Thread* give_job(Thread*) noexcept;
// (Hull*): the thread's function has returned. job: it has another one; out: it must exit; look: signals have been
// delivered first, ask again; leave: the process ends, exit; retire: exit, joined already; -EINTR: park_again.
Thread* end_of_job(Thread*) noexcept;
Thread* park_again(Thread*) noexcept;
// (Hull*, deadline, minding_cancel): waits for the end of a running hull's thread. joined: its result is in the
// caller's join_result, the hull is a spare; 0: look at the hull again; -EINTR, -ETIMEDOUT, -EINVAL, -ENOMEM.
inline constexpr long joined = 1;
Thread* wait_for_end(Thread*) noexcept;
// (Hull*): joined if it has finished; else 0.
Thread* join_finished(Thread*) noexcept;
void install_hooks() noexcept;
// The main thread has exited.
bool closing() noexcept;

// --- fresh.cc; not noexcept where a cancelled thread may unwind through
// Can threads be made fresh at all, with the objects loaded now?
bool can_refresh();
// Has the calling thread, whose function has returned, nothing that would show in the next one?
bool leaves_no_trace(const Hull&);
// TLS and errno as a new thread finds them.
void make_fresh();
void find_library();
void find_tls_images();
// From now on every thread is made anew.
void forbid_reuse() noexcept;
bool is_default(const pthread_attr_t*) noexcept;
extern atomic<uint32_t> g_locales;

// --- symbols.cc: the functions we stand before
// Defines a function of glibc's name under another one: the headers' declarations say noexcept, which would need a
// personality routine where a cancelled thread unwinds through.
#define INTERPOSED(type, name, parameters)                                             \
  __attribute__((visibility("default"))) type upcall_##name parameters __asm__(#name); \
  type upcall_##name parameters

struct Real {
  int (*create)(pthread_t*, const pthread_attr_t*, Start, void*);
  int (*join)(pthread_t, void**);
  int (*tryjoin)(pthread_t, void**);
  int (*timedjoin)(pthread_t, void**, const timespec*);
  int (*clockjoin)(pthread_t, void**, clockid_t, const timespec*);
  int (*detach)(pthread_t);
  int (*cancel)(pthread_t);
  int (*kill)(pthread_t, int);
  int (*thrd_join)(pthread_t, int*);
};
extern Real g_real;
// Found when one is needed: before glibc 2.34 the constructors of other libraries run before ours.
void find_all() noexcept;
inline const Real& real() noexcept {
  if (__builtin_expect(!g_real.thrd_join, 0)) find_all();
  return g_real;
}
// Are calls by symbol ours to answer, here and now?
inline bool active() noexcept {
  return activation::g_runtime.symbols && activation::g_runtime.started && upcall_current_thread() != nullptr;
}

}  // namespace upcall::pthread_abi

namespace upcall::pthread_abi {

// Static TLS (initial-exec): this library is there from the start. Bytes, as the type needs constructors.
inline Hull* hull_of(pthread_t p) noexcept {
  uint64_t offset;
  __asm__("movq upcall_hull@gottpoff(%%rip), %0" : "=r"(offset));
  return reinterpret_cast<Hull*>(p + offset);
}
// The calling thread's.
inline Hull* own_hull() noexcept { return hull_of(arch::read_thread_pointer()); }

}  // namespace upcall::pthread_abi

// A simulated machine for the real sources of the runtime. Its kernel threads are coroutines of one real thread; every
// atomic step, system call and moment of a program is a step of the machine, at which a seeded generator chooses: go on,
// let another kernel thread run, deliver a signal, make a buffered store visible, let time pass. The same seed gives
// the same schedule.
//
//   machine.cc  kernel threads, time, store buffers, the choice
//   system.cc   system calls of the runtime
//   entry.cc    what arch/x86_64/entry.S does: into the runtime and out, signals
//   program.cc  the simulated program; glibc's part of it in libc.cc
//   check.cc    what must hold, and the report when it does not
#pragma once

#include <cstddef>
#include <cstdint>

#include "activation/activation.h"
#include "activation/signal_frame.h"

namespace upcall::sim {

using activation::Activation;
using activation::Processor;
using sched::Thread;

struct User;

enum class Why : uint8_t { runnable, futex, signal_wait, asleep, call, fault, ended };

struct BufferedStore {
  void* at;
  uint64_t value;
  uint32_t size;
};

// Where a signal would interrupt it.
enum class Place : uint8_t { library, program, before_call };

struct KernelThread {
  int index = 0;
  int32_t tid = 0;
  const char* role = "";
  void* sp = nullptr;
  void (*start)(void*) = nullptr;
  void* argument = nullptr;
  uint64_t gs = 0, fs = 0, vectors = 0;
  uint64_t blocked_signals = ~0ull;
  bool signal_pending = false;  // the reserved one
  bool call_cancelled = false;  // its handler has moved the program counter over the call
  bool background = false;      // SCHED_IDLE
  Place place = Place::library;
  User* user = nullptr;  // whose code it runs, in place program
  Thread* (*handler)(Thread*) = nullptr;
  Why why = Why::runnable;
  bool interruptible = false;
  const void* futex = nullptr;
  uint64_t until = ~0ull;
  long result = 0;
  uint64_t cpu_time = 0;
  uint64_t stalled_until = 0;  // step
  int64_t priority = 0;
  uint32_t buffered = 0;
  BufferedStore buffer[16];
};

// What differs from schedule to schedule besides the choices.
struct Settings {
  uint32_t processors = 1;
  uint32_t switch_one_in = 4;
  uint32_t stall_one_in = 0;  // of the switches; 0: never
  // Instead of a choice at every switch: the kernel thread of the highest priority runs until one_in this it falls to the
  // lowest. Finds what needs few switches at the right places ("A Randomized Scheduler with Probabilistic Guarantees of
  // Finding Bugs", Burckhardt et al. 2010). 0: no priorities.
  uint32_t fall_one_in = 0;
  // At an access to what another kernel thread has accessed last, one_in this a pause of about that many steps. 0: never.
  uint32_t pause_one_in = 0;
  uint64_t pause_steps = 100;
  uint32_t drain_one_in = 2;
  uint32_t background_one_in = 8;
  uint64_t step_ns = 20;
  bool store_buffers = true;
};

struct Machine {
  Settings settings;
  uint64_t random = 0;
  uint64_t steps = 0, step_limit = 3'000'000;
  uint64_t now = 1'000'000'000;
  uint64_t next_due = ~0ull;
  uint64_t hash = 0;
  bool quiet = true;  // no steps: the machine is being set up, or looked at
  int64_t lowest_priority = 0;
  int count = 0;
  KernelThread* current = nullptr;
  KernelThread thread[256];
  uint64_t owner_checks = 0, quiet_checks = 0;
};
extern Machine g;

// --- machine.cc
uint64_t random_below(uint64_t n) noexcept;
bool one_in(uint64_t n) noexcept;
KernelThread* new_kernel_thread(void* stack_top, void (*start)(void*), void* argument,
                                const char* role) noexcept;
// Without a step before.
void store_at_once(void* at, uint64_t value, uint32_t size, bool drain_first) noexcept;
// A step that is no atomic access.
void step(const char* what, uint64_t value = 0) noexcept;
void pass_time(uint64_t ns) noexcept;
void drain(KernelThread* k) noexcept;
void drain_all() noexcept;
// Gives up the CPU; may come back at once if nobody else can run.
void reschedule(bool others_first) noexcept;
// Sleeps until woken, `until`, or a signal (-EINTR). The waker's result.
long block(Why why, uint64_t until, const void* futex, bool interruptible) noexcept;
void wake(KernelThread* k, long result) noexcept;
void post_signal(KernelThread* k) noexcept;
// Runs the reserved signal's handler if it is pending and open.
void deliver_signals() noexcept;
// Memory of the program, and of the runtime: at the same addresses in every run.
void* program_memory(size_t bytes) noexcept;
void* runtime_memory(size_t bytes) noexcept;
bool is_program_memory(const void* p) noexcept;
// The value without a step, as it stands in memory.
template <typename T>
T peek(const atomic<T>& a) noexcept {
  T v;
  __builtin_memcpy(static_cast<void*>(&v), static_cast<const void*>(&a), sizeof v);
  return v;
}

// --- entry.cc
// The program's side of a call: by a system-call number, by symbol. On the calling thread's stack.
long enter(Thread* (*handler)(Thread*), long nr, const long args[6], bool native) noexcept;
[[noreturn]] void enter_user(User* u) noexcept;
void run_signal_handler(KernelThread* k) noexcept;

// --- check.cc
struct Event {
  uint64_t step;
  uint64_t now;
  int thread;
  const char* what;
  const void* at;
  uint64_t value;
};
void record(const char* what, const void* at, uint64_t value) noexcept;
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) noexcept;
#define SIM_CHECK(condition, ...)                       \
  do {                                                  \
    if (!(condition)) ::upcall::sim::fail(__VA_ARGS__); \
  } while (0)
// A store to what belongs to the owner of a processor.
void check_private_store(const void* at) noexcept;
// Nothing can run before time passes until `next`.
void check_quiescent(uint64_t next) noexcept;
[[noreturn]] void finish() noexcept;

}  // namespace upcall::sim

extern "C" {
void sim_switch(void** save, void* load);
[[noreturn]] void sim_load(void* load);
void sim_call_on(void** save, void* stack_top, void (*f)());
}

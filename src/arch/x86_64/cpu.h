// What the CPU and the kernel's entry code offer, as functions; and the assembly of this folder, as declarations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/x86_64/layout.h"
#include "arch/x86_64/registers.h"

namespace upcall::sched {
struct Thread;
}

namespace upcall::arch {

inline uint64_t xcr0() noexcept {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}
inline void cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4]) noexcept {
  __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(sub));
}

struct XsaveInfo {
  uint64_t features;  // XCR0, or 3 where there is no xsave
  uint32_t size;      // bytes of the standard format for `features`
  bool present;
};
// Chooses g_vector_level and answers what signal frames need. Called once, at start.
XsaveInfo detect_vectors() noexcept;

// What a child that shares our memory, or is made with GS 0, is to tell the kernel about itself.
struct ChildState {
  uint32_t caught;  // signals that the program catches, and their struct sigaction
  struct {
    uint64_t signal, action[4];
  } actions[64];
};

}  // namespace upcall::arch

// NOLINTBEGIN: assembly names
extern "C" {
extern uint32_t g_vector_level;
extern const char upcall_text_begin[], upcall_text_end[];
extern const char upcall_sigreturn_begin[], upcall_sigreturn_end[];
extern const char upcall_blocking_begin[], upcall_blocking_end[], upcall_blocking_interrupted[];
extern const char upcall_user_begin[], upcall_user_end[], upcall_user_fault[];
// Where code called by symbol uses GS first, and where it goes on if GS is 0 there.
extern const char upcall_yield_gs[], upcall_yield_guest[], upcall_native_gs[], upcall_native_guest[];
extern const char upcall_current_gs[], upcall_current_end[];
extern uint8_t
    upcall_yields_are_ours;  // the same, and the runtime has started: the handlers of the kernel's signals may be in no call of ours
extern uint8_t upcall_gs_is_ours;  // GS points to an activation, or is 0 in children that share our memory
upcall::sched::Thread* upcall_current_thread() noexcept;
extern const char upcall_restorer[], upcall_kernel_restorer[];

void upcall_entry();
int upcall_native_yield();
// noexcept: a caller needs no tables of its own for a cancelled thread that unwinds from here.
long upcall_native_call(upcall::sched::Thread* (*handler)(upcall::sched::Thread*), uint64_t a, uint64_t b,
                        uint64_t c) noexcept;
long upcall_native_call_here(upcall::sched::Thread* (*handler)(upcall::sched::Thread*), uint64_t a,
                             uint64_t b, uint64_t c) noexcept;
[[noreturn]] void upcall_resume(upcall::sched::Thread*);
[[noreturn]] void upcall_return_through(void* ucontext);
[[noreturn]] void upcall_leave(upcall::sched::Thread*);
[[noreturn]] void upcall_run_on(void* stack_top, void (*f)(void*), void* argument);
long upcall_blocking_syscall(long nr, const long args[6]);
int upcall_load_user32(const uint32_t* address, uint32_t* value);
int upcall_store_user32(uint32_t* address, uint32_t value);
int upcall_load_user64(const uint64_t* address, uint64_t* value);
int upcall_add_user64(uint64_t* address, uint64_t value);
int upcall_cas_user32(uint32_t* address, uint32_t* expected, uint32_t desired);
int upcall_copy_user(void* to, const void* from, size_t bytes);
long upcall_clone(unsigned long flags, void* stack, void (*f)(void*), void* argument, int* parent_tid,
                  int* child_tid);
long upcall_clone_process(long nr, const long args[6], upcall::sched::Thread*,
                          const upcall::arch::ChildState*, bool own_stack);
void upcall_save_control(upcall::sched::Thread*);
void upcall_copy_control(upcall::sched::Thread*);
void upcall_reset_control();
void upcall_save_vectors(upcall::sched::Thread*);
void upcall_load_fpu(upcall::sched::Thread*);
void upcall_xsave(void* area, uint64_t features);
}
// NOLINTEND

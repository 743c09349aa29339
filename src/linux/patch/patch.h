// Substitution engine: redirects `syscall` instructions of mapped objects to the runtime.
//
// Every `0f 05` byte pair in an executable section is a candidate; only those that a decode from the
// start of their function confirms are touched. A confirmed site becomes a 5-byte jump to a stub:
//
//     <moved instructions that stood before the syscall>
//   restart:
//     rdgsbase %rcx              a kernel thread with GS 0 is no activation: plain system call
//     jrcxz plain
//     lea back(%rip), %r11
//     jmp *entry(%rip)
//   plain:
//     syscall
//   back:
//     <moved instructions that stood after it>
//     jmp site_end
//
// Nothing between changes flags, the stack or any register but rcx and r11, which the kernel's own
// `syscall` destroys as well. The entry is to jump to *r11 when the call is done (rax set); to have
// the call done plainly it may instead jump to kStubPlainOffset bytes after `restart`.
//
// No libc, no TLS, no allocation but mmap: usable in the library's constructor and inside a
// substituted system call. Public functions serialise among themselves, except covers() and
// program_pc(), which take no lock and are safe in signal handlers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace upcall::patch {

// Distances inside a stub; `back` is what the entry finds in r11.
inline constexpr uintptr_t kStubRestartOffset = 22;  // back - restart
inline constexpr uintptr_t kStubPlainOffset = 20;    // plain - restart

// thread_creation: only sites whose number is no proven constant, and those that making a thread comes by
// (its stack, clone, clone3), so that a program with one thread pays almost nothing. all: every wanted site.
enum class Phase { thread_creation, all };

struct Config {
  void* entry;             // where stubs jump
  bool (*wants)(long nr);  // constant system call number: must it be redirected?
};
void configure(const Config& config);

// Every executable file mapping of the process except the object this code is in. Idempotent; a later
// call with Phase::all completes an earlier one. Only one kernel thread may run program code meanwhile.
void patch_process(Phase phase);
// fork: held across it, before all other locks, so that the child finds no object half patched.
void lock_for_fork();
void unlock_after_fork();

// An object that has just been mapped executable, before any of its code runs; `fd` may be -1.
void patch_mapping(uintptr_t start, uintptr_t end, int fd, uint64_t file_offset);

// [start,end) was unmapped or mapped anew: its stubs go, too.
void forget_mapping(uintptr_t start, uintptr_t end);

struct Totals {
  unsigned long objects;
  unsigned long candidates;  // byte pairs found in executable sections
  unsigned long patched;
  unsigned long left_plain;          // constant number that is not wanted, and every rt_sigreturn
  unsigned long not_code;            // not confirmed as an instruction
  unsigned long unpatched;           // an instruction, wanted, but no way to patch it
  unsigned long critical_unpatched;  // of these: futex, clone, clone3, exit, or number unknown
  unsigned long deferred;            // not looked at yet (before Phase::all)
  unsigned long stub_bytes;
  unsigned long nanoseconds;  // spent in this engine
};
Totals totals();

// `offset` is the address within the object's file image, as objdump prints it; nr -1: not a constant.
void for_each_unpatched(void (*visit)(void* arg, const char* object, uintptr_t offset, long nr,
                                      const char* reason),
                        void* arg);

bool covers(uintptr_t pc);  // pc lies in a stub area

// The program's own address that `pc`, inside a stub, stands for (what a signal handler or an unwinder
// should be shown); pc itself if it lies in no stub.
uintptr_t program_pc(uintptr_t pc);

}  // namespace upcall::patch

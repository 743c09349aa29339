// Credentials (user and group ids) belong to kernel threads. All kernel threads of the runtime but those of bound threads
// have the same ones, always: what the C library's set*id functions change for the process is changed on each of them
// before the call returns, by a signal of the runtime's own, wherever it finds the kernel thread.
#pragma once

#include "activation/activation.h"

namespace upcall::activation {

// The C library's number for its own signal of this kind. That one is handed between threads here and never enters the
// kernel, so that no program can miss it there.
inline constexpr int credentials_signal = 33;

struct IdCall {
  long nr;
  long args[3];
  const void* list;  // setgroups: the second argument, in memory of the runtime
  size_t list_bytes;
};

// Makes the call on the calling kernel thread and, if it succeeds, on all that share its credentials:
// none executes anything of the program before it has made it. A bound caller has its own, and the others follow as far as
// they may. `last`: all have made it when this returns, which takes as long as one of them cannot be interrupted. The caller
// has left its processor to others.
long change_credentials(const IdCall& call, bool bound, bool last) noexcept;

// The handler of credentials_signal: the calling kernel thread makes the change that it has not made yet. False: it is
// none of the runtime's.
bool follow_credentials() noexcept;
// Same, of a kernel thread that has just been made, before its signals are open.
void follow_at_first(Activation* or_helper) noexcept;
// The calling activation's credentials are its bound thread's own from now on.
void part_with_credentials(Activation*) noexcept;
// Before a clone, with signals blocked: the child will have what the caller has.
void pass_credentials_on(KernelThread* child) noexcept;
// `only` is the only activation and has the program's: at the start, and in fork's child.
void begin_credentials(Activation* only) noexcept;
// A kernel thread that runs no threads.
void add_helper(KernelThread*) noexcept;

}  // namespace upcall::activation

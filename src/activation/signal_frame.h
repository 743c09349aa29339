// The kernel's signal frame on x86-64: what rt_sigreturn reads. Source: arch/x86/include/uapi/asm/sigcontext.h,
// ucontext.h; the layout is kernel ABI.
#pragma once

#include <cstddef>
#include <cstdint>

#include "activation/credentials.h"

namespace upcall::activation {

struct KernelUcontext {
  uint64_t flags;
  uint64_t link;
  AltStack stack;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
  uint16_t cs, gs, fs, ss;
  uint64_t err, trapno, oldmask, cr2;
  void* fpstate;
  uint64_t reserved[8];
  uint64_t sigmask;
};
static_assert(offsetof(KernelUcontext, r8) == 40 && offsetof(KernelUcontext, rsp) == 160);
static_assert(offsetof(KernelUcontext, rip) == 168 && offsetof(KernelUcontext, fpstate) == 224);
static_assert(offsetof(KernelUcontext, sigmask) == 296);

// Software bytes of the legacy area: how long the extended state is.
struct FpSoftware {
  uint32_t magic1;
  uint32_t extended_size;
  uint64_t features;
  uint32_t xstate_size;
  uint32_t padding[7];
};
inline constexpr size_t fp_software_offset = 464;
inline constexpr uint32_t fp_magic1 = 0x46505853, fp_magic2 = 0x46505845;

// Bytes of the floating-point state that `uc` points to, magic2 included.
inline size_t fpstate_bytes(const KernelUcontext* uc) noexcept {
  auto* sw = reinterpret_cast<const FpSoftware*>(static_cast<const char*>(uc->fpstate) + fp_software_offset);
  return sw->magic1 == fp_magic1 ? sw->extended_size : 512;
}

// Signals an activation leaves unblocked in the kernel: faults of the thread itself and the two reserved ones. All
// others wait for the monitor, which takes them with sigtimedwait and gives them to a thread.
constexpr uint64_t bit(int signal) noexcept { return 1ul << (signal - 1); }
inline constexpr uint64_t fault_signals = bit(4) | bit(5) | bit(7) | bit(8) | bit(11) | bit(31);
inline constexpr uint64_t activation_mask = ~(fault_signals | bit(preempt_signal) | bit(credentials_signal));

// Before returning through `uc` on `a`: the kernel will install this mask and this alternate stack.
inline void prepare_frame(Activation* a, KernelUcontext* uc) noexcept {
  uc->stack = a->altstack;
  uc->sigmask = activation_mask;
}

}  // namespace upcall::activation

// The way from a program into the runtime and back.
//
// A substituted site jumps to its stub, the stub to upcall_entry with
//   rax  system call number, rdi rsi rdx r10 r8 r9  its arguments, r11  where to return, GS not 0.
// The kernel may clobber rax, rcx and r11 only, so may we; the flags, the red zone and the vector
// registers are live. Nothing is written to the program's stack: the whole context goes into the
// thread's descriptor, and from the switch to the activation's own stack on, the thread can be resumed by
// any activation. A handler therefore "blocks" by leaving its thread in a queue and returning another one.
//
// A signal may stop us at any instruction. Before A_IN_RUNTIME is set and after it is cleared no register
// holds anything of the activation, so the thread may be preempted there and continue elsewhere.

#include "arch/x86_64/layout.h"

        .text

        .macro FUNCTION name
        .globl \name
        .hidden \name
        .type \name, @function
        .balign 16
\name:
        .endm

        // What a function call keeps.
        .macro LOAD_PRESERVED thread
        mov     T_RBX(\thread), %rbx
        mov     T_RBP(\thread), %rbp
        mov     T_R12(\thread), %r12
        mov     T_R13(\thread), %r13
        mov     T_R14(\thread), %r14
        mov     T_R15(\thread), %r15
        .endm
        .macro SAVE_PRESERVED thread
        mov     %rbx, T_RBX(\thread)
        mov     %rbp, T_RBP(\thread)
        mov     %r12, T_R12(\thread)
        mov     %r13, T_R13(\thread)
        mov     %r14, T_R14(\thread)
        mov     %r15, T_R15(\thread)
        .endm
        // And what a system call keeps besides.
        .macro LOAD_ARGUMENTS thread
        mov     T_RDX(\thread), %rdx
        mov     T_RSI(\thread), %rsi
        mov     T_RDI(\thread), %rdi
        mov     T_R8(\thread), %r8
        mov     T_R9(\thread), %r9
        mov     T_R10(\thread), %r10
        .endm

        .globl upcall_text_begin
        .hidden upcall_text_begin
upcall_text_begin:

FUNCTION upcall_entry
        mov     %gs:A_IN_RUNTIME, %ecx          // flags are live here
        jrcxz   1f
        // Before the runtime has started the kernel's signals interrupt it: their handlers' calls are plain.
        lea     -2(%r11), %r11                  // the stub's own syscall
        jmp     *%r11
1:      movl    $1, %gs:A_IN_RUNTIME
        mov     %gs:A_CURRENT, %rcx
        mov     %r11, T_RIP(%rcx)
        mov     %rsp, T_RSP(%rcx)
        mov     %rax, T_NR(%rcx)
        movl    $0, T_NATIVE(%rcx)
        SAVE_PRESERVED %rcx
        mov     %rdx, T_RDX(%rcx)
        mov     %rsi, T_RSI(%rcx)
        mov     %rdi, T_RDI(%rcx)
        mov     %r8, T_R8(%rcx)
        mov     %r9, T_R9(%rcx)
        mov     %r10, T_R10(%rcx)
        mov     %gs:A_STACK, %rsp
        pushfq
        popq    T_FLAGS(%rcx)
        cld
        mov     %rcx, %rdi
        cmp     $SYSCALL_TABLE_SIZE, %rax
        jae     .Lunknown
.Lknown:
        cmpl    $0, %gs:A_LOST
        jne     .Lentry_lost
.Ldispatch:
#ifdef UPCALL_INJECT
        push    %rax
        push    %rdi
        call    upcall_inject_entering
        pop     %rdi
        pop     %rax
#endif
        lea     upcall_syscall_table(%rip), %rdx
        call    *(%rdx,%rax,8)
        // rax: the thread to resume. It is the activation's current one.
.Lresume:
#ifdef UPCALL_INJECT
        mov     %gs:A_STACK, %rsp
        mov     %rax, %rbx
        mov     %rax, %rdi
        call    upcall_inject_leaving
        mov     %rbx, %rax
#endif
        mov     T_KIND(%rax), %ecx
        or      T_FPU(%rax), %ecx
        or      T_ATTENTION(%rax), %ecx
        or      %gs:A_RESCHED, %ecx
        jnz     .Lresume_slow
.Lresume_registers:
        cmpl    $0, T_NATIVE(%rax)
        jne     .Lresume_native
        mov     %rax, %r11
        mov     T_FLAGS(%r11), %rcx
        test    $0x40500, %ecx                  // AC, DF, TF: only popfq sets these
        jnz     .Lresume_flags_slow
        mov     %cl, %ah                        // SF ZF AF PF CF, for sahf
        shr     $8, %ecx
        and     $8, %ecx
        mov     %cl, %al
        add     $0x78, %al                      // OF: 0x78 + 8 overflows, 0x78 + 0 does not
        sahf
.Lresume_load:
        LOAD_PRESERVED %r11
        LOAD_ARGUMENTS %r11
        mov     T_RAX(%r11), %rax
        mov     T_RIP(%r11), %rcx
        mov     T_RSP(%r11), %rsp
        mov     %rcx, %r11
        movl    $0, %gs:A_IN_RUNTIME
        jmp     *%rcx

        // Back from a function call. By ret, as the CPU predicts: the thread that went to sleep here and the one that
        // wakes up have mostly made the same calls. The word below the stack pointer was the return address before.
.Lresume_native:
        mov     %rax, %r11
        LOAD_PRESERVED %r11
        mov     T_RAX(%r11), %rax
        mov     T_RSP(%r11), %rsp
        push    T_RIP(%r11)
        movl    $0, %gs:A_IN_RUNTIME
        ret

.Lresume_flags_slow:
        push    %rcx
        popfq
        jmp     .Lresume_load

        // The processor was taken away while the thread was blocked where we could not see it.
.Lentry_lost:
        lea     upcall_syscall_table(%rip), %rdx
        mov     (%rdx,%rax,8), %rax
.Lnative_lost:                                  // rdi: the thread, rax: its handler
        mov     %rax, %rsi
        call    upcall_take_back
        jmp     .Lresume

.Lunknown:
        mov     $SYSCALL_TABLE_SIZE, %eax
        jmp     .Lknown

        // Something to do before the thread runs: signals, a preemption, a saved floating-point state.
.Lresume_slow:
        mov     T_ATTENTION(%rax), %ecx
        or      %gs:A_RESCHED, %ecx
        jz      .Lresume_context
        mov     %gs:A_STACK, %rsp
        mov     %rax, %rdi
        call    upcall_before_resume            // may choose another thread
.Lresume_context:
        cmpl    $FPU_LIVE, T_FPU(%rax)
        je      .Lresume_kind
        mov     %rax, %rbx
        mov     %rax, %rdi
        call    upcall_load_fpu
        mov     %rbx, %rax
.Lresume_kind:
        cmpl    $CONTEXT_REGISTERS, T_KIND(%rax)
        je      .Lresume_registers
        // The context is a kernel signal frame; only the kernel can load all of it.
        movl    $CONTEXT_REGISTERS, T_KIND(%rax)
        mov     T_SIGFRAME(%rax), %rsp
        movl    $0, %gs:A_IN_RUNTIME
        .globl upcall_sigreturn_begin
        .hidden upcall_sigreturn_begin
upcall_sigreturn_begin:
        mov     $15, %eax
        syscall
        .globl upcall_sigreturn_end
        .hidden upcall_sigreturn_end
upcall_sigreturn_end:
        ud2

// [[noreturn]] void upcall_return_through(void* ucontext): nothing is looked at any more on the way.
FUNCTION upcall_return_through
        mov     %rdi, %rsp
        movl    $0, %gs:A_IN_RUNTIME
        jmp     upcall_sigreturn_begin

// [[noreturn]] void upcall_resume(Thread*): leaves the runtime for good on this stack.
FUNCTION upcall_resume
        mov     %rdi, %rax
        jmp     .Lresume

// [[noreturn]] void upcall_run_on(void* stack_top, void (*f)(void*), void* argument)
FUNCTION upcall_run_on
        mov     %rdi, %rsp
        xor     %ebp, %ebp
        mov     %rdx, %rdi
        call    *%rsi
        ud2

// int sched_yield(void), called through the procedure linkage table: the ABI makes everything but the
// callee-saved registers dead, so nothing else is saved.
FUNCTION upcall_native_yield
        .globl sched_yield                      // interposed: the program's calls come here
        .type sched_yield, @function
sched_yield:
        cmpb    $0, upcall_yields_are_ours(%rip)
        je      1f
        // Reading GS takes 3 ns. A vfork child, where it is 0, faults here instead: see upcall_guest_fixup.
        .globl upcall_yield_gs
        .hidden upcall_yield_gs
upcall_yield_gs:
        movl    $1, %gs:A_IN_RUNTIME
        pop     %rcx
        mov     %gs:A_CURRENT, %rdi
        mov     %rcx, T_RIP(%rdi)
        mov     %rsp, T_RSP(%rdi)
        SAVE_PRESERVED %rdi
        movq    $0x202, T_FLAGS(%rdi)
        movq    $24, T_NR(%rdi)
        movl    $1, T_NATIVE(%rdi)
        mov     %gs:A_STACK, %rsp
        cmpl    $0, %gs:A_LOST
        jne     2f
        call    upcall_yield_thread
        jmp     .Lresume
2:      lea     upcall_yield_thread(%rip), %rax
        jmp     .Lnative_lost
        .globl upcall_yield_guest
        .hidden upcall_yield_guest
upcall_yield_guest:
1:      mov     $24, %eax
        syscall
        ret

// Thread* upcall_current_thread(): null on a kernel thread that is no activation.
FUNCTION upcall_current_thread
        xor     %eax, %eax
        cmpb    $0, upcall_gs_is_ours(%rip)
        je      1f
        .globl upcall_current_gs
        .hidden upcall_current_gs
upcall_current_gs:
        mov     %gs:A_CURRENT, %rax
        .globl upcall_current_end
        .hidden upcall_current_end
upcall_current_end:
1:      ret

// long upcall_native_call(Thread* (*handler)(Thread*), uint64_t a, uint64_t b, uint64_t c)
// A call into the runtime by its own functions that the program calls by symbol. The ABI makes everything but the
// callee-saved registers and the control words dead. The handler finds a, b, c in the thread's rdi, rsi, rdx and
// leaves the answer in its rax. On a kernel thread that is no activation: -ENOSYS.
FUNCTION upcall_native_call
        cmpb    $0, upcall_gs_is_ours(%rip)
        je      upcall_native_guest
        .globl upcall_native_gs
        .hidden upcall_native_gs
upcall_native_gs:
        movl    $1, %gs:A_IN_RUNTIME
        jmp     2f
        // Same, by a caller that knows that it is on an activation.
        .globl upcall_native_call_here
        .hidden upcall_native_call_here
        .type upcall_native_call_here, @function
upcall_native_call_here:
        movl    $1, %gs:A_IN_RUNTIME
2:      pop     %r8
        mov     %gs:A_CURRENT, %r9
        mov     %r8, T_RIP(%r9)
        mov     %rsp, T_RSP(%r9)
        SAVE_PRESERVED %r9
        mov     %rsi, T_RDI(%r9)
        mov     %rdx, T_RSI(%r9)
        mov     %rcx, T_RDX(%r9)
        movq    $0x202, T_FLAGS(%r9)
        movq    $-1, T_NR(%r9)
        movl    $1, T_NATIVE(%r9)
        mov     %gs:A_STACK, %rsp
        mov     %rdi, %rax
        mov     %r9, %rdi
        cmpl    $0, %gs:A_LOST
        jne     .Lnative_lost
#ifdef UPCALL_INJECT
        push    %rax
        push    %rdi
        call    upcall_inject_entering
        pop     %rdi
        pop     %rax
#endif
        call    *%rax
        jmp     .Lresume
        .globl upcall_native_guest
        .hidden upcall_native_guest
upcall_native_guest:
        mov     $-38, %rax
        ret

// long upcall_blocking_syscall(long nr, const long args[6])
// A call that may block. When the activation's interrupt word is set before the kernel has been entered, the
// answer is -ERESTART (512): the signal handler moves a program counter in [begin, end) to the way out, so that no
// wake-up falls into the gap between the test and the instruction. The same where the kernel would restart the call:
// our handler says SA_RESTART, and the kernel has set the program counter back. -EINTR comes from the kernel only.
FUNCTION upcall_blocking_syscall
        mov     %rdi, %rax
        mov     %rsi, %r11
        mov     0(%r11), %rdi
        mov     8(%r11), %rsi
        mov     16(%r11), %rdx
        mov     24(%r11), %r10
        mov     32(%r11), %r8
        mov     40(%r11), %r9
        .globl upcall_blocking_begin
        .hidden upcall_blocking_begin
upcall_blocking_begin:
        cmpl    $0, %gs:A_INTERRUPT
        jne     upcall_blocking_interrupted
        syscall
        .globl upcall_blocking_end
        .hidden upcall_blocking_end
upcall_blocking_end:
        ret
        .globl upcall_blocking_interrupted
        .hidden upcall_blocking_interrupted
upcall_blocking_interrupted:
        mov     $-512, %rax
        ret

// Accesses to the program's memory. A fault between upcall_user_begin and upcall_user_end continues at
// upcall_user_fault, which returns -EFAULT: all of these are leaves that move no stack pointer.
        .globl upcall_user_begin
        .hidden upcall_user_begin
upcall_user_begin:

// int upcall_load_user32(const uint32_t* address, uint32_t* value): 0 or -EFAULT
FUNCTION upcall_load_user32
        mov     (%rdi), %eax
        mov     %eax, (%rsi)
        xor     %eax, %eax
        ret
// int upcall_store_user32(uint32_t* address, uint32_t value): 0 or -EFAULT. One store: others may look.
FUNCTION upcall_store_user32
        mov     %esi, (%rdi)
        xor     %eax, %eax
        ret
// int upcall_load_user64(const uint64_t* address, uint64_t* value): 0 or -EFAULT
FUNCTION upcall_load_user64
        mov     (%rdi), %rax
        mov     %rax, (%rsi)
        xor     %eax, %eax
        ret
// int upcall_add_user64(uint64_t* address, uint64_t value): 0 or -EFAULT. Not atomic.
FUNCTION upcall_add_user64
        add     %rsi, (%rdi)
        xor     %eax, %eax
        ret
// int upcall_cas_user32(uint32_t* address, uint32_t* expected, uint32_t desired)
// 1 exchanged, 0 not (*expected renewed), -EFAULT
FUNCTION upcall_cas_user32
        mov     (%rsi), %eax
        lock cmpxchg %edx, (%rdi)
        jne     1f
        mov     $1, %eax
        ret
1:      mov     %eax, (%rsi)
        xor     %eax, %eax
        ret
// int upcall_copy_user(void* to, const void* from, size_t bytes): 0 or -EFAULT; either side may be the program's
FUNCTION upcall_copy_user
        cmp     $256, %rdx                      // string instructions start slowly
        ja      3f
1:      sub     $8, %rdx
        jb      2f
        mov     (%rsi), %rax
        mov     %rax, (%rdi)
        add     $8, %rsi
        add     $8, %rdi
        jmp     1b
2:      add     $8, %rdx
        jz      5f
4:      movzbl  (%rsi), %eax
        mov     %al, (%rdi)
        inc     %rsi
        inc     %rdi
        dec     %rdx
        jnz     4b
5:      xor     %eax, %eax
        ret
3:      mov     %rdx, %rcx
        rep movsb
        xor     %eax, %eax
        ret
        .globl upcall_user_end
        .hidden upcall_user_end
upcall_user_end:
        .globl upcall_user_fault
        .hidden upcall_user_fault
upcall_user_fault:
        mov     $-14, %rax
        ret

// long upcall_clone(unsigned long flags, void* stack, void (*f)(void*), void* argument, int* parent_tid,
//                   int* child_tid): a kernel thread of the runtime that runs f(argument) and never returns.
FUNCTION upcall_clone
        mov     %rdx, -8(%rsi)
        mov     %rcx, -16(%rsi)
        lea     -16(%rsi), %rsi
        mov     %r8, %rdx
        mov     %r9, %r10
        xor     %r8d, %r8d
        mov     $56, %eax
        syscall
        test    %rax, %rax
        jz      1f
        ret
1:      xor     %ebp, %ebp
        pop     %rdi
        pop     %rax
        call    *%rax
        ud2

// long upcall_clone_process(long nr, const long args[6], Thread*, const ChildState*, bool own_stack)
// clone, clone3 or vfork whose child shares our memory without being a thread of this process's runtime. The
// child gets GS 0 (its stubs then make plain system calls), what the program thinks the kernel knows
// (upcall_child_begins), and goes straight back to the program.
FUNCTION upcall_clone_process
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rdx, %rbx
        mov     %rcx, %r12
        mov     %r8, %r13
        rdgsbase %r14
        xor     %r15d, %r15d
        wrgsbase %r15
        mov     %rdi, %rax
        mov     %rsi, %r11
        mov     0(%r11), %rdi
        mov     8(%r11), %rsi
        mov     16(%r11), %rdx
        mov     24(%r11), %r10
        mov     32(%r11), %r8
        mov     40(%r11), %r9
        syscall
        test    %rax, %rax
        jz      1f
        wrgsbase %r14
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbx
        ret
1:      mov     %rsp, %r14
        and     $-16, %rsp
        mov     %rbx, %rdi
        mov     %r12, %rsi
        call    upcall_child_begins
        mov     %r14, %rsp
        mov     %rbx, %r11
        test    %r13, %r13
        jnz     2f
        mov     T_RSP(%r11), %rsp
2:      xor     %eax, %eax
.Lleave:
        LOAD_PRESERVED %r11
        LOAD_ARGUMENTS %r11
        mov     T_RIP(%r11), %rcx
        jmp     *%rcx

// [[noreturn]] void upcall_leave(Thread*): back to the program with GS 0, not through the runtime's way out.
FUNCTION upcall_leave
        mov     %rdi, %r11
        push    T_FLAGS(%r11)
        popfq
        mov     T_RSP(%r11), %rsp
        mov     T_RAX(%r11), %rax
        jmp     .Lleave

// The return address of signal frames that the runtime builds on a thread's stack. Its call-frame
// information says "signal frame", so that unwinders pass through it.
        .cfi_startproc
        .cfi_signal_frame
        // CFA and registers as in the ucontext that starts at the stack pointer (kernel layout).
        .cfi_def_cfa %rsp, 0
        .cfi_escape 0x0f,0x04,0x77,0xa0,0x01,0x06               // CFA = *(rsp + 160): rsp
        .cfi_escape 0x10,0x10,0x03,0x77,0xa8,0x01               // rip at rsp + 168
        .cfi_escape 0x10,0x08,0x02,0x77,0x28                    // r8 at rsp + 40
        .cfi_escape 0x10,0x09,0x02,0x77,0x30                    // r9
        .cfi_escape 0x10,0x0a,0x02,0x77,0x38                    // r10
        .cfi_escape 0x10,0x0b,0x03,0x77,0xc0,0x00               // r11
        .cfi_escape 0x10,0x0c,0x03,0x77,0xc8,0x00               // r12
        .cfi_escape 0x10,0x0d,0x03,0x77,0xd0,0x00               // r13
        .cfi_escape 0x10,0x0e,0x03,0x77,0xd8,0x00               // r14
        .cfi_escape 0x10,0x0f,0x03,0x77,0xe0,0x00               // r15
        .cfi_escape 0x10,0x05,0x03,0x77,0xe8,0x00               // rdi
        .cfi_escape 0x10,0x04,0x03,0x77,0xf0,0x00               // rsi
        .cfi_escape 0x10,0x06,0x03,0x77,0xf8,0x00               // rbp
        .cfi_escape 0x10,0x03,0x03,0x77,0x80,0x01               // rbx
        .cfi_escape 0x10,0x01,0x03,0x77,0x88,0x01               // rdx
        .cfi_escape 0x10,0x00,0x03,0x77,0x90,0x01               // rax
        .cfi_escape 0x10,0x02,0x03,0x77,0x98,0x01               // rcx
        nop                                     // unwinders look up the byte before the return address
        .globl upcall_restorer
        .hidden upcall_restorer
upcall_restorer:
        mov     $15, %eax
        lea     upcall_restorer(%rip), %r11
        rdgsbase %rcx
        jrcxz   1f
        jmp     upcall_entry
1:      syscall
        ud2
        .cfi_endproc

// What the kernel returns to from the runtime's own handlers.
FUNCTION upcall_kernel_restorer
        mov     $15, %eax
        syscall

        .globl upcall_text_end
        .hidden upcall_text_end
upcall_text_end:
        .section .note.GNU-stack,"",@progbits

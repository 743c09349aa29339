// Vector and floating-point control state of a thread that is switched out at a substituted system call, where
// everything is live. Plain moves: 11 ns for 32 zmm and 8 mask registers, both ways, against 70-127 for
// xsavec + xrstor. The widest form the CPU and the kernel offer is chosen once, at start (g_vector_level).

#include "arch/x86_64/layout.h"

        .text
        .macro FUNCTION name
        .globl \name
        .hidden \name
        .type \name, @function
        .balign 16
\name:
        .endm

// Control words. Between threads the CPU holds the defaults: whoever saves others puts the defaults back, so that
// the common case neither stores nor compares when a thread comes in.

        .macro SAVE_CONTROL flags
        stmxcsr T_MXCSR(%rdi)
        fnstcw  T_FCW(%rdi)
        movl    $\flags, T_FPU(%rdi)
        cmpl    $DEFAULT_MXCSR, T_MXCSR(%rdi)
        jne     91f
        cmpw    $DEFAULT_FCW, T_FCW(%rdi)
        je      92f
91:     movl    $(\flags | FPU_CONTROL), T_FPU(%rdi)
        ldmxcsr default_mxcsr(%rip)
        fldcw   default_fcw(%rip)
92:
        .endm

        .section .rodata
        .balign 4
default_mxcsr:
        .long   DEFAULT_MXCSR
default_fcw:
        .word   DEFAULT_FCW
        .text

// void upcall_save_control(Thread*): control words only, the callee-saved part of the ABI.
FUNCTION upcall_save_control
        SAVE_CONTROL 0
        ret

// void upcall_copy_control(Thread*): a new thread starts with the control words of its creator.
FUNCTION upcall_copy_control
        stmxcsr T_MXCSR(%rdi)
        fnstcw  T_FCW(%rdi)
        movl    $FPU_LIVE, T_FPU(%rdi)
        cmpl    $DEFAULT_MXCSR, T_MXCSR(%rdi)
        jne     1f
        cmpw    $DEFAULT_FCW, T_FCW(%rdi)
        jne     1f
        ret
1:      movl    $FPU_CONTROL, T_FPU(%rdi)
        ret

// void upcall_reset_control(): a new kernel thread has inherited its creator's.
FUNCTION upcall_reset_control
        ldmxcsr default_mxcsr(%rip)
        fldcw   default_fcw(%rip)
        ret

// void upcall_save_vectors(Thread*)
FUNCTION upcall_save_vectors
        fnstsw  %ax                             // TOP not 0: something is on the x87 stack
        test    $0x3800, %eax
        jnz     .Lsave_x87
        SAVE_CONTROL FPU_VECTORS
.Lsave_registers:
        mov     g_vector_level(%rip), %eax
        cmp     $1, %eax
        jb      .Lsave_sse
        je      .Lsave_avx
        .irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        vmovups %zmm\r, T_VECTORS+64*\r(%rdi)
        .endr
        .irp r,0,1,2,3,4,5,6,7
        kmovq   %k\r, T_VECTORS+2048+8*\r(%rdi)
        .endr
        ret
.Lsave_avx:
        .irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovups %ymm\r, T_VECTORS+32*\r(%rdi)
        .endr
        ret
.Lsave_sse:
        .irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups  %xmm\r, T_VECTORS+16*\r(%rdi)
        .endr
        ret

.Lsave_x87:
        SAVE_CONTROL (FPU_VECTORS | FPU_X87)
        fnsave  T_X87(%rdi)                     // and empties it
        fldcw   default_fcw(%rip)
        jmp     .Lsave_registers

// void upcall_load_fpu(Thread*): what upcall_save_* saved; clobbers rax and rcx only.
FUNCTION upcall_load_fpu
        mov     T_FPU(%rdi), %ecx
        movl    $FPU_LIVE, T_FPU(%rdi)
        test    $(FPU_CONTROL | FPU_X87), %ecx
        jnz     .Lload_control
.Lload_registers:
        test    $FPU_VECTORS, %ecx
        jnz     1f
        ret
1:      mov     g_vector_level(%rip), %eax
        cmp     $1, %eax
        jb      .Lload_sse
        je      .Lload_avx
        .irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        vmovups T_VECTORS+64*\r(%rdi), %zmm\r
        .endr
        .irp r,0,1,2,3,4,5,6,7
        kmovq   T_VECTORS+2048+8*\r(%rdi), %k\r
        .endr
        ret
.Lload_avx:
        .irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovups T_VECTORS+32*\r(%rdi), %ymm\r
        .endr
        ret
.Lload_sse:
        .irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups  T_VECTORS+16*\r(%rdi), %xmm\r
        .endr
        ret

.Lload_control:
        test    $FPU_X87, %ecx
        jz      1f
        frstor  T_X87(%rdi)
1:      ldmxcsr T_MXCSR(%rdi)
        fldcw   T_FCW(%rdi)
        jmp     .Lload_registers

// void upcall_xsave(void* area, uint64_t features): the kernel's signal-frame format, 64-byte aligned, zeroed.
FUNCTION upcall_xsave
        mov     %esi, %eax
        mov     %rsi, %rdx
        shr     $32, %rdx
        xsave64 (%rdi)
        ret

        .section .note.GNU-stack,"",@progbits

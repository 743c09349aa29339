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

// void upcall_save_control(Thread*): control words only, the callee-saved part of the ABI.
FUNCTION upcall_save_control
        stmxcsr T_MXCSR(%rdi)
        fnstcw  T_FCW(%rdi)
        movl    $FPU_CONTROL, T_FPU(%rdi)
        ret

// void upcall_save_vectors(Thread*)
FUNCTION upcall_save_vectors
        stmxcsr T_MXCSR(%rdi)
        fnstcw  T_FCW(%rdi)
        movl    $FPU_VECTORS, T_FPU(%rdi)
        fnstsw  %ax                             // TOP not 0: something is on the x87 stack
        test    $0x3800, %eax
        jz      1f
        fnsave  T_X87(%rdi)                     // and empties it
        movl    $(FPU_VECTORS | FPU_X87), T_FPU(%rdi)
1:      mov     g_vector_level(%rip), %eax
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

// void upcall_load_fpu(Thread*): what upcall_save_* saved; clobbers rax and rcx only.
FUNCTION upcall_load_fpu
        stmxcsr -4(%rsp)
        fnstcw  -8(%rsp)
        mov     T_MXCSR(%rdi), %eax
        mov     T_FCW(%rdi), %ecx
        cmp     %eax, -4(%rsp)
        je      1f
        ldmxcsr T_MXCSR(%rdi)
1:      cmp     %cx, -8(%rsp)
        je      2f
        fldcw   T_FCW(%rdi)
2:      mov     T_FPU(%rdi), %ecx
        movl    $FPU_LIVE, T_FPU(%rdi)
        test    $FPU_VECTORS, %ecx
        jnz     3f
        ret
3:      test    $FPU_X87, %ecx
        jz      4f
        frstor  T_X87(%rdi)
4:      mov     g_vector_level(%rip), %eax
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

// void upcall_xsave(void* area, uint64_t features): the kernel's signal-frame format, 64-byte aligned, zeroed.
FUNCTION upcall_xsave
        mov     %esi, %eax
        mov     %rsi, %rdx
        shr     $32, %rdx
        xsave64 (%rdi)
        ret

        .section .note.GNU-stack,"",@progbits

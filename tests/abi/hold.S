// Register holders for the tests. Every function loads registers from `in`, does something during which other
// threads run, stores the registers to `out`, and is a plain System V function otherwise.
//
//   hold_*_syscall(in: rdi, out: rsi, call: rdx)   call = {number, six arguments}: one inline system call
//   hold_*_loop(in: rdi, out: rsi, count: rdx)     a countdown without any call

        .text

        .macro  function name
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .macro  push_saved
        .irp    r, rbx, rbp, r12, r13, r14, r15
        push    %\r
        .cfi_adjust_cfa_offset 8
        .endr
        .endm

        .macro  pop_saved
        .irp    r, r15, r14, r13, r12, rbp, rbx
        pop     %\r
        .cfi_adjust_cfa_offset -8
        .endr
        .endm

        // in and out stay in rbx and rbp: the other registers take the arguments.
        .macro  system_call
        mov     0(%rdx), %rax
        mov     8(%rdx), %rdi
        mov     16(%rdx), %rsi
        mov     32(%rdx), %r10
        mov     40(%rdx), %r8
        mov     48(%rdx), %r9
        mov     24(%rdx), %rdx
        syscall
        .endm

        .macro  countdown
1:      dec     %rdx
        jnz     1b
        .endm

        .macro  holder name, load, store, action
        function \name
        push_saved
        mov     %rdi, %rbx
        mov     %rsi, %rbp
        \load
        \action
        \store
        pop_saved
        ret
        end     \name
        .endm

        .macro  load_xmm
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movdqu  16*\n(%rbx), %xmm\n
        .endr
        .endm
        .macro  store_xmm
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movdqu  %xmm\n, 16*\n(%rbp)
        .endr
        .endm

        .macro  load_ymm
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovdqu 32*\n(%rbx), %ymm\n
        .endr
        .endm
        .macro  store_ymm
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovdqu %ymm\n, 32*\n(%rbp)
        .endr
        vzeroupper
        .endm

        .macro  load_zmm
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        vmovdqu64 64*\n(%rbx), %zmm\n
        .endr
        .irp    n, 0,1,2,3,4,5,6,7
        kmovq   2048+8*\n(%rbx), %k\n
        .endr
        .endm
        .macro  store_zmm
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        vmovdqu64 %zmm\n, 64*\n(%rbp)
        .endr
        .irp    n, 0,1,2,3,4,5,6,7
        kmovq   %k\n, 2048+8*\n(%rbp)
        .endr
        vzeroupper
        .endm

        holder  hold_xmm_syscall, load_xmm, store_xmm, system_call
        holder  hold_ymm_syscall, load_ymm, store_ymm, system_call
        holder  hold_zmm_syscall, load_zmm, store_zmm, system_call
        holder  hold_xmm_loop, load_xmm, store_xmm, countdown
        holder  hold_ymm_loop, load_ymm, store_ymm, countdown
        holder  hold_zmm_loop, load_zmm, store_zmm, countdown

// hold_general_syscall(in, out, call): rbx, rbp, r12-r15 from in[0..5]; out[0..5] as found afterwards, then the
// argument registers rdi, rsi, rdx, r10, r8, r9 in out[6..11] and the result in out[12].
        function hold_general_syscall
        push_saved
        push    %rsi
        .cfi_adjust_cfa_offset 8
        mov     0(%rdi), %rbx
        mov     8(%rdi), %rbp
        mov     16(%rdi), %r12
        mov     24(%rdi), %r13
        mov     32(%rdi), %r14
        mov     40(%rdi), %r15
        system_call
        pop     %rcx
        .cfi_adjust_cfa_offset -8
        mov     %rbx, 0(%rcx)
        mov     %rbp, 8(%rcx)
        mov     %r12, 16(%rcx)
        mov     %r13, 24(%rcx)
        mov     %r14, 32(%rcx)
        mov     %r15, 40(%rcx)
        mov     %rdi, 48(%rcx)
        mov     %rsi, 56(%rcx)
        mov     %rdx, 64(%rcx)
        mov     %r10, 72(%rcx)
        mov     %r8, 80(%rcx)
        mov     %r9, 88(%rcx)
        mov     %rax, 96(%rcx)
        pop_saved
        ret
        end     hold_general_syscall

// hold_general_loop(in, out, count): thirteen registers from in[0..12], counted down in rax.
        function hold_general_loop
        push_saved
        push    %rsi
        .cfi_adjust_cfa_offset 8
        mov     %rdx, %rax
        mov     0(%rdi), %rbx
        mov     8(%rdi), %rbp
        mov     16(%rdi), %r12
        mov     24(%rdi), %r13
        mov     32(%rdi), %r14
        mov     40(%rdi), %r15
        mov     48(%rdi), %rcx
        mov     56(%rdi), %rdx
        mov     64(%rdi), %rsi
        mov     72(%rdi), %r8
        mov     80(%rdi), %r9
        mov     88(%rdi), %r10
        mov     96(%rdi), %r11
        mov     104(%rdi), %rdi
1:      dec     %rax
        jnz     1b
        xchg    %rax, (%rsp)
        mov     %rbx, 0(%rax)
        mov     %rbp, 8(%rax)
        mov     %r12, 16(%rax)
        mov     %r13, 24(%rax)
        mov     %r14, 32(%rax)
        mov     %r15, 40(%rax)
        mov     %rcx, 48(%rax)
        mov     %rdx, 56(%rax)
        mov     %rsi, 64(%rax)
        mov     %r8, 72(%rax)
        mov     %r9, 80(%rax)
        mov     %r10, 88(%rax)
        mov     %r11, 96(%rax)
        mov     %rdi, 104(%rax)
        pop     %rax
        .cfi_adjust_cfa_offset -8
        pop_saved
        ret
        end     hold_general_loop

// hold_flags_syscall(flags, unused, call) -> flags after the call.
        function hold_flags_syscall
        push    %rdi
        .cfi_adjust_cfa_offset 8
        mov     0(%rdx), %rax
        mov     8(%rdx), %rdi
        mov     16(%rdx), %rsi
        mov     32(%rdx), %r10
        mov     40(%rdx), %r8
        mov     48(%rdx), %r9
        mov     24(%rdx), %rdx
        popfq
        .cfi_adjust_cfa_offset -8
        syscall
        pushfq
        .cfi_adjust_cfa_offset 8
        pop     %rax
        .cfi_adjust_cfa_offset -8
        cld
        ret
        end     hold_flags_syscall

// hold_red_zone_syscall(in, out, call): the 128 bytes below the stack pointer.
        function hold_red_zone_syscall
        push_saved
        mov     %rsi, %rbp
        .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
        mov     8*(\n-1)(%rdi), %rax
        mov     %rax, -8*\n(%rsp)
        .endr
        system_call
        .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
        mov     -8*\n(%rsp), %rax
        mov     %rax, 8*(\n-1)(%rbp)
        .endr
        pop_saved
        ret
        end     hold_red_zone_syscall

// hold_red_zone_loop(in, out, count)
        function hold_red_zone_loop
        .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
        mov     8*(\n-1)(%rdi), %rax
        mov     %rax, -8*\n(%rsp)
        .endr
        countdown
        .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
        mov     -8*\n(%rsp), %rax
        mov     %rax, 8*(\n-1)(%rsi)
        .endr
        ret
        end     hold_red_zone_loop

// hold_x87_syscall(in: double[4], out: double[4], call): four values on the x87 stack.
        function hold_x87_syscall
        push_saved
        mov     %rdi, %rbx
        mov     %rsi, %rbp
        fldl    24(%rbx)
        fldl    16(%rbx)
        fldl    8(%rbx)
        fldl    0(%rbx)
        system_call
        fstpl   0(%rbp)
        fstpl   8(%rbp)
        fstpl   16(%rbp)
        fstpl   24(%rbp)
        pop_saved
        ret
        end     hold_x87_syscall

// hold_x87_loop(in, out, count)
        function hold_x87_loop
        fldl    24(%rdi)
        fldl    16(%rdi)
        fldl    8(%rdi)
        fldl    0(%rdi)
        countdown
        fstpl   0(%rsi)
        fstpl   8(%rsi)
        fstpl   16(%rsi)
        fstpl   24(%rsi)
        ret
        end     hold_x87_loop

        .section .note.GNU-stack, "", @progbits

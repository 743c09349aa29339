// One function for each way in which a `syscall` may sit among its neighbours. patch_sample_test patches
// this object and runs it. No labels but function names are symbols: a symbol counts as an entry.

        .macro  function name
        .p2align 4
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        .endm
        .macro  finish name
        .cfi_endproc
        .size   \name, . - \name
        .endm
        // A word of the site table: where something is, from the table's start.
        .macro  site label
        .long   \label - sample_sites
        .endm

        .text
// long(): the plain case.
        function sample_before
.Lbefore:
        movl    $39, %eax
        syscall
        ret
        finish  sample_before

// long(n): n calls, by a branch to the instruction itself; returns 39.
        function sample_loop
        movl    $39, %eax
.Lloop: syscall
        movl    $39, %eax
        decl    %edi
        jnz     .Lloop
        ret
        finish  sample_loop

// long(nr): the number is no constant; the first argument is read relative to rip.
        function sample_rip_before
        movl    %edi, %eax
.Lrip_before:
        movl    sample_zero(%rip), %edi
        syscall
        ret
        finish  sample_rip_before

// long(nr): rip-relative with an immediate behind the displacement.
        function sample_rip_immediate
        movl    %edi, %eax
        xorl    %edi, %edi
.Lrip_immediate:
        movl    $0x12345678, sample_cell(%rip)
        syscall
        ret
        finish  sample_rip_immediate

// long(): entered at the syscall; what stands after it is relative to rip. Returns the call's result + 1000.
        function sample_rip_after
        movl    $39, %eax
        testl   %edi, %edi
        jz      .Lrip_after
        movl    $110, %eax
.Lrip_after:
        syscall
        addq    sample_thousand(%rip), %rax
        ret
        finish  sample_rip_after

// long(nr): a short conditional branch moves; -1 for negative numbers.
        function sample_branch
        movl    %edi, %eax
.Lbranch:
        testl   %eax, %eax
        js      1f
        syscall
        ret
1:      movq    $-1, %rax
        ret
        finish  sample_branch

// long(): flags after the call that were set before it (carry, direction).
        function sample_flags
        std
        stc
        movl    $39, %eax
        syscall
        pushfq
        popq    %rax
        cld
        ret
        finish  sample_flags

// long(): 1 if every register but rax, rcx, r11 and the red zone survive.
        function sample_registers
        pushq   %rbx
        pushq   %rbp
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        .irp    r, rbx, rbp, rdx, rsi, rdi, r8, r9, r10, r12, r13, r14, r15
        leaq    sample_\r(%rip), %\r
        .endr
        .irp    n, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128
        movq    $0x5a000000 + \n, -\n(%rsp)
        .endr
        movl    $39, %eax
        syscall
        xorl    %eax, %eax
        .irp    r, rbx, rbp, rdx, rsi, rdi, r8, r9, r10, r12, r13, r14, r15
        leaq    sample_\r(%rip), %rcx
        cmpq    %rcx, %\r
        jne     1f
        .endr
        .irp    n, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128
        cmpq    $0x5a000000 + \n, -\n(%rsp)
        jne     1f
        .endr
        movl    $1, %eax
1:      popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbp
        popq    %rbx
        ret
        finish  sample_registers

// long(n): a jump table. Cases 0 and 1 load their number; case 2 enters at the syscall with what was
// loaded before the switch (getppid).
        function sample_switch
        leaq    .Ltable(%rip), %rdx
        movslq  (%rdx,%rdi,4), %rcx
        addq    %rdx, %rcx
        movl    $110, %eax
        jmp     *%rcx
.Lcase0:
        movl    $39, %eax
        syscall
        ret
.Lcase1:
        movl    $102, %eax
.Lcase2:
        syscall
        nop
        nop
        nop
        nop
        ret
        finish  sample_switch

// long(): bytes of a syscall within an instruction. Returns the sum.
        function sample_immediate
        movl    $0x050f, %eax
        addl    $0x050f00, %eax
        ret
        finish  sample_immediate

// long(): a constant behind the last instruction, within the unwind entry.
        function sample_constant
        movq    .Linner(%rip), %rax
        ret
.Linner:
        .quad   0x90050f00000027b8
        finish  sample_constant

// A constant between functions.
        .p2align 3
.Louter:
        .quad   0x90050f00000027b8

// Never run: what unwinders know as the return from a signal handler.
        function sample_restorer
.Lrestorer:
        movq    $15, %rax
        syscall
        finish  sample_restorer

// long(n): n calls. Branches enter at the syscall and right behind it: no neighbour can move, but there
// is padding behind the function. Returns the last result, 39 for none.
        function sample_hop
        movl    $39, %eax
        jmp     2f
.Lhop:  syscall
2:      movq    %rax, %rdx
        movl    $39, %eax
        decl    %edi
        jns     .Lhop
        movq    %rdx, %rax
        ret
        finish  sample_hop
        .p2align 5
        .p2align 6

// The same without any padding near: the next function follows at once.
        function sample_no_padding
        movl    $39, %eax
        jmp     2f
.Lno_padding:
        syscall
2:      movq    %rax, %rdx
        movl    $39, %eax
        decl    %edi
        jns     .Lno_padding
        movq    %rdx, %rax
        ret
        finish  sample_no_padding
        .type   sample_neighbour, @function
        .globl  sample_neighbour
sample_neighbour:
        .cfi_startproc
        movl    $7, %eax
        movl    $9, %edx
        addl    %edx, %eax
        ret
        finish  sample_neighbour

// long(): the unwind entry ends before the syscall, as in glibc's clone; no symbol covers the rest.
        .p2align 4
        .globl  sample_split
sample_split:
        .cfi_startproc
        movl    $39, %eax
        .cfi_endproc
        syscall
        ret

// long(cold): the hot part; its cold part jumps back to the syscall with another number (getuid).
        function sample_hot
        testl   %edi, %edi
        jnz     .Lcold
        movl    $39, %eax
.Lhot:  syscall
        nop
        nop
        nop
        ret
        finish  sample_hot

// long(): calls a routine that has neither symbol nor unwind entry.
        function sample_caller
        call    .Lnameless
        ret
        finish  sample_caller
        .p2align 4
.Lnameless:
        movl    $39, %eax
        syscall
        ret

// long(cold): the call itself is in the middle of a cold part, which only a jump from here reaches.
        function sample_cold_call
        testl   %edi, %edi
        jnz     .Lcold_call
        xorl    %eax, %eax
.Lcold_back:
        ret
        finish  sample_cold_call

// long(): two calls side by side; returns the sum.
        function sample_two
        movl    $39, %eax
        syscall
        movl    %eax, %edx
        movl    $110, %eax
        syscall
        addl    %edx, %eax
        ret
        finish  sample_two

// long(fd, buffer, n): the number is a constant made by xor.
        function sample_read
.Lread: xorl    %eax, %eax
        syscall
        ret
        finish  sample_read

// long(n): a constant number some way before, and one that is not on every way.
        function sample_numbers
        movl    $39, %eax
        movq    %rdi, %rsi
        testl   %esi, %esi
        jz      1f
.Lnumber_constant:
        movq    %rsi, %r10
        leaq    8(%rsi), %r8
        syscall
        ret
1:      movl    $102, %eax
        jmp     2f
        movl    $104, %eax
2:      movq    %rsi, %r10
        leaq    8(%rsi), %r8
        syscall
        ret
        finish  sample_numbers

        .section .text.unlikely, "ax", @progbits
        .zero   4096, 0x90
        .cfi_startproc
.Lcold: movl    $102, %eax
        jmp     .Lhot
.Lcold_call:
        movl    $39, %eax
        syscall
        jmp     .Lcold_back
        .cfi_endproc

        .section .rodata
        .p2align 2
.Ltable:
        .long   .Lcase0 - .Ltable, .Lcase1 - .Ltable, .Lcase2 - .Ltable, 0x7fffffff
        .globl  sample_sites
sample_sites:
        site    .Lbefore
        site    .Lloop
        site    .Lrip_before
        site    .Lrip_immediate
        site    .Lrip_after
        site    .Lbranch
        site    .Lcase2
        site    .Linner
        site    .Louter
        site    .Lrestorer
        site    .Lhop
        site    .Lno_padding
        site    .Lhot
        site    .Lread
        .globl  sample_zero, sample_thousand
sample_zero: .long 0
        .p2align 3
sample_thousand: .quad 1000

        .bss
        .globl  sample_cell
        .irp    r, rbx, rbp, rdx, rsi, rdi, r8, r9, r10, r12, r13, r14, r15
sample_\r: .zero 1
        .endr
        .p2align 3
sample_cell: .zero 4
        .section .note.GNU-stack, "", @progbits

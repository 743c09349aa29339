// The places in libc by which a program gets its first thread, before anything else of it is redirected. Each is an
// instruction of five bytes right before a `syscall`, replaced by a jump to here (linux/patch/early.cc). What makes no
// thread goes on as it was. What does: the runtime is set up, which puts the bytes back and redirects the whole
// process, and the instruction is executed once more. It moves to a register only, so that it may be repeated; the
// functions it lies in are libc's own assembly, which keeps nothing in the flags or below the stack pointer there.

        .text

        .macro EARLY index, flags, instruction
        .globl upcall_early_\index
        .hidden upcall_early_\index
        .type upcall_early_\index, @function
        .balign 16
upcall_early_\index:
        \flags
        jnz     1f
        .globl upcall_early_plain_\index
        .hidden upcall_early_plain_\index
upcall_early_plain_\index:
        \instruction
        jmp     *upcall_early_sites+16*\index+8(%rip)
1:      call    upcall_early_setup
        jmp     *upcall_early_sites+16*\index(%rip)
        .size upcall_early_\index, .-upcall_early_\index
        .endm

        // clone: the flags are its first argument. clone3: they come first in what the first argument points to.
        EARLY 0, "testl $0x10000, %edi", "mov $56, %eax"
        EARLY 1, "testl $0x10000, (%rdi)", "mov $435, %eax"
        // syscall(2), the arguments in place: rax may be any number.
        .globl upcall_early_2
        .hidden upcall_early_2
        .type upcall_early_2, @function
        .balign 16
upcall_early_2:
        cmp     $56, %rax
        je      2f
        cmp     $435, %rax
        je      1f
        .globl upcall_early_plain_2
        .hidden upcall_early_plain_2
upcall_early_plain_2:
3:      mov     8(%rsp), %r9
        jmp     *upcall_early_sites+16*2+8(%rip)
2:      test    $0x10000, %edi
        jz      3b
1:      call    upcall_early_setup
        jmp     *upcall_early_sites+16*2(%rip)
        .size upcall_early_2, .-upcall_early_2

        // Keeps every general register. The C++ code uses no others.
        .type upcall_early_setup, @function
        .balign 16
upcall_early_setup:
        .irp    reg, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rbx, rbp
        push    %\reg
        .endr
        mov     %rsp, %rbp
        and     $-16, %rsp
        cld
        call    upcall_first_thread
        mov     %rbp, %rsp
        .irp    reg, rbp, rbx, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
        pop     %\reg
        .endr
        ret
        .size upcall_early_setup, .-upcall_early_setup

        .section .note.GNU-stack,"",@progbits

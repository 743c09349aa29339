// Stacks of the simulated machine: kernel threads, activations and threads are coroutines of one real thread.
        .text

        .macro FUNCTION name
        .globl \name
        .type \name, @function
        .balign 16
\name:
        .endm

// void sim_switch(void** save, void* load): goes on where `load` was saved; returns when somebody loads *save.
FUNCTION sim_switch
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsp, (%rdi)
        mov     %rsi, %rdi
// [[noreturn]] void sim_load(void* load)
FUNCTION sim_load
        mov     %rdi, %rsp
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret

// void sim_call_on(void** save, void* stack_top, void (*f)()): f never returns; this does when somebody loads *save.
FUNCTION sim_call_on
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsp, (%rdi)
        mov     %rsi, %rsp
        and     $-16, %rsp
        xor     %ebp, %ebp
        call    *%rdx
        ud2

// Places that the runtime compares program counters with.
        .globl upcall_blocking_begin
upcall_blocking_begin:
        nop
        .globl upcall_blocking_end
upcall_blocking_end:
        nop
        .globl upcall_blocking_interrupted
upcall_blocking_interrupted:
        ud2

        .section .note.GNU-stack,"",@progbits

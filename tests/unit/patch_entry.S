// What the stubs of patched code jump to in the unit tests: counts, then performs the call plainly in the
// stub itself (the `syscall` stands two bytes before `back`, the address in r11). Flags stay untouched.
        .text
        .globl  patch_test_entry
        .type   patch_test_entry, @function
patch_test_entry:
        .cfi_startproc
        movq    patch_test_calls(%rip), %rcx
        leaq    1(%rcx), %rcx
        movq    %rcx, patch_test_calls(%rip)
        movq    %rax, patch_test_last(%rip)
        leaq    -2(%r11), %r11
        jmp     *%r11
        .cfi_endproc
        .size   patch_test_entry, . - patch_test_entry

// void patch_test_set_gs(unsigned long)
        .globl  patch_test_set_gs
        .type   patch_test_set_gs, @function
patch_test_set_gs:
        .cfi_startproc
        wrgsbase %rdi
        ret
        .cfi_endproc
        .size   patch_test_set_gs, . - patch_test_set_gs

        .bss
        .globl  patch_test_calls, patch_test_last
        .balign 8
patch_test_calls: .zero 8
patch_test_last:  .zero 8
        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: MIT
//
// The entries of the interposed dlopen and dlsym. Both go on to the real function by a jump, so
// that it sees the caller's return address: glibc takes the caller's RUNPATH (dlopen) and the
// object after the caller's (RTLD_NEXT) from it.

        .text

        .globl  dlopen
        .type   dlopen, @function
dlopen:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        subq    $16, %rsp
        .cfi_adjust_cfa_offset 16
        movl    %esi, %edi
        call    gh_dlopen_flags
        movl    %eax, 8(%rsp)
        call    gh_real_dlopen
        movl    8(%rsp), %esi
        addq    $16, %rsp
        .cfi_adjust_cfa_offset -16
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_endproc
        .size   dlopen, .-dlopen

        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    gh_dlsym_answer
        testq   %rax, %rax
        jne     1f
        call    gh_real_dlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_adjust_cfa_offset 24
1:      addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        ret
        .cfi_endproc
        .size   dlsym, .-dlsym

        .section .note.GNU-stack, "", @progbits

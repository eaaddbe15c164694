// SPDX-License-Identifier: MIT
//
// The thunks of thunks.h, 32 bytes each, one for every entry of every slot. A call may pass
// arguments in any of the argument registers and on the stack; all are as they came when the
// driver's function is entered.

#define THUNKS 1792

        .text
        .balign 32
        .globl  gh_ze_thunk_code
        .hidden gh_ze_thunk_code
        .type   gh_ze_thunk_code, @function
gh_ze_thunk_code:
        .set    index, 0
        .rept   THUNKS
        .balign 32
        .cfi_startproc
        endbr64
        cmpb    $0, gh_gpu_pending(%rip)
        movl    $index, %eax
        jne     slow
        jmp     *(gh_ze_thunk_real + 8 * index)(%rip)
        .cfi_endproc
        .set    index, index + 1
        .endr
        .size   gh_ze_thunk_code, .-gh_ze_thunk_code

        .balign 16
        .type   slow, @function
slow:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        pushq   %r8
        pushq   %r9
        pushq   %r10
        pushq   %rax
        subq    $128, %rsp
        movups  %xmm0, (%rsp)
        movups  %xmm1, 16(%rsp)
        movups  %xmm2, 32(%rsp)
        movups  %xmm3, 48(%rsp)
        movups  %xmm4, 64(%rsp)
        movups  %xmm5, 80(%rsp)
        movups  %xmm6, 96(%rsp)
        movups  %xmm7, 112(%rsp)
        .cfi_def_cfa_register %rbp
        call    gh_ze_thunk_slow
        movups  (%rsp), %xmm0
        movups  16(%rsp), %xmm1
        movups  32(%rsp), %xmm2
        movups  48(%rsp), %xmm3
        movups  64(%rsp), %xmm4
        movups  80(%rsp), %xmm5
        movups  96(%rsp), %xmm6
        movups  112(%rsp), %xmm7
        addq    $128, %rsp
        popq    %rax
        popq    %r10
        popq    %r9
        popq    %r8
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        .cfi_restore %rbp
        leaq    gh_ze_thunk_real(%rip), %r11
        jmp     *(%r11, %rax, 8)
        .cfi_endproc
        .size   slow, .-slow

        .section .note.GNU-stack, "", @progbits

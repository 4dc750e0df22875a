/* SPDX-License-Identifier: MIT */
/*
 * Moves a function of the system's that -fsplit-stack code calls without being asked to, such as
 * _Unwind_Resume at the end of a cleanup, to the thread's stack. Assembled once for every such
 * function with HAFT_WRAP defined as its name; the program is linked with --wrap=name.
 * All arguments must be in registers.
 */
#define JOIN(a, b) JOIN_(a, b)
#define JOIN_(a, b) a##b
#define WRAPPER JOIN(__wrap_, HAFT_WRAP)
#define REAL JOIN(__real_, HAFT_WRAP)

        .text
        .globl  WRAPPER
        .hidden WRAPPER
        .type   WRAPPER, @function
        .p2align 4
WRAPPER:
        .cfi_startproc
        movq    REAL@GOTPCREL(%rip), %r11
        cmpq    $0, %fs:0x70
        je      1f
        call    haft_switch_to_thread_stack
        ret
1:      jmp     *%r11
        .cfi_endproc
        .size   WRAPPER, . - WRAPPER

/* For gold: callers need no room for these, and these have no prologue to change. */
        .section .note.GNU-split-stack, "", @progbits
        .section .note.GNU-no-split-stack, "", @progbits
        .section .note.GNU-stack, "", @progbits

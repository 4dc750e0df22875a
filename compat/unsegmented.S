/* SPDX-License-Identifier: MIT */
/*
 * The functions that code compiled with -fsplit-stack finds in libhaft-compat when it needs more
 * stack. Coroutines there have stacks of the default kind, and the check of such code would compare
 * with a limit that is not set: a fault without a message. So the linker stops, at a name that
 * tells what to do.
 *
 * (libhaft-split, which knows both kinds of stacks, may come before libhaft-compat.)
 */
        .text
        .globl  __morestack
        .type   __morestack, @function
__morestack:
        jmp     code_compiled_with_fsplit_stack_needs_haft_seff_segmented_instead_of_haft_seff
        .size   __morestack, . - __morestack

        .section .note.GNU-split-stack, "", @progbits
        .section .note.GNU-no-split-stack, "", @progbits
        .section .note.GNU-stack, "", @progbits

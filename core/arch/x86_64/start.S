/* SPDX-License-Identifier: MIT */
/*
 * The first frame of every fiber, x86-64.
 *
 * Entered by a switch:  rbp  the fiber's `resumer`, 64 bytes into its header
 *                       rsp  the high end of the stack, 16-byte aligned
 *
 *   high  | haft_fiber_t: ...              |
 *         |   resumer: fp, pc, sp, base    | <- rbp
 *         |   context: fp, pc, sp, base    |
 *         | return address into this frame |
 *         | haft_fiber_run ...             |
 *
 * While the fiber runs, `resumer` is the context of its parent. The unwind information below finds
 * the parent there, and so does a walk along frame pointers, because a context begins like a frame
 * record.
 *
 * The call lies under the local symbol __morestack: debuggers accept that the stack goes on
 * at a lower address past a frame of that name (they know it from split stacks).
 *
 * The personality routine catches exceptions that leave the fiber's function; they arrive at
 * haft_fiber_caught with the exception in rax.
 */
    .text
    .p2align 4
    .globl haft_fiber_start
    .hidden haft_fiber_start
    .type haft_fiber_start, @function
haft_fiber_start:
    .cfi_startproc
    .cfi_personality 0x9b, haft_base_personality_reference
    .cfi_escape 0x0f, 0x03, 0x76, 0x10, 0x06 /* CFA = [rbp + 16], the parent's sp */
    .cfi_escape 0x10, 0x10, 0x02, 0x76, 0x08 /* return address at rbp + 8 */
    .cfi_escape 0x10, 0x06, 0x02, 0x76, 0x00 /* rbp at rbp + 0 */
    .cfi_escape 0x10, 0x03, 0x02, 0x76, 0x18 /* rbx at rbp + 24 */
    jc 1f
    xorl %edx, %edx /* words that are not special: HAFTI_WAKE_REPLY */
1:
    leaq -64(%rbp), %rdi
    movq %rax, %rsi /* the words of the switch; the second is in rdx */
    .size haft_fiber_start, . - haft_fiber_start
    .type __morestack, @function
__morestack:
    call haft_fiber_run
1:
    leaq -64(%rbp), %rdi
    leaq 1b(%rip), %rax
    pushq %rax /* a return address for unwinders, without a call that would never return */
    jmp haft_fiber_returned
    .globl haft_fiber_caught
    .hidden haft_fiber_caught
haft_fiber_caught:
    leaq -64(%rbp), %rdi
    movq %rax, %rsi
    call haft_fiber_threw
    ud2
    .size __morestack, . - __morestack
    .cfi_endproc
    .globl haft_fiber_start_end
    .hidden haft_fiber_start_end
haft_fiber_start_end:

/*
 * int haft_walk_from(hafti_context_t *context, int (*walk)(void *), void *argument)
 *
 * Calls walk(argument) in such a way that to an unwinder the caller seems to be whatever `context`
 * holds: for backtraces of code that is not running. Returns normally.
 */
    .p2align 4
    .globl haft_walk_from
    .hidden haft_walk_from
    .type haft_walk_from, @function
haft_walk_from:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    movq %rdi, %rbp
    .cfi_remember_state
    .cfi_escape 0x0f, 0x03, 0x76, 0x10, 0x06
    .cfi_escape 0x10, 0x10, 0x02, 0x76, 0x08
    .cfi_escape 0x10, 0x06, 0x02, 0x76, 0x00
    .cfi_escape 0x10, 0x03, 0x02, 0x76, 0x18
    movq %rdx, %rdi
    call *%rsi
    .cfi_restore_state
    popq %rbp
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size haft_walk_from, . - haft_walk_from

    .section .data.rel.ro.local,"aw",@progbits
    .p2align 3
haft_base_personality_reference:
    .quad haft_base_personality

    .section .note.GNU-stack,"",@progbits

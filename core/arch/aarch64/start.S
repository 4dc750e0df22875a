/* SPDX-License-Identifier: MIT */
/*
 * The first frame of every fiber, AArch64.
 *
 * Entered by a switch:  x29  the fiber's `resumer`, 64 bytes into its header
 *                       sp   the high end of the stack, 16-byte aligned
 *
 *   high  | haft_fiber_t: ...              |
 *         |   resumer: fp, pc, sp, base    | <- x29
 *         |   context: fp, pc, sp, base    | <- sp
 *         | haft_fiber_run ...             |    saves x29 and the return address into this frame
 *
 * While the fiber runs, `resumer` is the context of its parent. The unwind information below finds
 * the parent there, and so does a walk along frame pointers, because a context begins like a frame
 * record.
 *
 * The call and its return address lie under the local symbol __morestack: debuggers accept that the
 * stack goes on at a lower address past a frame of that name (they know it from split stacks).
 *
 * The personality routine catches exceptions that leave the fiber's function; they arrive at
 * haft_fiber_caught with the exception in x0.
 *
 * `bti j` (hint 36) or `bti c` (hint 34) stands wherever a branch through a register may arrive.
 * Processors without branch target identification take both for no-ops.
 */
    .text
    .p2align 4
    .globl haft_fiber_start
    .hidden haft_fiber_start
    .type haft_fiber_start, %function
haft_fiber_start:
    .cfi_startproc
    .cfi_personality 0x9b, haft_base_personality_reference
    .cfi_escape 0x0f, 0x03, 0x8d, 0x10, 0x06 /* CFA = [x29 + 16], the parent's sp */
    .cfi_escape 0x10, 0x1e, 0x02, 0x8d, 0x08 /* return address (x30) at x29 + 8 */
    .cfi_escape 0x10, 0x1d, 0x02, 0x8d, 0x00 /* x29 at x29 + 0 */
    .cfi_escape 0x10, 0x13, 0x02, 0x8d, 0x18 /* x19 at x29 + 24 */
    hint #36
    sub x0, x29, #64
    mov x1, x2 /* the words of the switch */
    cmp x4, #0 /* that are not special: HAFTI_WAKE_REPLY */
    csel x2, x3, xzr, ne
    .size haft_fiber_start, . - haft_fiber_start
    .type __morestack, %function
__morestack:
    bl haft_fiber_run
1:
    sub x0, x29, #64
    adr x30, 1b /* as if called */
    b haft_fiber_returned
    .globl haft_fiber_caught
    .hidden haft_fiber_caught
haft_fiber_caught:
    hint #36
    mov x1, x0
    sub x0, x29, #64
    bl haft_fiber_threw
    brk #1
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
    .type haft_walk_from, %function
haft_walk_from:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    mov x29, x0
    .cfi_remember_state
    .cfi_escape 0x0f, 0x03, 0x8d, 0x10, 0x06
    .cfi_escape 0x10, 0x1e, 0x02, 0x8d, 0x08
    .cfi_escape 0x10, 0x1d, 0x02, 0x8d, 0x00
    .cfi_escape 0x10, 0x13, 0x02, 0x8d, 0x18
    mov x0, x2
    blr x1
    .cfi_restore_state
    ldp x29, x30, [sp], #16
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size haft_walk_from, . - haft_walk_from

    .section .data.rel.ro.local,"aw",%progbits
    .p2align 3
haft_base_personality_reference:
    .xword haft_base_personality

#ifdef __ARM_FEATURE_BTI_DEFAULT
/* This file keeps to branch target identification: without the note the linker would turn it off
   for the whole program. */
    .section .note.gnu.property,"a",%note
    .p2align 3
    .word 4, 16, 5 /* sizes of name and contents; NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .word 0xc0000000, 4, 1, 0 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI */
#endif

    .section .note.GNU-stack,"",%progbits

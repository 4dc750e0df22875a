/* SPDX-License-Identifier: MIT */
/*
 * Where programs enter the library's larger functions (src/entries.h): on a segmented fiber there may be
 * next to no stack left. A limit word of 0, which means that there is no segment, passes every test.
 */
#include "haft/segments.h"

#define LIMIT %fs:0x70
/* What the functions that stay on the fiber have for themselves and what they call in the system. */
#define ROOM 6144

/* Goes to the function itself, on the thread's foreign stack if this is a segment. */
        .macro  on_foreign_stack name
        .hidden haft_entry_\name
        .globl  haft_\name
        .type   haft_\name, @function
        .p2align 4
haft_\name:
        .cfi_startproc
        cmpq    $0, LIMIT
        jne     1f
        jmp     haft_entry_\name
1:      leaq    haft_entry_\name(%rip), %r11
        call    haft_switch_to_thread_stack
        ret
        .cfi_endproc
        .size   haft_\name, . - haft_\name
        .endm

/* Goes to the function itself, on the next segment if this one has less than ROOM left: what the prologue
   of -fsplit-stack code does. */
        .macro  with_room name
        .hidden haft_entry_\name
        .globl  haft_\name
        .type   haft_\name, @function
        .p2align 4
haft_\name:
        .cfi_startproc
        leaq    -ROOM(%rsp), %r10
        cmpq    LIMIT, %r10
        jb      1f
        jmp     haft_entry_\name
1:      movl    $ROOM, %r10d
        xorl    %r11d, %r11d
        call    haft_morestack
        ret
        jmp     haft_entry_\name
        .cfi_endproc
        .size   haft_\name, . - haft_\name
        .endm

        .text
        .irp    name, lookup, lookup_at, locate, unhandled, no_reply, no_case, resume_raced, used_resumption, fiber_new, fiber_new_sized, fiber_detach, handles_changed, fiber_reserve, set_stack_size, fiber_backtrace, fibers_dump, dump_on_signal, pool_report_sized, pool_trim, reply, in_place_moved, language_register, language_thread, language_take, language_give, language_moved
        on_foreign_stack \name
        .endr

        .irp    name, resume_slow, resume_checked, resume_calling, discontinue, fiber_drop, fiber_reset, handle, handle_sized, resumption_resume, resumption_discontinue, resumption_drop, perform, yield, yield_slow, throw, exit, unwind_to, misused, language_leave
        with_room \name
        .endr

        .section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: MIT */
/*
 * Where programs enter the library's larger functions (src/entry_list.h): on a segmented fiber
 * there may be next to no stack left. A limit word of 0, which means that there is no segment,
 * passes every test.
 */
#include "haft/inner/segments.h"

#define LIMIT %fs:0x70
/* Goes to the function itself, on the thread's foreign stack if this is a segment. */
        .macro  on_foreign_stack name
        .hidden \name\()_entry
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        cmpq    $0, LIMIT
        jne     1f
        jmp     \name\()_entry
1:      leaq    \name\()_entry(%rip), %r11
        call    haft_switch_to_thread_stack
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

/* Goes to the function itself, on the next segment if this one has less than `room` left, like the
   prologue of -fsplit-stack code. With a `room` of 0 there is no check: the function makes do with
   the slack of a segment, of which its caller may have used some. */
        .macro  with_room name, room
        .hidden \name\()_entry
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .if     \room
        leaq    -\room(%rsp), %r10
        cmpq    LIMIT, %r10
        jb      1f
        .endif
        jmp     \name\()_entry
        .if     \room
1:      movl    $\room, %r10d
        xorl    %r11d, %r11d
        call    haft_morestack
        ret
        jmp     \name\()_entry
        .endif
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .text
#define HAFT_ENTRY_FOREIGN(name) on_foreign_stack name
#define HAFT_ENTRY_STAYS(name, room) with_room name, room
#include "entry_list.h"

        .section .note.GNU-stack, "", @progbits

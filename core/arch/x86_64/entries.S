/* SPDX-License-Identifier: MIT */
/*
 * Where programs enter the library's larger functions (src/entry_list.h): on a segmented fiber
 * there may be next to no stack left. A limit word of 0, which means that there is no segment,
 * passes every test.
 */
#include "haft/inner/segments.h"

#define LIMIT %fs:0x70
/* The state of a fiber lies there; first_frame.c compares both with C. */
#define AT_STATE 432
#define FINISHED 3
#define ROOM_TO_ARRIVE 6144

/* The beginning of an entry: goes to the function itself where there is no segment, otherwise to
   the label 1. */
        .macro  begins_off_segments name
        .hidden \name\()_entry
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        cmpq    $0, LIMIT
        jne     1f
        jmp     \name\()_entry
        .endm

/* Goes to the function itself, on the thread's foreign stack if this is a segment. */
        .macro  on_foreign_stack name
        begins_off_segments \name
1:      leaq    \name\()_entry(%rip), %r11
        call    haft_switch_to_thread_stack
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

/* Goes to `target`, on the next segment if this one has less than `room` left, like the prologue of
   -fsplit-stack code. With a `room` of 0 there is no check: the function makes do with the slack of
   a segment, of which its caller may have used some. */
        .macro  with_room name, target, room
        .hidden \target
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
        jmp     \target
        .if     \room
1:      movl    $\room, %r10d
        xorl    %r11d, %r11d
        call    haft_morestack
        ret
        jmp     \target
        .endif
        .cfi_endproc
        .size   \name, . - \name
        .endm

/* Goes to the function itself; from a segment by `short` instead, which may go on to `roomy`. */
        .macro  resumes name, short, roomy, room
        .hidden \short
        .hidden \roomy
        begins_off_segments \name
1:      jmp     \short
        .cfi_endproc
        .size   \name, . - \name
        with_room \roomy, \name\()_entry, \room
        .endm

/* Goes to the function itself: on the foreign stack if its argument, a fiber, has finished,
   otherwise with room. */
        .macro  ends name, room
        begins_off_segments \name
1:      testq   %rdi, %rdi
        jz      2f
        cmpl    $FINISHED, AT_STATE(%rdi)
        jne     3f
        leaq    \name\()_entry(%rip), %r11
        call    haft_switch_to_thread_stack
2:      ret
3:      jmp     \name\()_with_room
        .cfi_endproc
        .size   \name, . - \name
        .hidden \name\()_with_room
        with_room \name\()_with_room, \name\()_entry, \room
        .endm

        .text
#define HAFT_ENTRY_FOREIGN(name) on_foreign_stack name
#define HAFT_ENTRY_STAYS(name, room) with_room name, name##_entry, room
#define HAFT_ENTRY_RESUMES(name, short, roomy, room) resumes name, short, roomy, room
#define HAFT_ENTRY_ENDS(name, room) ends name, room
#include "entry_list.h"

/* The end of a short resume, if there is more to do. */
        .hidden haft_arrived_with_room
        with_room haft_arrived_with_room, haft_arrived_on_segment, ROOM_TO_ARRIVE

/* For gold: callers need no room for these, and these have no prologue to change. */
        .section .note.GNU-split-stack, "", @progbits
        .section .note.GNU-no-split-stack, "", @progbits
        .section .note.GNU-stack, "", @progbits

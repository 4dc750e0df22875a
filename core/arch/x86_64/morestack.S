/* SPDX-License-Identifier: MIT */
/*
 * The entry points that -fsplit-stack code of gcc and clang calls when its stack is used up, and
 * the call from a segmented fiber to the thread's foreign stack. haft/inner/segments.h draws a
 * segment; src/segments.c finds and makes them.
 *
 * The prologue of a function F that found too little room:
 *
 *     mov  $frame size, %r10d
 *     mov  $bytes of arguments on the stack, %r11d
 *     call __morestack
 *     ret                       <- __morestack returns here
 *     ...                       <- and calls this, F itself, on the next segment
 *
 * The stacks while F runs there:
 *
 *     segment of F's caller, C                  next segment
 *     +----------------------------+            +----------------------------+ top
 *     | F's arguments              |            | copy of the arguments      |
 *     | return to C                |            | return to __morestack      |
 *     | return to F's `ret`        |            | frame of F                 |
 *     | C's rbp       <- rbp       |            |                     <- rsp |
 *     | C's rbx                    |            .                            .
 *     .                            .
 *
 * rbx holds the limit word of C's segment meanwhile: saved where every callee preserves it, it
 * costs the next call less than a load from the frame would. Unwinding passes from F to C at once
 * (the return address is taken to be the one into C): F's prologue has no call site that the
 * language's personality routine would know. Our own personality routine restores the limit word.
 *
 * gdb demands that the stack pointers of successive frames grow, except past a function of the name
 * __morestack: so everything that runs on another stack is called from within that function.
 */
#include "haft/inner/segments.h"

#define LIMIT %fs:0x70
/* Fields of the segment that a limit word belongs to. */
#define NEXT (HAFTI_SEGMENT_NEXT - HAFTI_SEGMENT_HEADER - HAFTI_SEGMENT_SLACK)
#define TOP (HAFTI_SEGMENT_TOP - HAFTI_SEGMENT_HEADER - HAFTI_SEGMENT_SLACK)
#define ROOM (HAFTI_SEGMENT_ROOM - HAFTI_SEGMENT_HEADER - HAFTI_SEGMENT_SLACK)

/* A copy of the arguments begins at a multiple of this, so that any that are over-aligned
   (vectors) remain so. */
#define ARGUMENT_ALIGNMENT 64

#define RED_ZONE 128

/* r10: frame size, r11: bytes of arguments. All other registers may hold arguments, rax the static
   chain or the number of vector arguments. */
        .text
        .globl  __morestack
        .hidden __morestack
        .type   __morestack, @function
        .p2align 6
__morestack:
        .cfi_startproc
        .cfi_personality 0x9b, DW.ref.hafti_segments_personality
        .cfi_def_cfa_offset 16
        pushq   %rbp
        .cfi_def_cfa_offset 24
        .cfi_offset %rbp, -24
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rbx
        .cfi_offset %rbx, -32
        movq    LIMIT, %rbx
.Lretry:
        testq   %r11, %r11
        jnz     .Larguments
        movq    NEXT(%rbx), %r11
        cmpq    ROOM(%r11), %r10
        jae     .Lgrow
        movq    TOP(%r11), %rsp
        movq    %r11, LIMIT
        movq    8(%rbp), %r10
        incq    %r10
.Lrun:
        call    *%r10
        movq    %rbx, LIMIT
        movq    -8(%rbp), %rbx
        .cfi_remember_state
        .cfi_restore %rbx
        leave
        .cfi_restore %rbp
        .cfi_def_cfa %rsp, 16
        ret

.Larguments:
        .cfi_restore_state
        pushq   %r11
        leaq    ARGUMENT_ALIGNMENT(%r10, %r11), %r10
        movq    NEXT(%rbx), %r11
        cmpq    ROOM(%r11), %r10
        jae     .Lgrow_arguments
        movq    %r11, LIMIT
        movq    TOP(%r11), %r11
        movq    -16(%rbp), %r10
        addq    $7, %r10
        andq    $-8, %r10
        subq    %r10, %r11
        andq    $-ARGUMENT_ALIGNMENT, %r11
        leaq    (%r11, %r10), %rsp
1:      pushq   16(%rbp, %r10)
        subq    $8, %r10
        jnz     1b
        movq    8(%rbp), %r10
        incq    %r10
        jmp     .Lrun

/* The next segment does not exist or is too small. Puts one there, on the thread's stack, keeping
   every register that may hold an argument; then begins again. */
.Lgrow_arguments:
        movq    -16(%rbp), %r11
        subq    %r11, %r10
        subq    $ARGUMENT_ALIGNMENT, %r10
        jmp     1f
.Lgrow:
        xorl    %r11d, %r11d
1:      pushq   %r11
        movq    hafti_thread_stack_pointer@gottpoff(%rip), %r11
        movq    %fs:(%r11), %r11
        subq    $RED_ZONE + 64, %r11
        andq    $-64, %r11
        movq    %r10, (%r11)
        popq    %r10
        movq    %r10, 8(%r11)
        movq    %r11, %rsp
        movq    %rax, 16(%rsp)
        movq    %rdi, 24(%rsp)
        movq    %rsi, 32(%rsp)
        movq    %rdx, 40(%rsp)
        movq    %rcx, 48(%rsp)
        movq    %r8, 56(%rsp)
        pushq   %r9
        subq    $8 * 64 + 56, %rsp
        movq    hafti_segments_vectors@GOTPCREL(%rip), %rax
        movl    (%rax), %eax
        cmpl    $1, %eax
        ja      2f
        je      1f
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movaps  %xmm\n, 64 * \n(%rsp)
        .endr
        jmp     3f
1:      .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        vmovaps %ymm\n, 64 * \n(%rsp)
        .endr
        jmp     3f
2:      .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        vmovaps %zmm\n, 64 * \n(%rsp)
        .endr
3:      movq    %rbx, %rdi
        movq    $ARGUMENT_ALIGNMENT, %rsi
        addq    8 * 64 + 64(%rsp), %rsi
        addq    8 * 64 + 72(%rsp), %rsi
        movq    $0, LIMIT
        call    *hafti_segments_grow@GOTPCREL(%rip)
        movq    %rbx, LIMIT
        movq    hafti_segments_vectors@GOTPCREL(%rip), %rax
        movl    (%rax), %eax
        cmpl    $1, %eax
        ja      2f
        je      1f
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movaps  64 * \n(%rsp), %xmm\n
        .endr
        jmp     3f
1:      .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        vmovaps 64 * \n(%rsp), %ymm\n
        .endr
        jmp     3f
2:      .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        vmovaps 64 * \n(%rsp), %zmm\n
        .endr
3:      addq    $8 * 64 + 56, %rsp
        popq    %r9
        movq    (%rsp), %r10
        movq    8(%rsp), %r11
        movq    16(%rsp), %rax
        movq    24(%rsp), %rdi
        movq    32(%rsp), %rsi
        movq    40(%rsp), %rdx
        movq    48(%rsp), %rcx
        movq    56(%rsp), %r8
        leaq    -8(%rbp), %rsp
        jmp     .Lretry

/* Calls r11 on the thread's stack with the arguments in registers. Called as a prologue calls
   __morestack: the caller's own return address is above ours. */
        .globl  haft_switch_to_thread_stack
        .hidden haft_switch_to_thread_stack
haft_switch_to_thread_stack:
        .cfi_restore %rbx
        .cfi_restore %rbp
        .cfi_def_cfa %rsp, 16
        pushq   %rbp
        .cfi_def_cfa_offset 24
        .cfi_offset %rbp, -24
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rbx
        .cfi_offset %rbx, -32
        movq    LIMIT, %rbx
        movq    hafti_thread_stack_pointer@gottpoff(%rip), %r10
        movq    %fs:(%r10), %rsp
        subq    $RED_ZONE, %rsp
        andq    $-64, %rsp
        movq    $0, LIMIT
        movq    %r11, %r10
        jmp     .Lrun
        .cfi_endproc
        .size   __morestack, . - __morestack

/* The same for the library itself: another library before this one may have a __morestack, too. */
        .globl  haft_morestack
        .hidden haft_morestack
        .type   haft_morestack, @function
haft_morestack:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        jmp     __morestack
        .cfi_endproc
        .size   haft_morestack, . - haft_morestack

/* void haft_on_thread_stack(void (*function)(void *), void *argument) */
        .globl  haft_on_thread_stack
        .type   haft_on_thread_stack, @function
        .p2align 4
haft_on_thread_stack:
        .cfi_startproc
        movq    %rdi, %r11
        movq    %rsi, %rdi
        cmpq    $0, LIMIT
        je      1f
        call    haft_switch_to_thread_stack
        ret
1:      jmp     *%r11
        .cfi_endproc
        .size   haft_on_thread_stack, . - haft_on_thread_stack

/* Like __morestack, but for a function that calls others which do not check their stack (gold and
   lld put it into the prologue of such functions). If there is room enough, or the stack needs no
   checks, the function goes on where it is. */
        .globl  __morestack_non_split
        .hidden __morestack_non_split
        .type   __morestack_non_split, @function
        .p2align 4
__morestack_non_split:
        .cfi_startproc
        addq    $HAFTI_SEGMENT_FOREIGN_ROOM, %r10
        negq    %r10
        addq    %rsp, %r10
        cmpq    LIMIT, %r10
        jae     1f
        subq    %rsp, %r10
        negq    %r10
        jmp     __morestack
1:      popq    %r10
        .cfi_adjust_cfa_offset -8
        incq    %r10
        cmpl    $0xfa1e0ff3, (%r10)     /* endbr64 */
        jne     2f
        addq    $4, %r10
/* A variadic function goes on with the instruction that finds its arguments from __morestack's
   frame; without one, they are here. */
2:      cmpl    $0x185d8d4c, (%r10)     /* lea 24(%rbp), %r11 */
        jne     3f
        leaq    8(%rsp), %r11
        addq    $4, %r10
3:      jmp     *%r10
        .cfi_endproc
        .size   __morestack_non_split, . - __morestack_non_split

/* void *__morestack_allocate_stack_space(size_t size): memory for alloca where the segment has no
   room for it. It must live until the caller's frame is gone or, for a variable-length array, until
   its scope ends; both raise the stack pointer. So this returns with the stack pointer 16 bytes
   lower and the address of the memory in those bytes: it lives as long as they do. */
        .globl  __morestack_allocate_stack_space
        .hidden __morestack_allocate_stack_space
        .type   __morestack_allocate_stack_space, @function
        .p2align 4
__morestack_allocate_stack_space:
        .cfi_startproc
        leaq    8(%rsp), %rsi
        movq    LIMIT, %rdx
        testq   %rdx, %rdx
        jz      2f
        movq    hafti_segments_allocate@GOTPCREL(%rip), %r11
        call    1f
        leaq    8(%rsp), %r8
        .cfi_def_cfa %r8, 0
        testq   %rdx, %rdx
        jz      3f
        movq    (%rsp), %rcx
        subq    %rdx, %rsp
        movq    %rcx, (%rsp)
        movq    %rax, 8(%rsp)
3:      ret
        .cfi_def_cfa %rsp, 16
1:      jmp     haft_switch_to_thread_stack
        .cfi_def_cfa %rsp, 8
2:      movq    %rsi, %rax              /* not segmented: below the stack, as without checks */
        subq    %rdi, %rax
        xorl    %edx, %edx
        ret
        .cfi_endproc
        .size   __morestack_allocate_stack_space, . - __morestack_allocate_stack_space

        .hidden DW.ref.hafti_segments_personality
        .weak   DW.ref.hafti_segments_personality
        .section .data.rel.local.DW.ref.hafti_segments_personality, "awG", \
                 @progbits, DW.ref.hafti_segments_personality, comdat
        .p2align 3
        .type   DW.ref.hafti_segments_personality, @object
        .size   DW.ref.hafti_segments_personality, 8
DW.ref.hafti_segments_personality:
        .quad   hafti_segments_personality

/* For gold: callers need no room for these, and these have no prologue to change. */
        .section .note.GNU-split-stack, "", @progbits
        .section .note.GNU-no-split-stack, "", @progbits
        .section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: MIT */
/*
 * Switches between the fibers of OCaml, AArch64, in the calling convention of OCaml 4: arguments in
 * x0, x1, x2, x3; the result in x0; x26 is the exception pointer, x27 the allocation pointer, x28
 * the runtime's state, all live throughout; nothing else is preserved by callees. OCaml code calls
 * these as closures, so that calls in tail position are jumps, which the compiler never makes of
 * externals.
 *
 * The layouts of fibers and continuations are drawn in layout.h. Throughout: x20 is the fiber that
 * is entered or left, x21 libhaft's state of the thread; functions of C preserve both.
 *
 * A switch saves sp, the return address, the exception pointer and the local roots of C. Everything
 * else that the runtime keeps for the running code is dead at a call of OCaml code.
 *
 * The same functions in the same order as for x86-64. The difference: a function is entered with
 * its return address in x30 rather than on the stack, where the code that reads suspended stacks
 * expects it. So code that leaves a stack first puts two words on it, the exception pointer (or
 * anything) and the return address. (One instruction moves sp and writes them: below sp a signal
 * may write at any time.)
 */
#include "layout.h"

        .set    domain_state_field, 0
#define DOMAIN_STATE(type, name)                                                                   \
        .equ    domain_state_##name, domain_state_field;                                           \
        .set    domain_state_field, domain_state_field + 8
#include <caml/domain_state.tbl>
#undef DOMAIN_STATE
#define STATE(name) [x28, #domain_state_##name]

        .macro  function name
        .globl  \name
        .hidden \name
        .type   \name, %function
        .p2align 4
\name:
        .cfi_startproc
        .endm

        .macro  end_function name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .macro  address register, name
        adrp    \register, \name
        add     \register, \register, :lo12:\name
        .endm

        .macro  load register, name
        adrp    \register, \name
        ldr     \register, [\register, :lo12:\name]
        .endm

        .macro  store register, name, scratch
        adrp    \scratch, \name
        str     \register, [\scratch, :lo12:\name]
        .endm

        .macro  call_closure instruction, closure
        ldr     x9, [\closure]
        \instruction x9
        .endm

/* The words that code which leaves a stack puts on it. */
        .macro  leave_stack
        stp     x26, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        .endm

        .macro  return_by_jump
        br      x30
        .endm

        .macro  load_thread
        mrs     x21, tpidr_el0
        adrp    x9, :gottprel:hafti_thread_state
        ldr     x9, [x9, :gottprel_lo12:hafti_thread_state]
        add     x21, x21, x9
        .endm

/* Calls a function of C that keeps x0 to x3 and x30 for us; its result goes to x9. */
        .macro  call_c function, first=x20, second=x3
        mov     x19, x30
        .cfi_register x30, x19
        mov     x22, x0
        mov     x23, x1
        mov     x24, x2
        mov     x25, x3
        mov     x0, \first
        mov     x1, \second
        bl      \function
        mov     x9, x0
        mov     x0, x22
        mov     x1, x23
        mov     x2, x24
        mov     x3, x25
        mov     x30, x19
        .cfi_restore x30
        .endm

/* Whether the fiber in x20 may be suspended here, which the function of C decides: the result is in
   the flags. Keeps x0. */
        .macro  ask_may_suspend function
        leave_stack
        mov     x3, sp
        call_c  \function, x20, x3
        add     sp, sp, #16
        .cfi_adjust_cfa_offset -16
        tst     w9, #255
        .endm

/* Back to the parent of the fiber in x20, without its local roots: its registers, its place in the
   chain. (The return address is the one on its stack: nests.c may have changed where a fiber
   ends.) */
        .macro  to_parent
        ldr     x9, [x20, #FIBER_OUTER]
        ldr     x26, [x20, #FIBER_PARENT_EXCEPTION]
        str     x9, [x21, #THREAD_CURRENT]
        ldr     x9, [x20, #FIBER_PARENT_SP]
        ldr     x30, [x9, #-8]
        mov     sp, x9
        .endm

        .macro  to_parents_roots
        ldr     x9, [x20, #FIBER_PARENT_ROOTS]
        str     x9, STATE(local_roots)
        .endm

/* The caller becomes the parent of the fiber, which has x4 for a continuation from now on; not yet
   its local roots, which are in x11 then. */
        .macro  attach fiber
        leave_stack
        add     x10, sp, #16
        ldr     x11, [x21, #THREAD_CURRENT]
        stp     x10, x30, [\fiber, #FIBER_PARENT]
        str     x10, [\fiber, #FIBER_PARENT_SP]
        str     x11, [\fiber, #FIBER_OUTER]
        ldr     x11, STATE(local_roots)
        str     x26, [\fiber, #FIBER_PARENT_EXCEPTION]
        str     x4, [\fiber, #FIBER_CONTINUATION]
        .endm

/* The innermost fiber of OCaml around the caller, in x20; goes to `far` if other handlers come
   first. The innermost scope is in x4. */
        .macro  find_fiber far
        load_thread
        ldr     x4, [x21, #THREAD_CURRENT]
        address x9, haft_ocaml_handles
        ldr     x10, [x4, #FIBER_HANDLES-FIBER_SCOPE]
        cmp     x9, x10
        b.ne    \far
        sub     x20, x4, #FIBER_SCOPE
        .endm

/* The innermost trap is not that at the base of the fiber in x20, in x10. */
        .macro  compare_traps
        add     x10, x20, #FIBER_TRAP
        cmp     x26, x10
        .endm

/* Goes to `callback` if code that C has called back stands between here and the base of the fiber:
   then one of the traps on the way is that of caml_start_program. */
        .macro  find_callbacks callback
        load    x11, haft_ocaml_callback_trap
        mov     x9, x26
1:      ldr     x12, [x9, #8]
        cmp     x11, x12
        b.eq    \callback
        ldr     x9, [x9]
        cmp     x9, x10
        b.ne    1b
        .endm

/* The fiber in x20, which is suspended otherwise, gets the continuation in x0, whose code is
   `continue`. On to its parent, with the effect in x0, the handler's function for effects in x1,
   the continuation in x2. */
        .macro  capture continue
        mov     x2, x0
        ldr     x0, [x2, #CONTINUATION_EFFECT]
        capture_in \continue
        to_parent
        .endm

/* The fiber gets the continuation in x2, whose state is written; the handler's function for effects
   in x1. */
        .macro  capture_in continue
        ldr     x1, [x20, #FIBER_HANDLER]
        address x9, \continue
        add     x10, x20, #1
        ldr     x1, [x1, #16]
        mov     x11, #CONTINUATION_HEADER
        mov     x12, #CONTINUATION_INFORMATION
        str     x11, [x2, #-8]
        stp     x9, x12, [x2, #CONTINUATION_EFFECT]
        str     x10, [x2, #CONTINUATION_HOLDER]
        str     x2, [x20, #FIBER_CONTINUATION]
        .endm

/* The fiber in x20 has ended. */
        .macro  make_idle
        load    x9, haft_ocaml_idle
        mov     x10, #FIBER_IDLE
        str     x10, [x20, #FIBER_CONTINUATION]
        str     x9, [x20, #FIBER_SP]
        store   x20, haft_ocaml_idle, x9
        .endm

/* A chain is placed no longer. */
        .macro  count_chain_out
        adrp    x10, haft_ocaml_chains
        ldr     x11, [x10, :lo12:haft_ocaml_chains]
        sub     x11, x11, #1
        str     x11, [x10, :lo12:haft_ocaml_chains]
        .endm

/* The settler in x20 has ended. Keeps x0 and x20. */
        .macro  leave_host
        mov     x22, x0
        mov     x0, x20
        bl      haft_ocaml_leave_host
        mov     x0, x22
        .endm

/* There is no memory for a stack: gives back those that nothing refers to any more. Keeps the
   values in the first `used` of x0 to x3. */
        .macro  collect used
        .if     \used < 4
        mov     x3, #1
        .endif
        .if     \used < 3
        mov     x2, #1
        .endif
        adr     x4, 7f
        b       .Lcollect
7:
        .endm

/* From the gap at sp to its parent, whose exception pointer is there already. */
        .macro  leave_gap
        ldr     x9, [sp, #GAP_PARENT]
        ldr     x30, [x9, #-8]
        .cfi_def_cfa x9, 0
        .cfi_same_value x30
        mov     sp, x9
        .cfi_def_cfa sp, 0
        .endm

/* Removes the gaps to which the caller would return: it starts a nested fiber in tail position, and
   each such fiber would leave a gap behind otherwise. Keeps x0, x1 and x2. */
        .macro  pop_gaps
10:     address x9, haft_ocaml_gap_returned
        cmp     x30, x9
        b.eq    12f
        address x10, haft_ocaml_clause_returned
        cmp     x30, x10
        b.ne    14f
        ldr     x10, [sp, #8]
        cmp     x10, x9
        b.ne    14f
        ldp     xzr, x30, [sp], #16
12:     ldr     x9, [sp, #GAP_FIBER]
        cbz     x9, 13f
        call_c  haft_ocaml_shelve_placed
13:     ldr     x26, [sp, #GAP_NEXT]
        leave_gap
        b       10b
14:
        .endm

/* Whether what the caller starts may be nested in the fiber that it runs on (nests.c): goes to
   `no`, or has the scope of that in x4. x5: the caller's stack pointer. */
        .macro  may_nest no
        ldr     x9, [x21, #THREAD_STAMP]
        cbz     x9, \no
        ldr     x4, [x21, #THREAD_CURRENT]
        address x9, haft_ocaml_handles
        ldr     x10, [x4, #FIBER_HANDLES-FIBER_SCOPE]
        cmp     x9, x10
        b.ne    \no
        ldr     x9, [x4, #FIBER_LOW-FIBER_SCOPE]
        load    x10, haft_ocaml_nest_reserve
        sub     x11, x5, x9
        cmp     x11, x10
        b.lo    \no
        load    x10, haft_ocaml_nest_most
        sub     x9, x4, x9
        cmp     x9, x10
        b.hi    \no
        ldr     x9, STATE(local_roots)
        cbnz    x9, \no
        add     x10, x4, #FIBER_TRAP-FIBER_SCOPE
        cmp     x26, x10
        b.eq    8f
        find_callbacks \no
8:
        .endm

/* The place of a nested fiber, where a line of the caches begins: x20, below the caller's stack
   pointer in x5 and the words that are put there. */
        .macro  place_below
        sub     x20, x5, #FIBER_ROOM + 16
        and     x20, x20, #-64
        .endm

/* The header of a nested fiber at x20, without its handler. Its parent's scope is in x4, the
   parent's stack pointer in x5, its return address in x6. The exception pointer is still the
   parent's, sp is the nested fiber's. */
        .macro  nest
        stp     x26, x6, [x5, #-16]
        stp     x5, x6, [x20, #FIBER_PARENT]
        str     x5, [x20, #FIBER_PARENT_SP]
        str     x26, [x20, #FIBER_PARENT_EXCEPTION]
        str     xzr, [x20, #FIBER_PARENT_ROOTS]
        address x9, haft_ocaml_base
        address x10, haft_ocaml_handles
        add     x11, x20, #FIBER_SCOPE
        mov     x12, #YOUNG_END
        str     x12, [x20, #FIBER_YOUNG]
        mov     x12, #FIBER_NESTED
        str     x12, [x20, #FIBER_CONTINUATION]
        str     xzr, [x20, #FIBER_ROOTS]
        str     x9, [x20, #FIBER_BASE_RETURN]
        str     x11, [x20, #FIBER_TOP]
        str     x4, [x20, #FIBER_OUTER]
        str     x10, [x20, #FIBER_HANDLES]
        str     xzr, [x20, #FIBER_SERIAL]
        str     xzr, [x20, #FIBER_SCOPE_STATE]
        .if     FIBER_SCOPE_SLOW - FIBER_SCOPE_KIND != 1 || \
                FIBER_SCOPE_FILLED - FIBER_SCOPE_KIND != 2
        .error  "the kind of a scope, `slow` and `filled` are written as one word"
        .endif
        mov     w12, #(SCOPE_FIBER | 1 << 8)
        mov     x9, #AWAITS_NOTHING
        str     w12, [x20, #FIBER_SCOPE_KIND]
        str     x9, [x20, #FIBER_AWAITS]
        .set    entry, 0
        .rept   FIBER_CACHE_SLOTS
        str     xzr, [x20, #FIBER_CACHE+entry*FIBER_CACHE_STEP]
        .set    entry, entry + 1
        .endr
        ldr     x9, [x4, #FIBER_NAME-FIBER_SCOPE]
        ldr     x10, [x4, #FIBER_LANGUAGE-FIBER_SCOPE]
        ldr     x12, [x4, #FIBER_STATE-FIBER_SCOPE] /* and `kind` */
        str     xzr, [x20, #FIBER_HOST]
        str     x9, [x20, #FIBER_NAME]
        str     x20, [x20, #FIBER_HIGH]
        str     xzr, [x20, #FIBER_POOL]
        str     xzr, [x20, #FIBER_TOOLS]
        str     xzr, [x20, #FIBER_WITHIN]
        str     x10, [x20, #FIBER_LANGUAGE]
        str     x12, [x20, #FIBER_STATE]
        ldr     x9, [x4, #FIBER_LOW-FIBER_SCOPE]
        address x10, haft_ocaml_nested_raised
        str     xzr, [x20, #FIBER_OF_LANGUAGE]
        str     x9, [x20, #FIBER_LOW]
        str     x10, [x20, #FIBER_TRAP+8]
        str     x11, [x21, #THREAD_CURRENT]
        .endm

/* On the stack of a fiber, `offset` below its header: where its parent is. */
        .macro  parent_in_header offset
        .if     \offset == 16
        .cfi_escape 0x0f, 0x04, 0x8f, 0xe0, 0x00, 0x06 /* CFA = [sp + 96], the parent's stack */
        .cfi_escape 0x10, 0x1e, 0x03, 0x8f, 0xd8, 0x00 /* return address (x30) at sp + 88 */
        .else
        .cfi_escape 0x0f, 0x04, 0x8f, 0xd0, 0x00, 0x06 /* CFA = [sp + 80] */
        .cfi_escape 0x10, 0x1e, 0x03, 0x8f, 0xc8, 0x00 /* x30 at sp + 72 */
        .endif
        .endm

/* The same, in a gap. */
        .macro  parent_in_gap offset
        .if     \offset == 0
        .cfi_escape 0x0f, 0x03, 0x8f, 0x10, 0x06 /* CFA = [sp + 16], the parent's stack */
        .cfi_escape 0x10, 0x1e, 0x02, 0x8f, 0x18 /* return address (x30) at sp + 24 */
        .else
        .cfi_escape 0x0f, 0x03, 0x8f, 0x00, 0x06 /* CFA = [sp] */
        .cfi_escape 0x10, 0x1e, 0x02, 0x8f, 0x08 /* x30 at sp + 8 */
        .endif
        .endm

        .macro  parent_in_registers
        .cfi_def_cfa sp, 0
        .cfi_same_value x30
        .endm

        .text
        .globl  haft_ocaml_code_begin
        .hidden haft_ocaml_code_begin
haft_ocaml_code_begin:

/*
 * runstack f x handler: runs f x on a new fiber under the handler, then handler.retc or
 * handler.exnc in the caller's place.
 *   in: x0 f, x1 x, x2 handler
 *
 * The call is made under the local symbol __morestack: debuggers accept that the stack goes on at
 * a lower address past a frame of that name. The code before it would be found under another one.
 */
        .globl  haft_ocaml_runstack
        .hidden haft_ocaml_runstack
        .type   __morestack, %function
        .p2align 4
haft_ocaml_runstack:
__morestack:
        .cfi_startproc
        load    x20, haft_ocaml_idle
        load_thread
        cbz     x20, .Lrunstack_refill
        ldr     x9, [x21, #THREAD_STAMP]
        cbz     x9, .Lrunstack_refill
        ldr     x4, [x20, #FIBER_SP]
        store   x4, haft_ocaml_idle, x9
        /* The handler inside this one will need it. */
        prfm    pstl1keep, [x4]
        prfm    pstl1keep, [x4, #64]
        prfum   pstl1keep, [x4, #-64]
        str     x2, [x20, #FIBER_HANDLER]
        load    x4, haft_ocaml_running
        .cfi_remember_state
        attach  x20
        ldr     x9, [x20, #FIBER_PARENT_ROOTS]
        orr     x11, x11, x9
        cbnz    x11, .Lrunstack_roots
.Lrunstack_go:
        add     x9, x20, #FIBER_SCOPE
        str     x9, [x21, #THREAD_CURRENT]
        .cfi_remember_state
        add     sp, x20, #FIBER_TRAP
        parent_in_header 16
        mov     x26, sp
        mov     x9, x0
        mov     x0, x1
        mov     x1, x9
        call_closure blr, x1
        .globl  haft_ocaml_returned
        .hidden haft_ocaml_returned
haft_ocaml_returned:
        sub     x20, sp, #FIBER_TRAP
        ldr     x9, [x20, #FIBER_SERIAL]
        cbnz    x9, .Lreturned_seen
.Lreturned_go:
        load_thread
        make_idle
        ldr     x4, [x20, #FIBER_HANDLER]
        to_parents_roots
        .cfi_remember_state
        to_parent
        parent_in_registers
        ldr     x1, [x4]
        call_closure br, x1
        .cfi_restore_state
.Lreturned_seen:
        mov     x22, x0
        mov     x0, x20
        bl      haft_ocaml_forget
        mov     x0, x22
        b       .Lreturned_go

        .cfi_restore_state
.Lrunstack_roots:
        ldr     x11, STATE(local_roots)
        str     x11, [x20, #FIBER_PARENT_ROOTS]
        cbz     x11, .Lrunstack_go
        call_c  haft_ocaml_parent_has_roots
        b       .Lrunstack_go

        .macro  refill
        call_c  haft_ocaml_refill
        tst     w9, #255
        b.ne    __morestack
        .endm

        .cfi_restore_state
.Lrunstack_refill:
        pop_gaps
        load_thread
        mov     x5, sp
        mov     x6, x30
        may_nest .Lrunstack_take
        .cfi_remember_state
        .cfi_def_cfa x5, 0
        place_below
        add     sp, x20, #FIBER_TRAP
        nest
        str     x2, [x20, #FIBER_HANDLER]
        parent_in_header 16
        mov     x26, sp
        mov     x9, x0
        mov     x0, x1
        mov     x1, x9
        call_closure blr, x1
        .globl  haft_ocaml_nested_returned
        .hidden haft_ocaml_nested_returned
haft_ocaml_nested_returned:
        sub     x20, sp, #FIBER_TRAP
        load_thread
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cmp     x9, #FIBER_NESTED
        b.ne    .Lsettler_returned
.Lnested_returned_go:
        ldr     x4, [x20, #FIBER_HANDLER]
        to_parents_roots
        .cfi_remember_state
        to_parent
        parent_in_registers
        ldr     x1, [x4]
        call_closure br, x1
        .cfi_restore_state
.Lsettler_returned:
        leave_host
        b       .Lnested_returned_go
        .cfi_restore_state

.Lrunstack_take:
        refill
        collect used=3
        refill
        b       .Lno_memory
        .cfi_endproc
        .size   __morestack, . - __morestack

/* An exception has reached the base of a fiber. A signal may have written where the trap is.
     in: x0 exception, sp the fiber */
        function haft_ocaml_raised
        parent_in_header 0
        mov     x20, sp
        add     sp, sp, #FIBER_TRAP
        parent_in_header 16
        address x9, haft_ocaml_raised
        str     x9, [sp, #8]
        ldr     x9, [x20, #FIBER_SERIAL]
        cbnz    x9, .Lraised_seen
.Lraised_go:
        load_thread
        make_idle
        ldr     x4, [x20, #FIBER_HANDLER]
        to_parents_roots
        .cfi_remember_state
        to_parent
        parent_in_registers
        ldr     x1, [x4, #8]
        call_closure br, x1
        .cfi_restore_state
.Lraised_seen:
        mov     x22, x0
        mov     x0, x20
        bl      haft_ocaml_forget
        mov     x0, x22
        b       .Lraised_go
        end_function haft_ocaml_raised

/* The same, of a nested one. */
        function haft_ocaml_nested_raised
        parent_in_header 0
        mov     x20, sp
        load_thread
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cmp     x9, #FIBER_NESTED
        b.ne    .Lsettler_raised
.Lnested_raised_go:
        ldr     x4, [x20, #FIBER_HANDLER]
        to_parents_roots
        .cfi_remember_state
        to_parent
        parent_in_registers
        ldr     x1, [x4, #8]
        call_closure br, x1
        .cfi_restore_state
.Lsettler_raised:
        add     sp, sp, #FIBER_TRAP
        parent_in_header 16
        leave_host
        b       .Lnested_raised_go
        end_function haft_ocaml_nested_raised

/*
 * perform effect: suspends the current fiber and asks its handler for a clause, in the parent. Rare
 * cases, and those that are no mere switch, are left to perform_rarely (effect.ml).
 *   in: x0 effect
 *
 * A continuation that is made here knows that its fiber has nothing inside, and that there are no
 * local roots (haft_ocaml_continue_alone).
 */
        .macro  begin_capture stack
        sub     x9, x27, #8*(CONTINUATION_FIELDS + 1)
        ldr     x10, STATE(young_limit)
        cmp     x9, x10
        b.lo    .Lperform_rarely
        mov     x27, x9
        add     x2, x9, #8
        leave_stack
        mov     x10, sp
        address x9, \stack
        str     x10, [x20, #FIBER_SP]
        str     x9, [x2, #CONTINUATION_STATE]
        .endm

/* Goes to `no` unless the nested fiber in x20, whose stack was left, may be placed: it would have
   room on a shelf, and what has been nested and placed below it is not too much. */
        .macro  may_place no
        mov     x9, sp
        sub     x9, x20, x9
        load    x10, haft_ocaml_most_placed
        cmp     x9, x10
        b.hi    \no
        cmp     x9, #SHELF_LARGEST - FIBER_TRAP
        b.ls    8f
        address x10, haft_ocaml_gap_raised
        ldr     x11, [x26, #8]
        cmp     x10, x11
        b.ne    \no
        add     x9, x9, x26             /* except for what the innermost gap divides */
        ldr     x10, [x26, #GAP_PARENT]
        sub     x9, x9, x10
        cmp     x9, #SHELF_LARGEST - FIBER_TRAP
        b.hi    \no
8:
        .endm

/* Goes to `no` unless sp is the gap of the fiber that was placed last, and this one, which has the
   continuation. */
        .macro  at_gap_of fiber, continuation, no
        load    x9, haft_ocaml_placed
        mov     x10, sp
        cmp     x9, x10
        b.ne    \no
        ldr     x9, [sp, #GAP_FIBER]
        and     x9, x9, #-2             /* whether a cycle has seen it */
        ldr     x10, [\fiber, #FIBER_CONTINUATION]
        cmp     x9, \fiber
        ccmp    x10, \continuation, #0, eq
        b.ne    \no
        .endm

        function haft_ocaml_perform
        find_fiber .Lperform_rarely
        compare_traps
        b.ne    .Lperform_effect_traps
.Lperform_effect_go:
        ldr     x9, [x20, #FIBER_PARENT_ROOTS]
        ldr     x10, STATE(local_roots)
        ldr     x11, [x20, #FIBER_ROOTS]
        ldr     x12, [x20, #FIBER_SERIAL]
        orr     x9, x9, x10
        orr     x11, x11, x12
        orr     x9, x9, x11
        cbnz    x9, .Lperform_rarely
        ldr     x10, [x20, #FIBER_TOP]
        cmp     x4, x10
        b.ne    .Lperform_rarely
        ldr     x9, [x20, #FIBER_YOUNG]
        cbz     x9, .Lperform_rarely
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cbnz    x9, .Lperform_effect_nested /* It is not FIBER_RUNNING. */
        begin_capture haft_ocaml_stack_young
        capture_in haft_ocaml_continue_alone
        to_parent
        parent_in_registers
/* Jumps to the clause for the effect in x0, by the handler's function in x1: in x2 the
   continuation. A function of two arguments is the clauses itself, or ends with haft_ocaml_pass.
   Any other is asked for the clause. */
.Lask_handler:
        ldrb    w9, [x1, #CLOSURE_ARITY]
        cmp     w9, #2
        b.ne    .Lask_function
        mov     x3, x2
        mov     x2, x1
        mov     x1, x3
        ldr     x9, [x2, #CLOSURE_CODE_2]
        br      x9
.Lask_function:
        sub     sp, sp, #32
        .cfi_adjust_cfa_offset 32
        str     x30, [sp, #24]
        .cfi_rel_offset x30, 24
        str     x0, [sp]
        str     x2, [sp, #8]
        call_closure blr, x1
        .globl  haft_ocaml_asked
        .hidden haft_ocaml_asked
haft_ocaml_asked:
        ldp     x4, x2, [sp]
        ldr     x30, [sp, #24]
        add     sp, sp, #32
        parent_in_registers
        cmp     x0, #1
        b.eq    .Lpass_asked
        mov     x1, x0
        mov     x0, x2
        ldrb    w9, [x1, #-8]
        cbnz    w9, 1f                  /* two arguments after all, one by one */
        ldr     x1, [x1]
1:      call_closure br, x1
        end_function haft_ocaml_perform

/*
 * pass effect continuation: a handler has no clause for the effect: the fiber in which it was asked
 * is suspended, too, with the other one inside, and its handler is asked. If that is a mere switch,
 * the continuation becomes that of the outer fiber. Called like perform, in tail position of a
 * handler's function.
 *   in: x0 effect, x1 continuation
 */
        function haft_ocaml_pass
        mov     x2, x1
        b       .Lpass
.Lpass_asked:
        mov     x0, x4
.Lpass:
        address x9, haft_ocaml_stack_young
        ldr     x10, [x2, #CONTINUATION_STATE]
        ldr     x3, [x2, #CONTINUATION_HOLDER]
        cmp     x9, x10
        sub     x3, x3, #1
        b.ne    .Ldecline_placed
        mov     x9, sp
        ldr     x10, [x3, #FIBER_PARENT]
        cmp     x9, x10
        b.ne    .Ldecline               /* The outer one was moved. */
        find_fiber .Ldecline
        compare_traps
        b.ne    .Ldecline
        ldr     x9, [x20, #FIBER_PARENT_ROOTS]
        ldr     x10, STATE(local_roots)
        ldr     x11, [x3, #FIBER_ROOTS]
        ldr     x12, [x20, #FIBER_ROOTS]
        orr     x9, x9, x10
        orr     x11, x11, x12
        ldr     x10, [x20, #FIBER_CONTINUATION] /* FIBER_RUNNING */
        orr     x9, x9, x11
        orr     x9, x9, x10
        cbnz    x9, .Ldecline
        ldr     x9, [x20, #FIBER_YOUNG]
        cbz     x9, .Ldecline
        load    x4, haft_ocaml_running
        .cfi_remember_state
        leave_stack
        ldr     x9, [x3, #FIBER_SP]
        ldr     x10, [x3, #FIBER_TOP]
        ldr     x1, [x20, #FIBER_HANDLER]
        str     x4, [x3, #FIBER_CONTINUATION]
        str     x9, [x20, #FIBER_SP]
        str     x10, [x20, #FIBER_TOP]
        address x9, haft_ocaml_continue
        add     x10, x20, #1
        ldr     x1, [x1, #16]
        str     x9, [x2, #CONTINUATION_EFFECT]
        str     x10, [x2, #CONTINUATION_HOLDER]
        str     x2, [x20, #FIBER_CONTINUATION]
        to_parent
        parent_in_registers
        b       .Lask_handler
        .cfi_restore_state
.Ldecline:
        mov     x1, x2
        load    x9, haft_ocaml_decline
        br      x9

/* The same, for a chain that is placed. haft_ocaml_release takes a fiber that is not yet a chain,
   one that is to be suspended in its host after a collection has found the continuation, and all
   rare cases. */
.Ldecline_placed:
        address x9, haft_ocaml_stack_placed
        cmp     x9, x10
        b.ne    .Ldecline
        at_gap_of x3, x2, .Ldecline
        find_fiber .Ldecline
        ldr     x9, [x3, #FIBER_OUTER]
        ldr     x10, [x3, #FIBER_TOP]
        add     x11, x3, #FIBER_SCOPE
        cmp     x4, x9
        b.ne    .Ldecline
        cmp     x10, x11
        b.eq    .Ldecline
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cmp     x9, #FIBER_NESTED
        b.ne    .Ldecline
        ldr     x9, [x20, #FIBER_SERIAL]
        cbnz    x9, .Ldecline
/* The parent in x20, which is nested, is placed around the fiber in x3, which is: the gap becomes
   its own. */
.Lpass_placed:
        ldr     x9, [x3, #FIBER_SP]
        ldr     x10, [x3, #FIBER_TOP]
        mov     x11, #FIBER_NESTED
        str     x11, [x3, #FIBER_CONTINUATION]
        str     x9, [x20, #FIBER_SP]
        str     x10, [x20, #FIBER_TOP]
        ldr     x9, [x20, #FIBER_PARENT_EXCEPTION]
        ldp     x10, x11, [x20, #FIBER_PARENT]
        str     x9, [sp, #GAP_NEXT]
        stp     x10, x11, [sp, #GAP_PARENT]
        ldr     x9, [x20, #FIBER_OUTER]
        ldr     x1, [x20, #FIBER_HANDLER]
        str     x20, [sp, #GAP_FIBER]
        str     x9, [x21, #THREAD_CURRENT]
        address x9, haft_ocaml_continue_placed
        add     x10, x20, #1
        str     xzr, [x20, #FIBER_ROOTS]
        str     x2, [x20, #FIBER_CONTINUATION]
        str     x9, [x2, #CONTINUATION_EFFECT]
        str     x10, [x2, #CONTINUATION_HOLDER]
        ldr     x1, [x1, #16]
        b       .Lask_handler

        end_function haft_ocaml_pass

/* The same, where code of the program's has run since the perform: the continuation may have been
   declined in a copy of that code. */
        function haft_ocaml_pass_after_guards
        load    x9, haft_ocaml_decline_after_guards
        br      x9
        end_function haft_ocaml_pass_after_guards

        function haft_ocaml_perform_rest
.Lperform_effect_nested:
        cmp     x9, #FIBER_NESTED
        b.ne    .Lperform_rarely
        .cfi_remember_state
        begin_capture haft_ocaml_stack_placed
        may_place .Lperform_leaves_nest
/* The fiber in x20 is placed: it stays where it is, and its handler is asked below it, beyond a
   gap. x0: the effect; x2: the continuation; sp: where the gap ends, the fiber's stack pointer if
   nothing is inside. */
.Lplace:
        .cfi_remember_state
        sub     sp, sp, #GAP_ROOM
        .cfi_adjust_cfa_offset GAP_ROOM
        ldr     x9, [x20, #FIBER_PARENT_EXCEPTION]
        address x10, haft_ocaml_gap_raised
        ldp     x11, x12, [x20, #FIBER_PARENT]
        stp     x9, x10, [sp, #GAP_NEXT]
        stp     x11, x12, [sp, #GAP_PARENT]
        load    x9, haft_ocaml_placed
        ldr     x10, [x20, #FIBER_OUTER]
        stp     x20, x9, [sp, #GAP_FIBER]
        str     x10, [x21, #THREAD_CURRENT]
        mov     x26, sp
        store   x26, haft_ocaml_placed, x9
        address x9, haft_ocaml_gap_returned
        mov     x30, x9
        parent_in_registers
        capture_in haft_ocaml_continue_placed
        b       .Lask_handler
        .cfi_restore_state
.Lperform_leaves_nest:
        address x9, haft_ocaml_stack_young
        str     x0, [x2, #CONTINUATION_EFFECT]
        str     x9, [x2, #CONTINUATION_STATE]
        mov     x0, x2
        mov     x1, #0
        b       .Lleave_nest
        .cfi_restore_state
.Lperform_effect_traps:
        find_callbacks .Lperform_rarely
        b       .Lperform_effect_go
.Lperform_rarely:
        load    x9, haft_ocaml_perform_rarely
        br      x9
        end_function haft_ocaml_perform_rest

/*
 * perform_captured continuation: the same, whatever it takes.
 *   in: x0 continuation, with the effect in it
 */
        function haft_ocaml_perform_captured
        find_fiber .Lperform_far
.Lperform_found:
        compare_traps
        b.ne    .Lperform_traps
.Lperform_go:
        leave_stack
        ldr     x9, STATE(local_roots)
        mov     x10, sp
        str     x10, [x20, #FIBER_SP]
        ldr     x10, [x20, #FIBER_PARENT_ROOTS]
        ldr     x11, [x20, #FIBER_ROOTS]
        orr     x10, x10, x9
        orr     x10, x10, x11
        cbnz    x10, .Lperform_roots
        ldr     x10, [x20, #FIBER_TOP]
        cmp     x4, x10
        b.ne    .Lperform_nested
.Lcapture_alone:
        mov     x1, #0
.Lcapture:                              /* x1: the fiber of OCaml inside, or 0 */
        ldr     x9, [x20, #FIBER_YOUNG]
        cbz     x9, .Lcapture_first
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cbnz    x9, .Lcapture_by_call   /* It is not FIBER_RUNNING. */
        capture haft_ocaml_continue
        parent_in_registers
        b       .Lask_handler
        end_function haft_ocaml_perform_captured

/*
 * The same as a call, from a fiber with FIBER_CALLS.
 *
 * A processor predicts that the next return is to the place behind the last call. A clause that
 * continues at once does return there, to the perform; but one that returns to the code which
 * resumed the fiber does not, and after that wrong guess all that was remembered of the stack is
 * off by one. Such clauses are called from here, and the way on is a jump; so is that of `continue`
 * into the fiber. Which of the two a fiber needs is told by where it is continued from: in a
 * clause, `continue` would return to haft_ocaml_clause_returned.
 *
 * Where a clause in tail position already runs under such a call, the frame is used again: all
 * that such clauses continue is continued from there, as computations in turn are, and learns that
 * its clauses need not be called.
 */
        function haft_ocaml_perform_by_call
        .cfi_adjust_cfa_offset 16
.Lcapture_first:                        /* Once a collection, to find out. */
        load    x9, haft_ocaml_young
        str     x9, [x20, #FIBER_YOUNG]
        store   x20, haft_ocaml_young, x9
.Lcapture_by_call:
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cmp     x9, #FIBER_NESTED
        b.eq    .Lcapture_nested
        capture haft_ocaml_continue_called
        parent_in_registers
        load    x9, haft_ocaml_running
        cbnz    x9, .Lput_away          /* It is not FIBER_RUNNING. */
.Lcall_clause:
        address x9, haft_ocaml_clause_returned
        .cfi_remember_state
        cmp     x30, x9
        b.ne    1f
        address x9, haft_ocaml_continue
        str     x9, [x2, #CONTINUATION_EFFECT]
        b       2f
1:      stp     xzr, x30, [sp, #-16]!
2:      .cfi_def_cfa sp, 16
        .cfi_rel_offset x30, 8
        bl      .Lask_handler
        .globl  haft_ocaml_clause_returned
        .hidden haft_ocaml_clause_returned
haft_ocaml_clause_returned:
        ldr     x30, [sp, #8]
        add     sp, sp, #16
        parent_in_registers
        return_by_jump

        .cfi_restore_state
.Lput_away:                             /* Others may have to be. */
        str     x27, STATE(young_ptr)   /* it may allocate, without a collection */
        call_c  haft_ocaml_wait
        ldr     x27, STATE(young_ptr)
        b       .Lcall_clause
        end_function haft_ocaml_perform_by_call

/* The same, from a nested fiber, which is placed, or goes to a shelf or a stack of its own. x1: the
   fiber of OCaml inside, or 0. */
        function haft_ocaml_perform_nested
        .cfi_adjust_cfa_offset 16
.Lcapture_nested:
        .cfi_rel_offset x30, 8
        cbnz    x1, .Lcapture_around
        ldr     x9, [x20, #FIBER_TOP]
        add     x10, x20, #FIBER_SCOPE
        cmp     x9, x10
        b.ne    .Lleave_nest
        ldr     x9, [x20, #FIBER_ROOTS]
        ldr     x10, [x20, #FIBER_SERIAL]
        orr     x9, x9, x10
        cbnz    x9, .Lleave_nest
        compare_traps
        b.eq    9f
        find_callbacks .Lleave_nest
9:      may_place .Lleave_nest
.Lplace_captured:
        address x9, haft_ocaml_stack_placed
        mov     x2, x0
        ldr     x0, [x2, #CONTINUATION_EFFECT]
        str     x9, [x2, #CONTINUATION_STATE]
        b       .Lplace
.Lcapture_around:
        mov     x22, x0
        mov     x23, x1
        mov     x0, x20
        mov     x2, sp
        bl      haft_ocaml_may_place_around
        ldr     x30, [sp, #8]
        tst     w0, #255
        mov     x0, x22
        mov     x1, x23
        b.ne    .Lplace_captured
.Lleave_nest:
        mov     x22, x0
        mov     x0, x20
        bl      haft_ocaml_leave_nest
        mov     x9, x0
        mov     x0, x22
        cbz     x9, 1f
        mov     x20, x9
        ldr     x9, [x20, #FIBER_BASE_RETURN]
        cbnz    x9, 2f
        address x9, haft_ocaml_stack_aside
        str     x9, [x0, #CONTINUATION_STATE]
2:      .cfi_remember_state
        capture haft_ocaml_continue_called
        parent_in_registers
        b       .Lask_handler
        .cfi_restore_state
1:      ldr     x9, [x20, #FIBER_ROOTS]
        str     x9, STATE(local_roots)
        ldr     x30, [sp, #8]
        add     sp, sp, #16
        parent_in_registers
        b       .Lno_memory
        end_function haft_ocaml_perform_nested

        function haft_ocaml_perform_slow
.Lperform_traps:
        find_callbacks .Lperform_callback
        b       .Lperform_go
        .cfi_remember_state
        .cfi_adjust_cfa_offset 16
.Lperform_roots:
        str     x9, [x20, #FIBER_ROOTS]
        to_parents_roots
.Lperform_nested:
        str     x4, [x20, #FIBER_TOP]
        b       .Lcapture_alone
        .cfi_restore_state

.Lperform_callback:
        ask_may_suspend haft_ocaml_may_suspend
        ldr     x4, [x21, #THREAD_CURRENT]
        b.ne    .Lperform_go
.Lperform_unhandled:
        load    x1, haft_ocaml_unhandled
        ldr     x0, [x0, #CONTINUATION_EFFECT]
        call_closure br, x1

.Lperform_far:
        adr     x3, .Lperform_found
        adr     x2, .Lperform_unhandled
        b       .Lfar
        end_function haft_ocaml_perform_slow

/*
 * reperform continuation: the handler has declined; the fiber in which it ran is suspended, too,
 * and the handler of that one is asked. Called like perform, with a continuation that is YOUNG and
 * in tail position: the inner fiber goes on in the place of the caller's caller. Or with one that
 * is PLACED, which may be passed as haft_ocaml_release has found.
 */
        function haft_ocaml_reperform
        address x9, haft_ocaml_stack_placed
        ldr     x10, [x0, #CONTINUATION_STATE]
        cmp     x9, x10
        b.eq    .Lreperform_placed
        find_fiber .Lreperform_far
.Lreperform_found:
        compare_traps
        b.eq    .Lreperform_go
        find_callbacks .Lreperform_callback
.Lreperform_go:
        ldr     x3, [x0, #CONTINUATION_HOLDER]
        sub     x3, x3, #1
        load    x4, haft_ocaml_running
        .cfi_remember_state
        attach  x3
        str     x11, [x3, #FIBER_PARENT_ROOTS]
        ldr     x9, [x3, #FIBER_SP]
        ldr     x10, [x3, #FIBER_ROOTS]
        ldr     x11, [x3, #FIBER_TOP]
        str     x9, [x20, #FIBER_SP]
        str     x10, [x20, #FIBER_ROOTS]
        str     x11, [x20, #FIBER_TOP]
        to_parents_roots
        mov     x1, x3
        b       .Lcapture

        .cfi_restore_state
.Lreperform_placed:
        load_thread
        ldr     x3, [x0, #CONTINUATION_HOLDER]
        sub     x3, x3, #1
        ldr     x20, [x3, #FIBER_OUTER]
        sub     x20, x20, #FIBER_SCOPE
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cmp     x9, #FIBER_NESTED
        b.ne    1f
        mov     x2, x0
        ldr     x0, [x2, #CONTINUATION_EFFECT]
        b       .Lpass_placed
1:      /* It is suspended, in its host. */
        ldr     x9, [sp, #GAP_PLACED]
        store   x9, haft_ocaml_placed, x10
        ldr     x9, [x3, #FIBER_TOP]
        add     x1, x3, #FIBER_SCOPE
        cmp     x9, x1
        b.eq    2f
        count_chain_out
2:      ldr     x10, [x3, #FIBER_SP]
        mov     x11, #FIBER_NESTED
        str     x11, [x3, #FIBER_CONTINUATION]
        address x11, haft_ocaml_stack_young
        str     x10, [x20, #FIBER_SP]
        str     x9, [x20, #FIBER_TOP]
        str     xzr, [x20, #FIBER_ROOTS]
        str     x11, [x0, #CONTINUATION_STATE]
        to_parents_roots
        mov     x1, x3
        .cfi_remember_state
        leave_stack
        b       .Lcapture

        .cfi_restore_state
.Lreperform_callback:
        ldr     x2, [x0, #CONTINUATION_HOLDER]
        sub     x2, x2, #1
        ask_may_suspend haft_ocaml_may_suspend_from
        b.ne    .Lreperform_go
.Lreperform_unhandled:
        ldr     x1, [x0, #CONTINUATION_EFFECT]
        load    x2, haft_ocaml_unhandled
        b       haft_ocaml_resume_with

.Lreperform_far:
        adr     x3, .Lreperform_found
        adr     x2, .Lreperform_unhandled
/* The innermost handler is not one of OCaml: goes to x3 with the fiber that is, or to x2. */
.Lfar:
        call_c  haft_ocaml_innermost
        mov     x20, x9
        ldr     x4, [x21, #THREAD_CURRENT]
        cmp     x20, #0
        csel    x3, x2, x3, eq
        br      x3
        end_function haft_ocaml_reperform

/*
 * A gap (layout.h). A clause that runs in place has returned, or raised an exception: its fiber, if
 * it is still there, goes to a shelf.
 *   in: x0 the result; sp the gap
 */
        function haft_ocaml_gap
        parent_in_gap 0
        nop
        .globl  haft_ocaml_gap_returned
        .hidden haft_ocaml_gap_returned
haft_ocaml_gap_returned:
        ldr     x9, [sp, #GAP_FIBER]
        cbnz    x9, 2f
1:      ldr     x26, [sp, #GAP_NEXT]
        .cfi_remember_state
        leave_gap
        return_by_jump
        .cfi_restore_state
2:      mov     x22, x0
        bl      haft_ocaml_shelve_placed
        mov     x0, x22
        b       1b
        end_function haft_ocaml_gap

/* x0: the exception; sp is past the trap, where a signal may have written. */
        function haft_ocaml_gap_raised
        parent_in_gap 16
        sub     sp, sp, #16
        parent_in_gap 0
        address x9, haft_ocaml_gap_raised
        stp     x26, x9, [sp, #GAP_NEXT]
        ldr     x9, [sp, #GAP_FIBER]
        cbnz    x9, 2f
1:      .cfi_remember_state
        leave_gap
        b       caml_raise_exn
        .cfi_restore_state
2:      mov     x22, x0
        bl      haft_ocaml_shelve_placed
        mov     x0, x22
        b       1b
        end_function haft_ocaml_gap_raised

/* (sp is moved first: see above.) */
        .macro  to_child_stack
        ldr     x9, [x20, #FIBER_SP]
        mov     sp, x9
        ldp     x26, x30, [sp], #16
        parent_in_registers
        .endm

/* Into the suspended fiber in x20, which is attached. */
        .macro  to_child
        ldr     x9, [x20, #FIBER_TOP]
        ldr     x10, [x20, #FIBER_ROOTS]
        str     x9, [x21, #THREAD_CURRENT]
        str     x10, STATE(local_roots)
        to_child_stack
        .endm

/* Enters the suspended fiber in x20, which has x4 for a continuation from now on, with whatever is
   in x0, x1 and x2. Goes to `slow` if that takes more than a switch. */
        .macro  enter slow
        ldr     x9, [x20, #FIBER_SERIAL]
        cbnz    x9, \slow
        ldr     x9, [x21, #THREAD_STAMP]
        cbz     x9, \slow
        ldr     x9, STATE(local_roots)
        cbnz    x9, \slow
        attach  x20
        str     xzr, [x20, #FIBER_PARENT_ROOTS]
        to_child
        .endm

/*
 * continue: the code of a continuation, applied to a value.
 *   in: x0 value, x1 continuation
 * Behind the header of a black abstract block: see layout.h.
 */
        .macro  begin_continue
        address x9, haft_ocaml_stack_young
        ldr     x20, [x1, #CONTINUATION_HOLDER]
        ldr     x10, [x1, #CONTINUATION_STATE]
        cmp     x9, x10
        b.ne    .Lcontinue_awaken
        address x9, haft_ocaml_stack_used
        sub     x20, x20, #1
        str     x9, [x1, #CONTINUATION_STATE]
        ldr     x10, [x20, #FIBER_CONTINUATION]
        cmp     x1, x10
        b.ne    .Lalready               /* A copy, of Weak.get_copy. */
        load_thread
        /* Where it was resumed before? Then all is there that `attach` stores in the header. */
        ldp     x10, x11, [x20, #FIBER_PARENT]
        mov     x9, sp
        cmp     x9, x10
        ccmp    x30, x11, #0, eq
        b.ne    .Lcontinue_elsewhere
        ldr     x9, [x21, #THREAD_CURRENT]
        ldr     x10, [x20, #FIBER_OUTER]
        ldr     x11, [x20, #FIBER_PARENT_EXCEPTION]
        cmp     x9, x10
        ccmp    x26, x11, #0, eq
        b.ne    .Lcontinue_elsewhere
        .endm

        .macro  continue
        begin_continue
        ldr     x9, STATE(local_roots)
        ldr     x10, [x20, #FIBER_PARENT_ROOTS]
        ldr     x11, [x20, #FIBER_ROOTS]
        ldr     x12, [x20, #FIBER_SERIAL]
        orr     x9, x9, x10
        orr     x11, x11, x12
        orr     x9, x9, x11
        cbnz    x9, .Lcontinue_elsewhere
        ldr     x9, [x20, #FIBER_TOP]
        str     x4, [x20, #FIBER_CONTINUATION]
        str     x9, [x21, #THREAD_CURRENT]
        leave_stack
        to_child_stack
        .endm

        function haft_ocaml_continue
        load    x4, haft_ocaml_running
        .cfi_remember_state
        continue
        ret
        .cfi_restore_state

        .macro  awaken_continued
        call_c  haft_ocaml_awaken, x1
        mov     x20, x9
        cmp     x20, #1
        b.lo    .Lalready
        .endm

/* The stack pointer and the return address of the code that continues, behind the frame of a clause
   that was called. */
        .macro  callers_place
        mov     x5, sp
        mov     x6, x30
        address x9, haft_ocaml_clause_returned
        cmp     x30, x9
        b.ne    4f
        ldr     x6, [sp, #8]
        add     x5, sp, #16
4:
        .endm

.Lcontinue_awaken:
        pop_gaps
        ldr     x20, [x1, #CONTINUATION_HOLDER]
        /* No stack is idle? Then it is nested, if it can be, from a shelf. */
        load    x9, haft_ocaml_idle
        cbnz    x9, .Lcontinue_take
        load_thread
        callers_place
        may_nest .Lcontinue_take
        address x9, haft_ocaml_stack_aside
        ldr     x10, [x1, #CONTINUATION_STATE]
        cmp     x9, x10
        b.ne    .Lcontinue_shelve
        sub     x20, x20, #1
        ldr     x9, [x20, #FIBER_CONTINUATION]
        cmp     x1, x9
        b.ne    .Lalready
        ldr     x9, [x20, #FIBER_BASE_RETURN]
        cbnz    x9, .Lcontinue_take
        ldr     x9, [x20, #FIBER_YOUNG]
        cmp     x9, #YOUNG_END
        b.hi    .Lcontinue_shelve
.Lcontinue_nest:
        .cfi_remember_state
        .cfi_def_cfa x5, 0
        mov     x7, x20
        place_below
        sub     x9, x20, x7
        ldr     x10, [x7, #FIBER_SP]
        add     x11, x7, #FIBER_TRAP
        add     x12, x10, x9
        mov     sp, x12
2:      ldr     q0, [x10]
        str     q0, [x10, x9]
        add     x10, x10, #16
        cmp     x10, x11
        b.lo    2b
        address x12, haft_ocaml_nested_returned
        str     x12, [x20, #FIBER_TRAP-8]
        add     x11, x20, #FIBER_TRAP
        mov     x10, sp
3:      ldr     x12, [x10]              /* from trap to trap */
        add     x12, x12, x9
        str     x12, [x10]
        mov     x10, x12
        cmp     x10, x11
        b.ne    3b
        nest
        ldr     x9, [x7, #FIBER_HANDLER]
        load    x10, haft_ocaml_free_shelves
        mov     x11, #FIBER_IDLE
        str     x9, [x20, #FIBER_HANDLER]
        str     x11, [x7, #FIBER_CONTINUATION]
        str     x10, [x7, #FIBER_TOP]
        store   x7, haft_ocaml_free_shelves, x9
        load    x10, haft_ocaml_shelves_in_use
        sub     x10, x10, #1
        store   x10, haft_ocaml_shelves_in_use, x9
        address x9, haft_ocaml_stack_used
        str     x9, [x1, #CONTINUATION_STATE]
        ldp     x26, x30, [sp], #16
        parent_in_registers
        return_by_jump
        .cfi_restore_state
.Lcontinue_shelve:
        call_c  haft_ocaml_shelve_awakened, x1
        mov     x20, x9
        callers_place
        ldr     x4, [x21, #THREAD_CURRENT]
        cbnz    x20, .Lcontinue_nest
.Lcontinue_take:
        awaken_continued
        b.hi    1f
        collect used=2
        awaken_continued
        b.eq    .Lno_memory
1:      load_thread
.Lcontinue_elsewhere:
        /* By a clause that was called, and ends with this? Then the next one need not be called. By
           any other code: clauses of this fiber seem to return. */
        mov     x4, #FIBER_CALLS
        address x9, haft_ocaml_clause_returned
        cmp     x30, x9
        b.ne    1f
        load    x4, haft_ocaml_running
1:      .cfi_remember_state
        enter   .Lcontinue_slow
        return_by_jump
        .cfi_restore_state

.Lcontinue_slow:
        mov     x1, x0
        load    x2, haft_ocaml_identity
        b       .Lenter_slow
        end_function haft_ocaml_continue

/* The same, of a fiber that was captured by haft_ocaml_perform. */
        function haft_ocaml_continue_alone
        begin_continue
        ldr     x9, STATE(local_roots)
        cbnz    x9, .Lcontinue_elsewhere
        load    x4, haft_ocaml_running
        add     x9, x20, #FIBER_SCOPE
        str     x4, [x20, #FIBER_CONTINUATION]
        str     x9, [x21, #THREAD_CURRENT]
        leave_stack
        to_child_stack
        ret
        end_function haft_ocaml_continue_alone

/* The same, of a fiber with FIBER_CALLS. */
        function haft_ocaml_continue_called
        mov     x4, #FIBER_CALLS
        continue
        return_by_jump
        end_function haft_ocaml_continue_called

/* The same, of a fiber that was placed: it is entered as it is where its clause ends with that. */
        function haft_ocaml_continue_placed
        address x9, haft_ocaml_stack_placed
        ldr     x10, [x1, #CONTINUATION_STATE]
        ldr     x20, [x1, #CONTINUATION_HOLDER]
        cmp     x9, x10
        b.ne    .Lcontinue_shelved
        sub     x20, x20, #1
        at_gap_of x20, x1, .Lcontinue_shelves
        load_thread
        address x9, haft_ocaml_stack_used
        ldr     x10, [sp, #GAP_PLACED]
        str     x9, [x1, #CONTINUATION_STATE]
        store   x10, haft_ocaml_placed, x9
        ldr     x9, [x20, #FIBER_TOP]
        mov     x10, #FIBER_NESTED
        add     x11, x20, #FIBER_SCOPE
        str     x10, [x20, #FIBER_CONTINUATION]
        str     x9, [x21, #THREAD_CURRENT]
        cmp     x9, x11
        b.eq    1f
        count_chain_out
1:      .cfi_remember_state
        to_child_stack
        return_by_jump
        .cfi_restore_state
/* A copy, of Weak.get_copy, is still marked as placed then. */
.Lcontinue_shelves:
        call_c  haft_ocaml_shelve_placed
        address x9, haft_ocaml_stack_placed
        ldr     x10, [x1, #CONTINUATION_STATE]
        cmp     x9, x10
        b.eq    .Lalready
.Lcontinue_shelved:
        b       haft_ocaml_continue_called
        end_function haft_ocaml_continue_placed

/*
 * resume_with continuation argument function: function argument, called where the fiber was
 * suspended.
 *   in: x0 continuation, x1 argument, x2 closure
 */
        function haft_ocaml_resume_with
        mov     x3, #1
.Lresume:
        address x9, haft_ocaml_stack_young
        ldr     x20, [x0, #CONTINUATION_HOLDER]
        ldr     x10, [x0, #CONTINUATION_STATE]
        cmp     x9, x10
        b.ne    .Lresume_awaken
        address x9, haft_ocaml_stack_used
        sub     x20, x20, #1
        str     x9, [x0, #CONTINUATION_STATE]
        ldr     x10, [x20, #FIBER_CONTINUATION]
        cmp     x0, x10
        b.ne    .Lalready               /* A copy, of Weak.get_copy. */
.Lresume_go:
        cmp     x3, #1
        b.eq    1f
        str     x3, [x20, #FIBER_HANDLER]
1:      load_thread
        load    x4, haft_ocaml_running
        .cfi_remember_state
        enter   .Lenter_slow
        mov     x0, x1
        mov     x1, x2
        call_closure br, x1
        .cfi_restore_state

        .macro  awaken_resumed
        call_c  haft_ocaml_awaken, x0
        mov     x20, x9
        cmp     x20, #1
        b.hi    .Lresume_go
        b.lo    .Lalready
        .endm

.Lresume_awaken:
        awaken_resumed
        collect used=4
        awaken_resumed
.Lno_memory:
        adrp    x0, :got:caml_exn_Out_of_memory
        ldr     x0, [x0, :got_lo12:caml_exn_Out_of_memory]
        b       caml_raise_exn
.Lalready:
        load    x1, haft_ocaml_already
        mov     x0, #1
        call_closure br, x1

/* The fiber in x20 was looked through, or the thread is new to libhaft, or the caller has local
   roots. */
.Lenter_slow:
        call_c  haft_ocaml_prepare
        load_thread
        load    x4, haft_ocaml_running
        attach  x20
        str     x11, [x20, #FIBER_PARENT_ROOTS]
        cbz     x11, 1f
        call_c  haft_ocaml_parent_has_roots
1:      to_child
        mov     x0, x1
        mov     x1, x2
        call_closure br, x1
        end_function haft_ocaml_resume_with

/* resume_under continuation argument function handler: the same, with another handler from now
   on. */
        function haft_ocaml_resume_under
        b       .Lresume
        end_function haft_ocaml_resume_under

/* `collect`, on the way back to x4. */
        function haft_ocaml_collect
.Lcollect:
        sub     sp, sp, #48
        .cfi_adjust_cfa_offset 48
        stp     x0, x1, [sp]
        stp     x2, x3, [sp, #16]
        stp     x4, x30, [sp, #32]
        .cfi_rel_offset x30, 40
        address x8, haft_ocaml_free_dropped
        bl      caml_c_call
        .globl  haft_ocaml_collected
        .hidden haft_ocaml_collected
haft_ocaml_collected:
        ldp     x0, x1, [sp]
        ldp     x2, x3, [sp, #16]
        ldp     x4, x30, [sp, #32]
        add     sp, sp, #48
        parent_in_registers
        br      x4
        end_function haft_ocaml_collect

/* discontinue continuation exception: raises it where the fiber was suspended (place_jumps.sh).
   in: x0 continuation, x1 exception */
        function haft_ocaml_discontinue
        address x2, haft_ocaml_closure_raise
        b       haft_ocaml_resume_with
        end_function haft_ocaml_discontinue

/* raise exception: raises it in the caller's place, where the backtrace begins. */
        function haft_ocaml_raise
        str     xzr, STATE(backtrace_pos)
        b       caml_raise_exn
        end_function haft_ocaml_raise

/* The stack has overflowed in OCaml code: there is no room to call anything. */
        function haft_ocaml_overflowed
        adrp    x0, :got:caml_exn_Stack_overflow
        ldr     x0, [x0, :got_lo12:caml_exn_Stack_overflow]
        mov     sp, x26
        ldr     x9, [sp, #8]
        ldr     x26, [sp], #16
        br      x9
        end_function haft_ocaml_overflowed

/*
 * An exception has left a fiber of C: sp is past the trap in its `struct crossing`, on the stack of
 * its resumer, which must not be written to. Goes on on the fiber's own.
 *   in: x0 exception
 */
        function haft_ocaml_escape
        .cfi_undefined x30
        mov     x1, x0
        sub     x0, sp, #16
        str     x27, STATE(young_ptr)
        str     x26, STATE(exception_pointer)
        ldr     x9, [x0, #CROSSING_ROOM]
        mov     sp, x9
        mov     x30, #0
        b       haft_ocaml_escaped
        end_function haft_ocaml_escape

        .globl  haft_ocaml_code_end
        .hidden haft_ocaml_code_end
haft_ocaml_code_end:

/* Never executed: what the base of a fiber returns to, the end of a chunk of stack. */
        .globl  haft_ocaml_base
        .hidden haft_ocaml_base
haft_ocaml_base:
        brk     #1

        .section .note.GNU-stack, "", %progbits

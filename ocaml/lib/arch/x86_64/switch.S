/* SPDX-License-Identifier: MIT */
/*
 * Switches between the fibers of OCaml, x86-64, in the calling convention of OCaml 4: arguments in
 * rax, rbx, rdi, rsi; the result in rax; r14 is the runtime's state, r15 the allocation pointer,
 * both live throughout; nothing else is preserved by callees. OCaml code calls these as closures,
 * so that calls in tail position are jumps, which the compiler never makes of externals.
 *
 * The layouts of fibers and continuations are drawn in layout.h. Throughout: rcx is the fiber that
 * is entered or left, r11 the offset of libhaft's state in thread-local storage.
 *
 * A switch saves rsp, the exception pointer and the local roots of C. Everything else that the
 * runtime keeps for the running code is dead at a call of OCaml code.
 */
#include "layout.h"

/* The frame in which a handler is asked for a clause: the effect, the continuation. */
#define ASKED_ROOM 24

        .set    domain_state_field, 0
#define DOMAIN_STATE(type, name)                                                                   \
        .equ    domain_state_##name, domain_state_field;                                           \
        .set    domain_state_field, domain_state_field + 8
#include <caml/domain_state.tbl>
#undef DOMAIN_STATE
#define STATE(name) domain_state_##name(%r14)

        .macro  function name
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .endm

        .macro  end_function name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .macro  save register
        pushq   \register
        .cfi_adjust_cfa_offset 8
        .endm

        .macro  restore register
        popq    \register
        .cfi_adjust_cfa_offset -8
        .endm

        .macro  return_by_jump
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rcx
        jmp     *%rcx
        .endm

        .macro  load_thread
        movq    hafti_thread_state@gottpoff(%rip), %r11
        .endm

/* Back to the parent of the fiber in rcx, without its local roots: its registers, its place in the
   chain. */
        .macro  to_parent
        movq    FIBER_OUTER(%rcx), %r8
        movq    FIBER_PARENT_EXCEPTION(%rcx), %r9
        movq    %r8, %fs:THREAD_CURRENT(%r11)
        movq    %r9, STATE(exception_pointer)
        movq    FIBER_PARENT_SP(%rcx), %r8
        leaq    -8(%r8), %rsp
        .endm

        .macro  to_parents_roots
        movq    FIBER_PARENT_ROOTS(%rcx), %r8
        movq    %r8, STATE(local_roots)
        .endm

/* The caller becomes the parent of the fiber whose address is `fiber` - `tag`, which has rdx for a
   continuation from now on; not yet its local roots, which are in r10 then. */
        .macro  attach fiber, tag=0
        movq    (%rsp), %r8
        leaq    8(%rsp), %r9
        movq    %fs:THREAD_CURRENT(%r11), %r10
        movq    %r8, FIBER_PARENT_PC-\tag(\fiber)
        movq    %r9, FIBER_PARENT-\tag(\fiber)
        movq    %r9, FIBER_PARENT_SP-\tag(\fiber)
        movq    %r10, FIBER_OUTER-\tag(\fiber)
        movq    STATE(exception_pointer), %r8
        movq    STATE(local_roots), %r10
        movq    %r8, FIBER_PARENT_EXCEPTION-\tag(\fiber)
        movq    %rdx, FIBER_CONTINUATION-\tag(\fiber)
        .endm

/* The innermost fiber of OCaml around the caller, in rcx; goes to `far` if other handlers come
   first. */
        .macro  find_fiber far
        load_thread
        movq    %fs:THREAD_CURRENT(%r11), %rdx
        leaq    haft_ocaml_handles(%rip), %r8
        cmpq    %r8, FIBER_HANDLES-FIBER_SCOPE(%rdx)
        jne     \far
        leaq    -FIBER_SCOPE(%rdx), %rcx
        .endm

/* The innermost trap, in r8, is not that at the base of the fiber in rcx, in r9. */
        .macro  compare_traps
        movq    STATE(exception_pointer), %r8
        leaq    FIBER_TRAP(%rcx), %r9
        cmpq    %r9, %r8
        .endm

/* Goes to `callback` if code that C has called back stands between here and the base of the fiber:
   then one of the traps on the way is that of caml_start_program. */
        .macro  find_callbacks callback
        movq    haft_ocaml_callback_trap(%rip), %r10
1:      cmpq    8(%r8), %r10
        je      \callback
        movq    (%r8), %r8
        cmpq    %r9, %r8
        jne     1b
        .endm

/* The fiber in rcx, which is suspended otherwise, gets the continuation in rax, whose code is
   `continue`. On to its parent, with the effect in rax, the handler's function for effects in rbx,
   the continuation in rdi. */
        .macro  capture continue
        movq    %rax, %rdi
        movq    CONTINUATION_EFFECT(%rdi), %rax
        capture_in \continue
        to_parent
        .endm

/* The fiber gets the continuation in rdi, whose state is written; the handler's function for
   effects in rbx. */
        .macro  capture_in continue
        movq    FIBER_HANDLER(%rcx), %rbx
        leaq    \continue(%rip), %r8
        leaq    1(%rcx), %r9
        movq    16(%rbx), %rbx
        movq    $CONTINUATION_HEADER, -8(%rdi)
        movq    %r8, CONTINUATION_EFFECT(%rdi)
        movq    $CONTINUATION_INFORMATION, CONTINUATION_CLOSINFO(%rdi)
        movq    %r9, CONTINUATION_HOLDER(%rdi)
        movq    %rdi, FIBER_CONTINUATION(%rcx)
        .endm

/* Calls a function of C that keeps rax, rcx and rdx for us; the flags tell whether its result is
   0. */
        .macro  call_test function
        save    %rax
        save    %rcx
        save    %rdx
        call    \function@PLT
        testb   %al, %al
        restore %rdx
        restore %rcx
        restore %rax
        load_thread
        .endm

/* The fiber in rcx has ended. */
        .macro  make_idle
        movq    haft_ocaml_idle(%rip), %r8
        movq    $FIBER_IDLE, FIBER_CONTINUATION(%rcx)
        movq    %r8, FIBER_SP(%rcx)
        movq    %rcx, haft_ocaml_idle(%rip)
        .endm

/* The settler in rcx has ended. Keeps rax and rcx. */
        .macro  leave_host
        movq    %rcx, %rdi
        movq    %rax, %rbx
        movq    %rcx, %rbp
        call    haft_ocaml_leave_host@PLT
        movq    %rbx, %rax
        movq    %rbp, %rcx
        load_thread
        .endm

/* There is no memory for a stack: gives back those that nothing refers to any more. Keeps the
   values in the first `used` of rax, rbx, rdi and rsi. */
        .macro  collect used
        .if     \used < 4
        movl    $1, %esi
        .endif
        .if     \used < 3
        movl    $1, %edi
        .endif
        leaq    7f(%rip), %rdx
        jmp     .Lcollect
7:
        .endm

/* Removes the gaps to which the caller would return: it starts a nested fiber in tail position, and
   each such fiber would leave a gap behind otherwise. Keeps rax, rbx and rdi. */
        .macro  pop_gaps
10:     leaq    haft_ocaml_gap_returned(%rip), %r8
        cmpq    %r8, (%rsp)
        je      12f
        leaq    haft_ocaml_clause_returned(%rip), %r9
        cmpq    %r9, (%rsp)
        jne     14f
        cmpq    %r8, 16(%rsp)
        jne     14f
        addq    $16, %rsp
12:     cmpq    $0, GAP_FIBER+8(%rsp)
        je      13f
        save    %rax
        save    %rbx
        save    %rdi
        call    haft_ocaml_shelve_placed@PLT
        restore %rdi
        restore %rbx
        restore %rax
13:     movq    GAP_NEXT+8(%rsp), %r8
        movq    GAP_PARENT+8(%rsp), %r9
        movq    %r8, STATE(exception_pointer)
        leaq    -8(%r9), %rsp
        jmp     10b
14:
        .endm

/* Whether what the caller starts may be nested in the fiber that it runs on (nests.c): goes to
   `no`, or has the scope of that in rdx. rsi: the caller's stack pointer. */
        .macro  may_nest no
        cmpq    $0, %fs:THREAD_STAMP(%r11)
        je      \no
        movq    %fs:THREAD_CURRENT(%r11), %rdx
        leaq    haft_ocaml_handles(%rip), %r8
        cmpq    %r8, FIBER_HANDLES-FIBER_SCOPE(%rdx)
        jne     \no
        movq    FIBER_LOW-FIBER_SCOPE(%rdx), %r8
        movq    %rsi, %r9
        movq    %rdx, %r10
        subq    %r8, %r9
        subq    %r8, %r10
        cmpq    haft_ocaml_nest_reserve(%rip), %r9
        jb      \no
        cmpq    haft_ocaml_nest_most(%rip), %r10
        ja      \no
        cmpq    $0, STATE(local_roots)
        jne     \no
        movq    STATE(exception_pointer), %r8
        leaq    FIBER_TRAP-FIBER_SCOPE(%rdx), %r9
        cmpq    %r9, %r8
        je      8f
        find_callbacks \no
8:
        .endm

/* The header of a nested fiber at rcx, where a line of the caches begins, without its handler. Its
   parent's scope is in rdx, the parent's stack pointer in rsi; both stay. The exception pointer is
   still the parent's. */
        .macro  nest
        movq    (%rsi), %r8
        leaq    8(%rsi), %r9
        movq    STATE(exception_pointer), %r10
        movq    %r8, FIBER_PARENT_PC(%rcx)
        movq    %r9, FIBER_PARENT(%rcx)
        movq    %r9, FIBER_PARENT_SP(%rcx)
        movq    %r10, FIBER_PARENT_EXCEPTION(%rcx)
        movq    $0, FIBER_PARENT_ROOTS(%rcx)
        leaq    haft_ocaml_base(%rip), %r8
        leaq    haft_ocaml_handles(%rip), %r9
        leaq    FIBER_SCOPE(%rcx), %r10
        movq    $YOUNG_END, FIBER_YOUNG(%rcx)
        movq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        movq    $0, FIBER_ROOTS(%rcx)
        movq    %r8, FIBER_BASE_RETURN(%rcx)
        movq    %r10, FIBER_TOP(%rcx)
        movq    %rdx, FIBER_OUTER(%rcx)
        movq    %r9, FIBER_HANDLES(%rcx)
        movq    $0, FIBER_SERIAL(%rcx)
        movq    $0, FIBER_SCOPE_STATE(%rcx)
        .if     FIBER_SCOPE_SLOW - FIBER_SCOPE_KIND != 1 || \
                FIBER_SCOPE_FILLED - FIBER_SCOPE_KIND != 2
        .error  "the kind of a scope, `slow` and `filled` are written as one word"
        .endif
        movl    $(SCOPE_FIBER | 1 << 8), FIBER_SCOPE_KIND(%rcx)
        movq    $AWAITS_NOTHING, FIBER_AWAITS(%rcx)
        .set    entry, 0
        .rept   FIBER_CACHE_SLOTS
        movq    $0, FIBER_CACHE+entry*FIBER_CACHE_STEP(%rcx)
        .set    entry, entry + 1
        .endr
        movq    FIBER_NAME-FIBER_SCOPE(%rdx), %r8
        movq    FIBER_LANGUAGE-FIBER_SCOPE(%rdx), %r9
        movq    FIBER_STATE-FIBER_SCOPE(%rdx), %r10 /* and `kind` */
        movq    $0, FIBER_HOST(%rcx)
        movq    %r8, FIBER_NAME(%rcx)
        movq    %rcx, FIBER_HIGH(%rcx)
        movq    $0, FIBER_POOL(%rcx)
        movq    $0, FIBER_TOOLS(%rcx)
        movq    $0, FIBER_WITHIN(%rcx)
        movq    %r9, FIBER_LANGUAGE(%rcx)
        movq    %r10, FIBER_STATE(%rcx)
        movq    FIBER_LOW-FIBER_SCOPE(%rdx), %r8
        leaq    haft_ocaml_nested_raised(%rip), %r9
        leaq    FIBER_SCOPE(%rcx), %r10
        movq    $0, FIBER_OF_LANGUAGE(%rcx)
        movq    %r8, FIBER_LOW(%rcx)
        movq    %r9, FIBER_TRAP+8(%rcx)
        movq    %r10, %fs:THREAD_CURRENT(%r11)
        .endm

        .text
        .globl  haft_ocaml_code_begin
        .hidden haft_ocaml_code_begin
haft_ocaml_code_begin:

/*
 * runstack f x handler: runs f x on a new fiber under the handler, then handler.retc or
 * handler.exnc in the caller's place.
 *   in: rax f, rbx x, rdi handler
 *
 * The call is made under the local symbol __morestack: debuggers accept that the stack goes on at
 * a lower address past a frame of that name. The code before it would be found under another one.
 */
        .globl  haft_ocaml_runstack
        .hidden haft_ocaml_runstack
        .type   __morestack, @function
        .p2align 4
haft_ocaml_runstack:
__morestack:
        .cfi_startproc
        movq    haft_ocaml_idle(%rip), %rcx
        load_thread
        testq   %rcx, %rcx
        jz      .Lrunstack_refill
        cmpq    $0, %fs:THREAD_STAMP(%r11)
        je      .Lrunstack_refill
        movq    FIBER_SP(%rcx), %rdx
        movq    %rdx, haft_ocaml_idle(%rip)
        /* The handler inside this one will need it. */
        prefetcht0 (%rdx)
        prefetcht0 64(%rdx)
        prefetcht0 -64(%rdx)
        movq    %rdi, FIBER_HANDLER(%rcx)
        movq    haft_ocaml_running(%rip), %rdx
        attach  %rcx
        orq     FIBER_PARENT_ROOTS(%rcx), %r10
        jnz     .Lrunstack_roots
.Lrunstack_go:
        leaq    FIBER_SCOPE(%rcx), %r8
        movq    %r8, %fs:THREAD_CURRENT(%r11)
        .cfi_remember_state
        leaq    FIBER_TRAP(%rcx), %rsp
        .cfi_escape 0x0f, 0x04, 0x77, 0xe0, 0x00, 0x06 /* CFA = [rsp + 96], the parent's stack */
        movq    %rsp, STATE(exception_pointer)
        movq    %rax, %rdx
        movq    %rbx, %rax
        movq    %rdx, %rbx
        call    *(%rbx)
        .globl  haft_ocaml_returned
        .hidden haft_ocaml_returned
haft_ocaml_returned:
        leaq    -FIBER_TRAP(%rsp), %rcx
        cmpq    $0, FIBER_SERIAL(%rcx)
        jne     .Lreturned_seen
.Lreturned_go:
        load_thread
        movq    haft_ocaml_idle(%rip), %r8
        movq    $FIBER_IDLE, FIBER_CONTINUATION(%rcx)
        movq    FIBER_PARENT_ROOTS(%rcx), %r9
        movq    %rcx, haft_ocaml_idle(%rip)
        cmpq    %r8, FIBER_SP(%rcx)
        jne     .Lreturned_link
.Lreturned_linked:
        cmpq    %r9, STATE(local_roots)
        jne     .Lreturned_roots
.Lreturned_parent:
        movq    FIBER_HANDLER(%rcx), %rdx
        to_parent
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        movq    0(%rdx), %rbx
        jmp     *(%rbx)
        .cfi_restore_state
.Lreturned_link:
        movq    %r8, FIBER_SP(%rcx)
        jmp     .Lreturned_linked
.Lreturned_roots:
        movq    %r9, STATE(local_roots)
        jmp     .Lreturned_parent
        .cfi_restore_state

        .cfi_remember_state
        .cfi_escape 0x0f, 0x04, 0x77, 0xe0, 0x00, 0x06
.Lreturned_seen:
        movq    %rcx, %rdi
        movq    %rax, %rbx
        movq    %rcx, %rbp
        call    haft_ocaml_forget@PLT
        movq    %rbx, %rax
        movq    %rbp, %rcx
        jmp     .Lreturned_go

        .cfi_restore_state
.Lrunstack_roots:
        movq    STATE(local_roots), %r10
        movq    %r10, FIBER_PARENT_ROOTS(%rcx)
        testq   %r10, %r10
        jz      .Lrunstack_go
        save    %rax
        save    %rbx
        save    %rcx
        movq    %rcx, %rdi
        call    haft_ocaml_parent_has_roots@PLT
        restore %rcx
        restore %rbx
        restore %rax
        load_thread
        jmp     .Lrunstack_go

        .macro  refill
        save    %rax
        save    %rbx
        save    %rdi
        call    haft_ocaml_refill@PLT
        movl    %eax, %ecx
        restore %rdi
        restore %rbx
        restore %rax
        testb   %cl, %cl
        jnz     __morestack
        .endm

.Lrunstack_refill:
        pop_gaps
        load_thread
        movq    %rsp, %rsi
        may_nest .Lrunstack_take
        .cfi_remember_state
        .cfi_def_cfa %rsi, 8
        leaq    -FIBER_ROOM(%rsp), %rcx
        andq    $-64, %rcx
        leaq    FIBER_TRAP(%rcx), %rsp
        nest
        movq    %rdi, FIBER_HANDLER(%rcx)
        .cfi_escape 0x0f, 0x04, 0x77, 0xe0, 0x00, 0x06
        movq    %rsp, STATE(exception_pointer)
        movq    %rax, %rdx
        movq    %rbx, %rax
        movq    %rdx, %rbx
        call    *(%rbx)
        .globl  haft_ocaml_nested_returned
        .hidden haft_ocaml_nested_returned
haft_ocaml_nested_returned:
        leaq    -FIBER_TRAP(%rsp), %rcx
        load_thread
        cmpq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        jne     .Lsettler_returned
.Lnested_returned_go:
        movq    FIBER_HANDLER(%rcx), %rdx
        to_parents_roots
        to_parent
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        movq    0(%rdx), %rbx
        jmp     *(%rbx)
        .cfi_restore_state
.Lsettler_returned:
        leave_host
        jmp     .Lnested_returned_go
        .cfi_restore_state

.Lrunstack_take:
        refill
        collect used=3
        refill
        jmp     .Lno_memory
        .cfi_endproc
        .size   __morestack, . - __morestack

/* An exception has reached the base of a fiber.
     in: rax exception, rsp the fiber */
        function haft_ocaml_raised
        .cfi_escape 0x0f, 0x04, 0x77, 0xd0, 0x00, 0x06 /* CFA = [rsp + 80] */
        movq    %rsp, %rcx
        cmpq    $0, FIBER_SERIAL(%rcx)
        jne     .Lraised_seen
.Lraised_go:
        load_thread
        make_idle
        movq    FIBER_HANDLER(%rcx), %rdx
        to_parents_roots
        to_parent
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        movq    8(%rdx), %rbx
        jmp     *(%rbx)
        .cfi_restore_state
.Lraised_seen:
        leaq    FIBER_TRAP(%rsp), %rsp
        .cfi_escape 0x0f, 0x04, 0x77, 0xe0, 0x00, 0x06
        movq    %rcx, %rdi
        movq    %rax, %rbx
        movq    %rcx, %rbp
        call    haft_ocaml_forget@PLT
        movq    %rbx, %rax
        movq    %rbp, %rcx
        jmp     .Lraised_go
        end_function haft_ocaml_raised

/* The same, of a nested one. */
        function haft_ocaml_nested_raised
        .cfi_escape 0x0f, 0x04, 0x77, 0xd0, 0x00, 0x06 /* CFA = [rsp + 80] */
        movq    %rsp, %rcx
        load_thread
        cmpq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        jne     .Lsettler_raised
.Lnested_raised_go:
        movq    FIBER_HANDLER(%rcx), %rdx
        to_parents_roots
        to_parent
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        movq    8(%rdx), %rbx
        jmp     *(%rbx)
        .cfi_restore_state
.Lsettler_raised:
        leaq    FIBER_TRAP(%rsp), %rsp
        .cfi_escape 0x0f, 0x04, 0x77, 0xe0, 0x00, 0x06
        leave_host
        jmp     .Lnested_raised_go
        end_function haft_ocaml_nested_raised

/*
 * perform effect: suspends the current fiber and asks its handler for a clause, in the parent. Rare
 * cases, and those that are no mere switch, are left to perform_rarely (effect.ml).
 *   in: rax effect
 *
 * A continuation that is made here knows that its fiber has nothing inside, and that there are no
 * local roots (haft_ocaml_continue_alone). (Loads and comparisons are cheap; but no more than a
 * store or two retires in a cycle.)
 */
        .macro  begin_capture stack
        leaq    -8*(CONTINUATION_FIELDS + 1)(%r15), %rdi
        cmpq    STATE(young_limit), %rdi
        jb      .Lperform_rarely
        movq    %rdi, %r15
        addq    $8, %rdi
        movq    %r8, -8(%rsp)           /* The red zone is ours. */
        leaq    -8(%rsp), %r10
        leaq    \stack(%rip), %r9
        movq    %r10, FIBER_SP(%rcx)
        movq    %r9, CONTINUATION_STATE(%rdi)
        .endm

/* Goes to `no` unless the nested fiber in rcx may be placed: it would have room on a shelf, and
   what has been nested and placed below it is not too much. r8: the exception pointer; it stays. */
        .macro  may_place no
        movq    %rcx, %r9
        subq    %rsp, %r9
        cmpq    haft_ocaml_most_placed(%rip), %r9
        ja      \no
        cmpq    $(SHELF_LARGEST - FIBER_TRAP - 8), %r9
        jbe     8f
        leaq    haft_ocaml_gap_raised(%rip), %r10
        cmpq    %r10, 8(%r8)
        jne     \no
        addq    %r8, %r9                /* except for what the innermost gap divides */
        subq    GAP_PARENT(%r8), %r9
        cmpq    $(SHELF_LARGEST - FIBER_TRAP - 8), %r9
        ja      \no
8:
        .endm

/* Goes to `no` unless the gap in r9 is that of the fiber that was placed last, and this one, which
   has the continuation. */
        .macro  at_gap_of fiber, continuation, no
        cmpq    haft_ocaml_placed(%rip), %r9
        jne     \no
        movq    GAP_FIBER(%r9), %r8
        andq    $-2, %r8                /* whether a cycle has seen it */
        cmpq    \fiber, %r8
        jne     \no
        cmpq    \continuation, FIBER_CONTINUATION(\fiber)
        jne     \no
        .endm

/* Like .Lask_handler, with the handler's function in rdi and the continuation in rbx. */
        .macro  ask_handler
        cmpb    $2, CLOSURE_ARITY(%rdi)
        jne     .Lask_other_function
        jmp     *CLOSURE_CODE_2(%rdi)
        .endm

        function haft_ocaml_perform
        find_fiber .Lperform_rarely
        compare_traps
        jne     .Lperform_effect_traps
.Lperform_effect_go:
        movq    FIBER_PARENT_ROOTS(%rcx), %r9
        orq     STATE(local_roots), %r9
        orq     FIBER_ROOTS(%rcx), %r9
        orq     FIBER_SERIAL(%rcx), %r9
        jnz     .Lperform_rarely
        cmpq    %rdx, FIBER_TOP(%rcx)
        jne     .Lperform_rarely
        cmpq    $0, FIBER_YOUNG(%rcx)
        je      .Lperform_rarely
        cmpq    $FIBER_RUNNING, FIBER_CONTINUATION(%rcx)
        jne     .Lperform_effect_nested
        subq    $8*(CONTINUATION_FIELDS + 1), %r15
        cmpq    STATE(young_limit), %r15
        jb      .Lperform_without_room
        leaq    1-FIBER_SCOPE(%rdx), %r9 /* first: where `continue` goes depends on it */
        movq    %r8, -8(%rsp)           /* The red zone is ours. */
        movq    %r9, 8+CONTINUATION_HOLDER(%r15)
        leaq    -8(%rsp), %r10
        movq    FIBER_HANDLER(%rcx), %rdi
        leaq    8(%r15), %rbx
        movq    %r10, FIBER_SP(%rcx)
        leaq    haft_ocaml_continue_alone(%rip), %r8
        leaq    haft_ocaml_stack_young(%rip), %r9
        movq    %rbx, FIBER_CONTINUATION(%rcx)
        movq    16(%rdi), %rdi
        movq    $CONTINUATION_HEADER, (%r15)
        movq    %r8, 8+CONTINUATION_EFFECT(%r15)
        movq    $CONTINUATION_INFORMATION, 8+CONTINUATION_CLOSINFO(%r15)
        movq    %r9, 8+CONTINUATION_STATE(%r15)
        to_parent
        ask_handler
/* Jumps to the clause for the effect in rax, by the handler's function in rbx: in rdi the
   continuation. A function of two arguments is the clauses itself, or ends with haft_ocaml_pass.
   Any other is asked for the clause. */
.Lask_handler:
        cmpb    $2, CLOSURE_ARITY(%rbx)
        jne     .Lask_function
        movq    %rdi, %rsi
        movq    %rbx, %rdi
        movq    %rsi, %rbx
        jmp     *CLOSURE_CODE_2(%rdi)
.Lask_other_function:
        xchgq   %rbx, %rdi
.Lask_function:
        subq    $ASKED_ROOM, %rsp
        .cfi_adjust_cfa_offset ASKED_ROOM
        movq    %rax, (%rsp)
        movq    %rdi, 8(%rsp)
        call    *(%rbx)
        .globl  haft_ocaml_asked
        .hidden haft_ocaml_asked
haft_ocaml_asked:
        movq    (%rsp), %rsi
        movq    8(%rsp), %rdi
        addq    $ASKED_ROOM, %rsp
        .cfi_adjust_cfa_offset -ASKED_ROOM
        cmpq    $1, %rax
        je      .Lpass_asked
        movq    %rax, %rbx
        movq    %rdi, %rax
        cmpb    $0, -8(%rbx)
        jne     1f                      /* two arguments after all, one by one */
        movq    (%rbx), %rbx
1:      jmp     *(%rbx)
        end_function haft_ocaml_perform

/*
 * pass effect continuation: a handler has no clause for the effect: the fiber in which it was asked
 * is suspended, too, with the other one inside, and its handler is asked. If that is a mere switch,
 * the continuation becomes that of the outer fiber. Called like perform, in tail position of a
 * handler's function. (Few branches decide: a processor predicts at which handler this ends as long
 * as it remembers the branches on the way there.)
 *   in: rax effect, rbx continuation
 */
        function haft_ocaml_pass
.Lpass:
        leaq    haft_ocaml_stack_young(%rip), %r8
        leaq    8(%rsp), %r9
        movq    CONTINUATION_HOLDER(%rbx), %rsi
        cmpq    %r8, CONTINUATION_STATE(%rbx)
        jne     .Ldecline_placed
        xorq    FIBER_PARENT-1(%rsi), %r9 /* Otherwise the outer one was moved. */
        find_fiber .Ldecline
        leaq    FIBER_TRAP(%rcx), %r8
        xorq    STATE(exception_pointer), %r8
        orq     FIBER_PARENT_ROOTS(%rcx), %r9
        orq     STATE(local_roots), %r9
        orq     %r8, %r9
        cmpq    $1, FIBER_YOUNG(%rcx)
        sbbq    %r8, %r8                /* 0, unless that is 0 */
        orq     FIBER_ROOTS-1(%rsi), %r9
        orq     FIBER_ROOTS(%rcx), %r9
        orq     FIBER_CONTINUATION(%rcx), %r9 /* FIBER_RUNNING */
        orq     %r8, %r9
        jnz     .Ldecline
        movq    haft_ocaml_running(%rip), %rdx
        movq    FIBER_SP-1(%rsi), %r8
        movq    FIBER_TOP-1(%rsi), %r9
        movq    FIBER_HANDLER(%rcx), %rdi
        movq    %rdx, FIBER_CONTINUATION-1(%rsi)
        movq    %r8, FIBER_SP(%rcx)
        movq    %r9, FIBER_TOP(%rcx)
        leaq    haft_ocaml_continue(%rip), %r8
        leaq    1(%rcx), %r9
        movq    16(%rdi), %rdi
        movq    %r8, CONTINUATION_EFFECT(%rbx)
        movq    %r9, CONTINUATION_HOLDER(%rbx)
        movq    %rbx, FIBER_CONTINUATION(%rcx)
        to_parent
        ask_handler
.Lpass_asked:
        movq    %rsi, %rax
        movq    %rdi, %rbx
        jmp     .Lpass
.Ldecline:
        jmp     *haft_ocaml_decline(%rip)

/* The same, for a chain that is placed. haft_ocaml_release takes a fiber that is not yet a chain,
   one that is to be suspended in its host after a collection has found the continuation, and all
   rare cases. */
.Ldecline_placed:
        movq    %rbx, %rdi
        leaq    haft_ocaml_stack_placed(%rip), %r8
        cmpq    %r8, CONTINUATION_STATE(%rdi)
        jne     .Ldecline
        decq    %rsi
        at_gap_of %rsi, %rdi, .Ldecline
        find_fiber .Ldecline
        leaq    FIBER_SCOPE(%rsi), %r8
        cmpq    %rdx, FIBER_OUTER(%rsi)
        jne     .Ldecline
        cmpq    %r8, FIBER_TOP(%rsi)
        je      .Ldecline
        cmpq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        jne     .Ldecline
        cmpq    $0, FIBER_SERIAL(%rcx)
        jne     .Ldecline
/* The parent in rcx, which is nested, is placed around the fiber in rsi, which is: the gap in r9
   becomes its own. */
.Lpass_placed:
        movq    FIBER_SP(%rsi), %r8
        movq    FIBER_TOP(%rsi), %r10
        movq    $FIBER_NESTED, FIBER_CONTINUATION(%rsi)
        movq    %r8, FIBER_SP(%rcx)
        movq    %r10, FIBER_TOP(%rcx)
        movq    FIBER_PARENT_EXCEPTION(%rcx), %r8
        movq    FIBER_PARENT(%rcx), %r10
        movq    %r8, GAP_NEXT(%r9)
        movq    %r10, GAP_PARENT(%r9)
        movq    FIBER_PARENT_PC(%rcx), %r8
        movq    FIBER_OUTER(%rcx), %r10
        movq    %r8, GAP_PARENT_PC(%r9)
        movq    %rcx, GAP_FIBER(%r9)
        movq    %r10, %fs:THREAD_CURRENT(%r11)
        movq    FIBER_HANDLER(%rcx), %rbx
        leaq    haft_ocaml_continue_placed(%rip), %r8
        leaq    1(%rcx), %r10
        movq    $0, FIBER_ROOTS(%rcx)
        movq    %rdi, FIBER_CONTINUATION(%rcx)
        movq    %r8, CONTINUATION_EFFECT(%rdi)
        movq    %r10, CONTINUATION_HOLDER(%rdi)
        movq    16(%rbx), %rbx
        jmp     .Lask_handler

        end_function haft_ocaml_pass

/* The same, where code of the program's has run since the perform: the continuation may have been
   declined in a copy of that code. */
        function haft_ocaml_pass_after_guards
        jmp     *haft_ocaml_decline_after_guards(%rip)
        end_function haft_ocaml_pass_after_guards

        function haft_ocaml_perform_rest
.Lperform_effect_nested:
        cmpq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        jne     .Lperform_rarely
        movq    STATE(exception_pointer), %r8
        may_place .Lperform_leaves_nest
        begin_capture haft_ocaml_stack_placed
/* The fiber in rcx is placed: it stays where it is, and its handler is asked below it, beyond a
   gap. rax: the effect; rdi: the continuation; r10: where the gap ends, the fiber's stack pointer
   if nothing is inside. */
.Lplace:
        movq    FIBER_PARENT_EXCEPTION(%rcx), %r8
        leaq    haft_ocaml_gap_raised(%rip), %r9
        movq    %r8, GAP_NEXT-GAP_ROOM(%r10)
        movq    %r9, GAP_RAISED-GAP_ROOM(%r10)
        movq    FIBER_PARENT(%rcx), %r8
        movq    FIBER_PARENT_PC(%rcx), %r9
        movq    %r8, GAP_PARENT-GAP_ROOM(%r10)
        movq    %r9, GAP_PARENT_PC-GAP_ROOM(%r10)
        movq    haft_ocaml_placed(%rip), %r8
        movq    FIBER_OUTER(%rcx), %r9
        movq    %rcx, GAP_FIBER-GAP_ROOM(%r10)
        movq    %r8, GAP_PLACED-GAP_ROOM(%r10)
        movq    %r9, %fs:THREAD_CURRENT(%r11)
        leaq    haft_ocaml_gap_returned(%rip), %r8
        subq    $GAP_ROOM, %r10
        movq    %r10, haft_ocaml_placed(%rip)
        movq    %r8, -8(%r10)
        movq    %r10, STATE(exception_pointer)
        leaq    -8(%r10), %rsp
        capture_in haft_ocaml_continue_placed
        jmp     .Lask_handler
.Lperform_leaves_nest:
        begin_capture haft_ocaml_stack_young
        movq    %rax, CONTINUATION_EFFECT(%rdi)
        movq    %rdi, %rax
        xorl    %esi, %esi
        jmp     .Lleave_nest
.Lperform_effect_traps:
        find_callbacks .Lperform_rarely
        movq    STATE(exception_pointer), %r8
        jmp     .Lperform_effect_go
.Lperform_without_room:
        addq    $8*(CONTINUATION_FIELDS + 1), %r15
.Lperform_rarely:
        jmp     *haft_ocaml_perform_rarely(%rip)
        end_function haft_ocaml_perform_rest

/*
 * perform_captured continuation: the same, whatever it takes.
 *   in: rax continuation, with the effect in it
 */
        function haft_ocaml_perform_captured
        find_fiber .Lperform_far
.Lperform_found:
        compare_traps
        jne     .Lperform_traps
.Lperform_go:
        movq    STATE(exception_pointer), %r8
        leaq    -8(%rsp), %r10
        movq    STATE(local_roots), %r9
        movq    %r8, -8(%rsp)           /* The red zone is ours. */
        movq    FIBER_PARENT_ROOTS(%rcx), %r8
        movq    %r10, FIBER_SP(%rcx)
        orq     FIBER_ROOTS(%rcx), %r8
        orq     %r9, %r8
        jnz     .Lperform_roots
        cmpq    %rdx, FIBER_TOP(%rcx)
        jne     .Lperform_nested
.Lcapture_alone:
        xorl    %esi, %esi
.Lcapture:                              /* rsi: the fiber of OCaml inside, or 0 */
        cmpq    $0, FIBER_YOUNG(%rcx)
        je      .Lcapture_first
        cmpq    $FIBER_RUNNING, FIBER_CONTINUATION(%rcx)
        jne     .Lcapture_by_call
        capture haft_ocaml_continue
        jmp     .Lask_handler
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
.Lcapture_first:                        /* Once a collection, to find out. */
        movq    haft_ocaml_young(%rip), %r8
        movq    %r8, FIBER_YOUNG(%rcx)
        movq    %rcx, haft_ocaml_young(%rip)
.Lcapture_by_call:
        cmpq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        je      .Lcapture_nested
        capture haft_ocaml_continue_called
        cmpq    $FIBER_RUNNING, haft_ocaml_running(%rip)
        jne     .Lput_away
.Lcall_clause:
        leaq    haft_ocaml_clause_returned(%rip), %r8
        cmpq    %r8, (%rsp)
        jne     1f
        leaq    haft_ocaml_continue(%rip), %r8
        addq    $16, %rsp
        movq    %r8, CONTINUATION_EFFECT(%rdi)
1:      subq    $8, %rsp
        .cfi_remember_state
        .cfi_adjust_cfa_offset 8
        call    .Lask_handler
        .globl  haft_ocaml_clause_returned
        .hidden haft_ocaml_clause_returned
haft_ocaml_clause_returned:
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        return_by_jump

        .cfi_restore_state
.Lput_away:                             /* Others may have to be. */
        save    %rax
        save    %rbx
        save    %rdi
        movq    %rcx, %rdi
        movq    %r15, STATE(young_ptr)  /* it may allocate, without a collection */
        call    haft_ocaml_wait@PLT
        movq    STATE(young_ptr), %r15
        restore %rdi
        restore %rbx
        restore %rax
        jmp     .Lcall_clause
        end_function haft_ocaml_perform_by_call

/* The same, from a nested fiber, which is placed, or goes to a shelf or a stack of its own. rsi:
   the fiber of OCaml inside, or 0. */
        function haft_ocaml_perform_nested
.Lcapture_nested:
        leaq    FIBER_SCOPE(%rcx), %r8
        testq   %rsi, %rsi
        jnz     .Lcapture_around
        cmpq    %r8, FIBER_TOP(%rcx)
        jne     .Lleave_nest
        movq    FIBER_ROOTS(%rcx), %r9
        orq     FIBER_SERIAL(%rcx), %r9
        jnz     .Lleave_nest
        compare_traps
        je      9f
        find_callbacks .Lleave_nest
        movq    STATE(exception_pointer), %r8
9:      may_place .Lleave_nest
.Lplace_captured:
        leaq    haft_ocaml_stack_placed(%rip), %r9
        movq    %rax, %rdi
        leaq    -8(%rsp), %r10
        movq    CONTINUATION_EFFECT(%rdi), %rax
        movq    %r9, CONTINUATION_STATE(%rdi)
        jmp     .Lplace
.Lcapture_around:
        subq    $24, %rsp
        .cfi_adjust_cfa_offset 24
        movq    %rax, (%rsp)
        movq    %rcx, 8(%rsp)
        movq    %rsi, 16(%rsp)
        movq    %rcx, %rdi
        leaq    24(%rsp), %rdx
        call    haft_ocaml_may_place_around@PLT
        movl    %eax, %edx
        movq    (%rsp), %rax
        movq    8(%rsp), %rcx
        movq    16(%rsp), %rsi
        addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        testb   %dl, %dl
        jz      .Lleave_nest
        load_thread
        jmp     .Lplace_captured
.Lleave_nest:
        subq    $24, %rsp               /* -8(%rsp) has the exception pointer. */
        .cfi_adjust_cfa_offset 24
        movq    %rax, (%rsp)
        movq    %rcx, 8(%rsp)
        movq    %rcx, %rdi
        call    haft_ocaml_leave_nest@PLT
        movq    %rax, %rdx
        movq    8(%rsp), %rcx
        movq    (%rsp), %rax
        addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        testq   %rdx, %rdx
        jz      1f
        movq    %rdx, %rcx
        load_thread
        cmpq    $0, FIBER_BASE_RETURN(%rcx)
        jne     2f
        leaq    haft_ocaml_stack_aside(%rip), %r8
        movq    %r8, CONTINUATION_STATE(%rax)
2:      capture haft_ocaml_continue_called
        jmp     .Lask_handler
1:      movq    FIBER_ROOTS(%rcx), %r8
        movq    %r8, STATE(local_roots)
        jmp     .Lno_memory
        end_function haft_ocaml_perform_nested

        function haft_ocaml_perform_slow
.Lperform_traps:
        find_callbacks .Lperform_callback
        jmp     .Lperform_go
.Lperform_roots:
        movq    %r9, FIBER_ROOTS(%rcx)
        to_parents_roots
.Lperform_nested:
        movq    %rdx, FIBER_TOP(%rcx)
        jmp     .Lcapture_alone

.Lperform_callback:
        movq    %rcx, %rdi
        call_test haft_ocaml_may_suspend
        jnz     .Lperform_go
.Lperform_unhandled:
        movq    haft_ocaml_unhandled(%rip), %rbx
        movq    CONTINUATION_EFFECT(%rax), %rax
        jmp     *(%rbx)

.Lperform_far:
        leaq    .Lperform_found(%rip), %rsi
        leaq    .Lperform_unhandled(%rip), %rdi
        jmp     .Lfar
        end_function haft_ocaml_perform_slow

/*
 * reperform continuation: the handler has declined; the fiber in which it ran is suspended, too,
 * and the handler of that one is asked. Called like perform, with a continuation that is YOUNG and
 * in tail position: the inner fiber goes on in the place of the caller's caller. Or with one that
 * is PLACED, which may be passed as haft_ocaml_release has found.
 */
        function haft_ocaml_reperform
        leaq    haft_ocaml_stack_placed(%rip), %r8
        cmpq    %r8, CONTINUATION_STATE(%rax)
        je      .Lreperform_placed
        find_fiber .Lreperform_far
.Lreperform_found:
        compare_traps
        je      .Lreperform_go
        find_callbacks .Lreperform_callback
.Lreperform_go:
        movq    CONTINUATION_HOLDER(%rax), %rsi
        movq    haft_ocaml_running(%rip), %rdx
        attach  %rsi, 1
        movq    %r10, FIBER_PARENT_ROOTS-1(%rsi)
        movq    FIBER_SP-1(%rsi), %r8
        movq    FIBER_ROOTS-1(%rsi), %r9
        movq    FIBER_TOP-1(%rsi), %r10
        movq    %r8, FIBER_SP(%rcx)
        movq    %r9, FIBER_ROOTS(%rcx)
        movq    %r10, FIBER_TOP(%rcx)
        to_parents_roots
        decq    %rsi
        jmp     .Lcapture

.Lreperform_placed:
        load_thread
        movq    CONTINUATION_HOLDER(%rax), %rsi
        movq    haft_ocaml_placed(%rip), %r9
        decq    %rsi
        movq    FIBER_OUTER(%rsi), %rcx
        subq    $FIBER_SCOPE, %rcx
        cmpq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        jne     1f
        movq    %rax, %rdi
        movq    CONTINUATION_EFFECT(%rdi), %rax
        jmp     .Lpass_placed
1:      /* It is suspended, in its host. */
        leaq    FIBER_SCOPE(%rsi), %rdx
        movq    FIBER_TOP(%rsi), %r10
        movq    GAP_PLACED(%r9), %r8
        cmpq    %rdx, %r10
        je      2f
        decq    haft_ocaml_chains(%rip)
2:      movq    %r8, haft_ocaml_placed(%rip)
        movq    FIBER_SP(%rsi), %r8
        movq    $FIBER_NESTED, FIBER_CONTINUATION(%rsi)
        leaq    haft_ocaml_stack_young(%rip), %r9
        movq    %r8, FIBER_SP(%rcx)
        movq    %r10, FIBER_TOP(%rcx)
        movq    $0, FIBER_ROOTS(%rcx)
        movq    %r9, CONTINUATION_STATE(%rax)
        to_parents_roots
        jmp     .Lcapture

.Lreperform_callback:
        movq    %rcx, %rdi
        movq    CONTINUATION_HOLDER(%rax), %rsi
        decq    %rsi
        call_test haft_ocaml_may_suspend_from
        jnz     .Lreperform_go
.Lreperform_unhandled:
        movq    CONTINUATION_EFFECT(%rax), %rbx
        movq    haft_ocaml_unhandled(%rip), %rdi
        jmp     haft_ocaml_resume_with

.Lreperform_far:
        leaq    .Lreperform_found(%rip), %rsi
        leaq    .Lreperform_unhandled(%rip), %rdi
/* The innermost handler is not one of OCaml: goes to rsi with the fiber that is, or to rdi. */
.Lfar:
        save    %rsi
        save    %rdi
        save    %rax
        save    %rdx
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    haft_ocaml_innermost@PLT
        movq    %rax, %rcx
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        restore %rdx
        restore %rax
        restore %rdi
        restore %rsi
        load_thread
        testq   %rcx, %rcx
        cmovz   %rdi, %rsi
        jmp     *%rsi
        end_function haft_ocaml_reperform

/*
 * A gap (layout.h). A clause that runs in place has returned, or raised an exception: its fiber, if
 * it is still there, goes to a shelf.
 *   in: rax the result; rsp the gap
 */
        function haft_ocaml_gap
        .cfi_escape 0x0f, 0x03, 0x77, 0x10, 0x06 /* CFA = [rsp + 16], the parent's stack */
        nop
        .globl  haft_ocaml_gap_returned
        .hidden haft_ocaml_gap_returned
haft_ocaml_gap_returned:
        cmpq    $0, GAP_FIBER(%rsp)
        jne     2f
1:      movq    GAP_NEXT(%rsp), %r8
        movq    GAP_PARENT(%rsp), %r9
        movq    %r8, STATE(exception_pointer)
        .cfi_remember_state
        .cfi_def_cfa %r9, 0
        movq    %r9, %rsp
        movq    -8(%r9), %rcx
        jmp     *%rcx
        .cfi_restore_state
2:      movq    %rax, %rbx
        call    haft_ocaml_shelve_placed@PLT
        movq    %rbx, %rax
        jmp     1b
        end_function haft_ocaml_gap

/* rax: the exception; rsp is past the trap. */
        function haft_ocaml_gap_raised
        .cfi_escape 0x0f, 0x03, 0x77, 0x00, 0x06
        leaq    -16(%rsp), %rsp         /* The trap is still read. */
        .cfi_escape 0x0f, 0x03, 0x77, 0x10, 0x06
        cmpq    $0, GAP_FIBER(%rsp)
        jne     2f
1:      movq    GAP_PARENT(%rsp), %r9
        .cfi_remember_state
        .cfi_def_cfa %r9, 0
        leaq    -8(%r9), %rsp
        jmp     caml_raise_exn@PLT
        .cfi_restore_state
2:      movq    %rax, %rbx
        call    haft_ocaml_shelve_placed@PLT
        movq    %rbx, %rax
        jmp     1b
        end_function haft_ocaml_gap_raised

        .macro  to_child_stack tag=0
        movq    FIBER_SP-\tag(%rcx), %r8
        movq    (%r8), %r9
        leaq    8(%r8), %rsp
        movq    %r9, STATE(exception_pointer)
        .endm

/* Into the suspended fiber in rcx, which is attached. */
        .macro  to_child
        movq    FIBER_TOP(%rcx), %r8
        movq    FIBER_ROOTS(%rcx), %r9
        movq    %r8, %fs:THREAD_CURRENT(%r11)
        movq    %r9, STATE(local_roots)
        to_child_stack
        .endm

/* Enters the suspended fiber in rcx, which has rdx for a continuation from now on, with whatever is
   in rax, rbx and rdi. Goes to `slow` if that takes more than a switch. */
        .macro  enter slow
        cmpq    $0, FIBER_SERIAL(%rcx)
        jne     \slow
        cmpq    $0, %fs:THREAD_STAMP(%r11)
        je      \slow
        attach  %rcx
        movq    %r10, FIBER_PARENT_ROOTS(%rcx)
        testq   %r10, %r10
        jnz     \slow
        to_child
        .endm

/*
 * continue: the code of a continuation, applied to a value.
 *   in: rax value, rbx continuation
 *
 * Where a mere switch is enough, rcx is the fiber's address as the continuation has it, tagged.
 */
        .macro  begin_continue
        leaq    haft_ocaml_stack_young(%rip), %r8
        movq    CONTINUATION_HOLDER(%rbx), %rcx
        cmpq    %r8, CONTINUATION_STATE(%rbx)
        jne     .Lcontinue_awaken
        leaq    haft_ocaml_stack_used(%rip), %r8
        movq    %r8, CONTINUATION_STATE(%rbx)
        cmpq    %rbx, FIBER_CONTINUATION-1(%rcx)
        jne     .Lalready               /* A copy, of Weak.get_copy. */
        load_thread
        /* Where it was resumed before? Then all is there that `attach` stores. */
        leaq    8(%rsp), %r8
        cmpq    %r8, FIBER_PARENT-1(%rcx)
        jne     .Lcontinue_elsewhere
        movq    (%rsp), %r9
        cmpq    %r9, FIBER_PARENT_PC-1(%rcx)
        jne     .Lcontinue_elsewhere
        movq    %fs:THREAD_CURRENT(%r11), %r8
        cmpq    %r8, FIBER_OUTER-1(%rcx)
        jne     .Lcontinue_elsewhere
        movq    STATE(exception_pointer), %r9
        cmpq    %r9, FIBER_PARENT_EXCEPTION-1(%rcx)
        jne     .Lcontinue_elsewhere
        .endm

        .macro  continue
        begin_continue
        movq    STATE(local_roots), %r10
        orq     FIBER_PARENT_ROOTS-1(%rcx), %r10
        orq     FIBER_ROOTS-1(%rcx), %r10
        orq     FIBER_SERIAL-1(%rcx), %r10
        jnz     .Lcontinue_elsewhere
        movq    FIBER_TOP-1(%rcx), %r8
        movq    %rdx, FIBER_CONTINUATION-1(%rcx)
        movq    %r8, %fs:THREAD_CURRENT(%r11)
        to_child_stack tag=1
        .endm

        function haft_ocaml_continue
        movq    haft_ocaml_running(%rip), %rdx
        continue
        ret

        .macro  awaken_continued
        movq    %rbx, %rdi
        save    %rax
        call    haft_ocaml_awaken@PLT
        movq    %rax, %rcx
        restore %rax
        cmpq    $1, %rcx
        jb      .Lalready
        .endm

.Lcontinue_awaken:
        pop_gaps
        movq    CONTINUATION_HOLDER(%rbx), %rcx
        /* No stack is idle? Then it is nested, if it can be, from a shelf. */
        cmpq    $0, haft_ocaml_idle(%rip)
        jne     .Lcontinue_take
        load_thread
        movq    %rsp, %rsi
        leaq    haft_ocaml_clause_returned(%rip), %r8
        leaq    16(%rsp), %r9
        cmpq    %r8, (%rsp)
        cmoveq  %r9, %rsi
        may_nest .Lcontinue_take
        leaq    haft_ocaml_stack_aside(%rip), %r8
        cmpq    %r8, CONTINUATION_STATE(%rbx)
        jne     .Lcontinue_shelve
        decq    %rcx
        cmpq    %rbx, FIBER_CONTINUATION(%rcx)
        jne     .Lalready
        cmpq    $0, FIBER_BASE_RETURN(%rcx)
        jne     .Lcontinue_take
        cmpq    $YOUNG_END, FIBER_YOUNG(%rcx)
        ja      .Lcontinue_shelve
.Lcontinue_nest:
        .cfi_remember_state
        .cfi_def_cfa %rsi, 8
        movq    %rcx, %rdi
        leaq    -FIBER_ROOM(%rsi), %rcx
        andq    $-64, %rcx
        movq    %rcx, %r9
        subq    %rdi, %r9
        movq    FIBER_SP(%rdi), %r8
        leaq    FIBER_TRAP(%rdi), %r10
        leaq    (%r8, %r9), %rsp
2:      movups  (%r8), %xmm0
        movups  %xmm0, (%r8, %r9)
        addq    $16, %r8
        cmpq    %r10, %r8
        jb      2b
        leaq    haft_ocaml_nested_returned(%rip), %r8
        leaq    FIBER_TRAP(%rcx), %r10
        movq    %r8, FIBER_TRAP-8(%rcx)
        movq    %rsp, %r8
3:      addq    %r9, (%r8)              /* from trap to trap */
        movq    (%r8), %r8
        cmpq    %r10, %r8
        jne     3b
        nest
        movq    FIBER_HANDLER(%rdi), %r8
        movq    haft_ocaml_free_shelves(%rip), %r9
        leaq    haft_ocaml_stack_used(%rip), %r10
        movq    %r8, FIBER_HANDLER(%rcx)
        movq    $FIBER_IDLE, FIBER_CONTINUATION(%rdi)
        movq    %r9, FIBER_TOP(%rdi)
        movq    %rdi, haft_ocaml_free_shelves(%rip)
        decq    haft_ocaml_shelves_in_use(%rip)
        movq    %r10, CONTINUATION_STATE(%rbx)
        popq    STATE(exception_pointer)
        .cfi_def_cfa %rsp, 8
        return_by_jump
        .cfi_restore_state
.Lcontinue_shelve:
        save    %rax
        save    %rsi
        save    %rdx
        movq    %rbx, %rdi
        call    haft_ocaml_shelve_awakened@PLT
        movq    %rax, %rcx
        restore %rdx
        restore %rsi
        restore %rax
        load_thread
        testq   %rcx, %rcx
        jnz     .Lcontinue_nest
.Lcontinue_take:
        awaken_continued
        ja      1f
        collect used=2
        awaken_continued
        je      .Lno_memory
1:      load_thread
        incq    %rcx
.Lcontinue_elsewhere:
        decq    %rcx
        /* By a clause that was called, and ends with this? Then the next one need not be called. By
           any other code: clauses of this fiber seem to return. */
        movl    $FIBER_CALLS, %edx
        leaq    haft_ocaml_clause_returned(%rip), %r8
        cmpq    %r8, (%rsp)
        jne     1f
        movq    haft_ocaml_running(%rip), %rdx
1:      enter   .Lcontinue_slow
        .cfi_remember_state
        return_by_jump
        .cfi_restore_state

.Lcontinue_slow:
        movq    %rax, %rbx
        movq    haft_ocaml_identity(%rip), %rdi
        jmp     .Lenter_slow
        end_function haft_ocaml_continue

/* The same, of a fiber that was captured by haft_ocaml_perform. */
        function haft_ocaml_continue_alone
        begin_continue
        cmpq    $0, STATE(local_roots)
        jne     .Lcontinue_elsewhere
        movq    haft_ocaml_running(%rip), %rdx
        leaq    FIBER_SCOPE-1(%rcx), %r8
        movq    %rdx, FIBER_CONTINUATION-1(%rcx)
        movq    %r8, %fs:THREAD_CURRENT(%r11)
        to_child_stack tag=1
        ret
        end_function haft_ocaml_continue_alone

/* The same, of a fiber with FIBER_CALLS. */
        function haft_ocaml_continue_called
        movl    $FIBER_CALLS, %edx
        continue
        return_by_jump
        end_function haft_ocaml_continue_called

/* The same, of a fiber that was placed: it is entered as it is where its clause ends with that. */
        function haft_ocaml_continue_placed
        leaq    haft_ocaml_stack_placed(%rip), %r8
        movq    CONTINUATION_HOLDER(%rbx), %rcx
        cmpq    %r8, CONTINUATION_STATE(%rbx)
        jne     .Lcontinue_shelved
        leaq    8(%rsp), %r9
        decq    %rcx
        at_gap_of %rcx, %rbx, .Lcontinue_shelves
        load_thread
        leaq    haft_ocaml_stack_used(%rip), %r10
        movq    GAP_PLACED(%r9), %r9
        movq    FIBER_TOP(%rcx), %rdx
        leaq    FIBER_SCOPE(%rcx), %r8
        movq    %r10, CONTINUATION_STATE(%rbx)
        movq    %r9, haft_ocaml_placed(%rip)
        movq    $FIBER_NESTED, FIBER_CONTINUATION(%rcx)
        movq    %rdx, %fs:THREAD_CURRENT(%r11)
        cmpq    %r8, %rdx
        jne     1f
2:      to_child_stack
        .cfi_remember_state
        return_by_jump
        .cfi_restore_state
1:      decq    haft_ocaml_chains(%rip)
        jmp     2b
/* A copy, of Weak.get_copy, is still marked as placed then. */
.Lcontinue_shelves:
        subq    $24, %rsp
        .cfi_adjust_cfa_offset 24
        movq    %rax, 8(%rsp)
        movq    %rbx, 16(%rsp)
        call    haft_ocaml_shelve_placed@PLT
        movq    8(%rsp), %rax
        movq    16(%rsp), %rbx
        addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        leaq    haft_ocaml_stack_placed(%rip), %r8
        cmpq    %r8, CONTINUATION_STATE(%rbx)
        je      .Lalready
.Lcontinue_shelved:
        jmp     haft_ocaml_continue_called
        end_function haft_ocaml_continue_placed

/*
 * resume_with continuation argument function: function argument, called where the fiber was
 * suspended.
 *   in: rax continuation, rbx argument, rdi closure
 */
        function haft_ocaml_resume_with
        movl    $1, %esi
.Lresume:
        leaq    haft_ocaml_stack_young(%rip), %r8
        movq    CONTINUATION_HOLDER(%rax), %rcx
        cmpq    %r8, CONTINUATION_STATE(%rax)
        jne     .Lresume_awaken
        leaq    haft_ocaml_stack_used(%rip), %r8
        decq    %rcx
        movq    %r8, CONTINUATION_STATE(%rax)
        cmpq    %rax, FIBER_CONTINUATION(%rcx)
        jne     .Lalready               /* A copy, of Weak.get_copy. */
.Lresume_go:
        cmpq    $1, %rsi
        je      1f
        movq    %rsi, FIBER_HANDLER(%rcx)
1:      load_thread
        movq    haft_ocaml_running(%rip), %rdx
        enter   .Lenter_slow
        movq    %rbx, %rax
        movq    %rdi, %rbx
        jmp     *(%rbx)

        .macro  awaken_resumed
        save    %rdi
        save    %rsi
        save    %rbx
        save    %rax
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        movq    %rax, %rdi
        call    haft_ocaml_awaken@PLT
        movq    %rax, %rcx
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        restore %rax
        restore %rbx
        restore %rsi
        restore %rdi
        cmpq    $1, %rcx
        ja      .Lresume_go
        jb      .Lalready
        .endm

.Lresume_awaken:
        awaken_resumed
        collect used=4
        awaken_resumed
.Lno_memory:
        movq    caml_exn_Out_of_memory@GOTPCREL(%rip), %rax
        jmp     caml_raise_exn@PLT
.Lalready:
        movq    haft_ocaml_already(%rip), %rbx
        movl    $1, %eax
        jmp     *(%rbx)

/* The fiber in rcx was looked through, or the thread is new to libhaft, or the caller has local
   roots. */
.Lenter_slow:
        save    %rbx
        save    %rcx
        save    %rdi
        movq    %rcx, %rdi
        call    haft_ocaml_prepare@PLT
        restore %rdi
        restore %rcx
        restore %rbx
        load_thread
        movq    haft_ocaml_running(%rip), %rdx
        attach  %rcx
        movq    %r10, FIBER_PARENT_ROOTS(%rcx)
        testq   %r10, %r10
        jz      1f
        save    %rbx
        save    %rcx
        save    %rdi
        movq    %rcx, %rdi
        call    haft_ocaml_parent_has_roots@PLT
        restore %rdi
        restore %rcx
        restore %rbx
        load_thread
1:      to_child
        movq    %rbx, %rax
        movq    %rdi, %rbx
        jmp     *(%rbx)
        end_function haft_ocaml_resume_with

/* resume_under continuation argument function handler: the same, with another handler from now
   on. */
        function haft_ocaml_resume_under
        jmp     .Lresume
        end_function haft_ocaml_resume_under

/* `collect`, on the way back to rdx. */
        function haft_ocaml_collect
.Lcollect:
        subq    $40, %rsp
        .cfi_adjust_cfa_offset 40
        movq    %rax, (%rsp)
        movq    %rbx, 8(%rsp)
        movq    %rdi, 16(%rsp)
        movq    %rsi, 24(%rsp)
        movq    %rdx, 32(%rsp)
        movq    haft_ocaml_free_dropped@GOTPCREL(%rip), %rax
        call    caml_c_call@PLT
        .globl  haft_ocaml_collected
        .hidden haft_ocaml_collected
haft_ocaml_collected:
        movq    (%rsp), %rax
        movq    8(%rsp), %rbx
        movq    16(%rsp), %rdi
        movq    24(%rsp), %rsi
        movq    32(%rsp), %rdx
        addq    $40, %rsp
        .cfi_adjust_cfa_offset -40
        jmp     *%rdx
        end_function haft_ocaml_collect

/* discontinue continuation exception: raises it where the fiber was suspended (place_jumps.sh).
   in: rax continuation, rbx exception */
        function haft_ocaml_discontinue
        leaq    haft_ocaml_closure_raise(%rip), %rdi
        jmp     haft_ocaml_resume_with
        end_function haft_ocaml_discontinue

/* raise exception: raises it in the caller's place, where the backtrace begins. */
        function haft_ocaml_raise
        movq    $0, STATE(backtrace_pos)
        jmp     caml_raise_exn@PLT
        end_function haft_ocaml_raise

/* The stack has overflowed in OCaml code: there is no room to call anything. */
        function haft_ocaml_overflowed
        movq    caml_exn_Stack_overflow@GOTPCREL(%rip), %rax
        movq    STATE(exception_pointer), %rsp
        popq    STATE(exception_pointer)
        ret
        end_function haft_ocaml_overflowed

/*
 * An exception has left a fiber of C: rsp is past the trap in its `struct crossing`, on the stack
 * of its resumer, which must not be written to. Goes on on the fiber's own.
 *   in: rax exception
 */
        function haft_ocaml_escape
        .cfi_undefined %rip
        leaq    -16(%rsp), %rdi
        movq    %r15, STATE(young_ptr)
        movq    CROSSING_ROOM(%rdi), %rsp
        movq    %rax, %rsi
        pushq   $0
        jmp     haft_ocaml_escaped@PLT
        end_function haft_ocaml_escape

        .globl  haft_ocaml_code_end
        .hidden haft_ocaml_code_end
haft_ocaml_code_end:

/* Never executed: what the base of a fiber returns to, the end of a chunk of stack. */
        .globl  haft_ocaml_base
        .hidden haft_ocaml_base
haft_ocaml_base:
        ud2

        .section .note.GNU-stack, "", @progbits

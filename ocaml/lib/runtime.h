/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of this library share, one section a file.
 */
#ifndef HAFTI_OCAML_RUNTIME_H
#define HAFTI_OCAML_RUNTIME_H

#define CAML_NAME_SPACE
#define CAML_INTERNALS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <caml/mlvalues.h>

#include <caml/address_class.h>
#include <caml/alloc.h>
#include <caml/backtrace.h>
#include <caml/callback.h>
#include <caml/codefrag.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/gc.h>
#include <caml/gc_ctrl.h>
#include <caml/major_gc.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/roots.h>
#include <caml/signals.h>
#include <caml/stack.h>
#pragma GCC diagnostic pop

#include <assert.h>
#include <haft.h>
#include <haft/language.h>

#include "layout.h"

/* The fields of a fiber's header in OCaml's use (layout.h). */
typedef struct ocaml_fiber ocaml_fiber_t;
struct ocaml_fiber {
    ocaml_fiber_t *young;
    value continuation;
    char *sp; /* idle: the next idle fiber */
    value handler;
    struct caml__roots_block *roots;
    const void *base_return;
    uintptr_t awaits;
    hafti_scope_t *top;
    struct caml_context parent;
    char *parent_exception;
    struct caml__roots_block *parent_roots;
    hafti_scope_t scope;
};

/* A continuation's fields. */
enum {
    CONTINUATION_CODE_FIELD,
    CONTINUATION_CLOSINFO_FIELD,
    CONTINUATION_STATE_FIELD,
    CONTINUATION_HOLDER_FIELD
};

HAFTI_INLINE haft_fiber_t *haft_of(const ocaml_fiber_t *fiber) {
    return (haft_fiber_t *)(uintptr_t)fiber;
}
HAFTI_INLINE ocaml_fiber_t *ocaml_of(const haft_fiber_t *fiber) {
    return (ocaml_fiber_t *)(uintptr_t)fiber;
}
/* The trap at the base of a fiber's stack, where the words that move end. */
HAFTI_INLINE value *base_trap(const ocaml_fiber_t *fiber) {
    return (value *)(uintptr_t)((const char *)fiber + FIBER_TRAP);
}
HAFTI_INLINE bool is_running(const ocaml_fiber_t *fiber) {
    return fiber->continuation == FIBER_RUNNING || fiber->continuation == FIBER_CALLS ||
           fiber->continuation == FIBER_NESTED;
}
HAFTI_INLINE bool is_suspended(const ocaml_fiber_t *fiber) {
    return (uintptr_t)fiber->continuation >= FIBER_KEPT;
}

/* Nothing runs, or is suspended, inside the fiber. */
HAFTI_INLINE bool is_alone(const ocaml_fiber_t *fiber) {
    return fiber->top == &fiber->scope;
}

/* arch/NAME/switch.S */
extern const haft_handles_t haft_ocaml_handles;
extern char haft_ocaml_code_begin[], haft_ocaml_code_end[];
extern char haft_ocaml_asked[], haft_ocaml_returned[], haft_ocaml_nested_returned[],
    haft_ocaml_base[];
void haft_ocaml_gap_raised(void);
void haft_ocaml_raised(void);
void haft_ocaml_nested_raised(void);
void haft_ocaml_continue(void);

/* data.S */
extern value haft_ocaml_stack_young[], haft_ocaml_stack_placed[], haft_ocaml_stack_aside[],
    haft_ocaml_stack_kept[], haft_ocaml_stack_used[];
#define STACK_YOUNG ((value)haft_ocaml_stack_young)
#define STACK_PLACED ((value)haft_ocaml_stack_placed)
#define STACK_ASIDE ((value)haft_ocaml_stack_aside)
#define STACK_KEPT ((value)haft_ocaml_stack_kept)
#define STACK_USED ((value)haft_ocaml_stack_used)

/* The fiber, or shelf, that has a continuation's stack: neither KEPT nor USED. */
HAFTI_INLINE ocaml_fiber_t *holder_of(value continuation) {
    return (ocaml_fiber_t *)(Field(continuation, CONTINUATION_HOLDER_FIELD) & ~(value)1);
}
HAFTI_INLINE void set_holder(value continuation, value state, ocaml_fiber_t *fiber) {
    Field(continuation, CONTINUATION_STATE_FIELD) = state;
    Field(continuation, CONTINUATION_HOLDER_FIELD) = (value)fiber | 1;
}

/* fiber.c: fibers, and what the assembly calls. */
extern ocaml_fiber_t *haft_ocaml_idle;
/* The least bytes of a stack. */
extern size_t haft_ocaml_stack_size;
/* The code of the trap that stands where C has called OCaml code. */
extern uintnat haft_ocaml_callback_trap;
/* The fiber of OCaml whose scope this is, or NULL. */
HAFTI_INLINE ocaml_fiber_t *fiber_of_scope(hafti_scope_t *scope) {
    return scope->handles == &haft_ocaml_handles ? ocaml_of(hafti_fiber_of(scope)) : NULL;
}
/* Whether the fields agree with one another, and with the table of fiber.c. For assertions. */
bool haft_ocaml_is_valid(const ocaml_fiber_t *fiber);
/* A fiber that nothing runs on; NULL if memory is exhausted. */
ocaml_fiber_t *haft_ocaml_take_stack(void);
/* The same, with room for this many bytes. */
ocaml_fiber_t *haft_ocaml_take_stack_for(size_t bytes);
/* Whether that is an idle one, or one of the first, and there are not so many that what is
   suspended goes to shelves. */
bool haft_ocaml_has_stack(void);
/* Ends a fiber, as it is; a suspended one and those inside it. */
void haft_ocaml_end_one(ocaml_fiber_t *fiber);
void haft_ocaml_end(ocaml_fiber_t *fiber);
/* How many bytes of a fiber's stack are in use; 0 if `sp` is not on it. */
HAFTI_INLINE size_t haft_ocaml_depth(const ocaml_fiber_t *fiber, const char *sp) {
    const haft_fiber_t *header = haft_of(fiber);
    return sp >= header->low && sp <= header->high ? (size_t)(header->high - sp) : 0;
}
/* A fiber on whose stack no more could be nested has ended. */
void haft_ocaml_leave_full(ocaml_fiber_t *host);
/* Gives back all idle stacks, and the memory of shelves if none is in use. */
void haft_ocaml_give_idle(void);
/* Called after a minor collection, with the number of suspended stacks that it has found dropped
   (without shelves and placed fibers). */
void haft_ocaml_trim(long dropped);
/* There are so many stacks that no suspended computation may hold one beyond the next
   collection. */
bool haft_ocaml_many_stacks(void);

/* frames.c: the frames of code that does not run. */
typedef struct frames {
    char *sp;
    uintnat pc;
    value *registers; /* where the chunk was interrupted: what they held */
    const char *end;  /* where the last chunk of stack ends, or what its link leads to begins */
    struct caml_context *link; /* of the last chunk that was passed */
    frame_descr *last;         /* of the last frame: in a recursion that of the next one, too */
} frames_t;
/* The frames on a fiber's stack. At `sp` lie an exception pointer, a return address, and the
   frames. */
frames_t haft_ocaml_frames_from(const ocaml_fiber_t *fiber, const char *sp);
/* The frames of a suspended fiber and of the fibers inside it. */
frames_t haft_ocaml_frames(const ocaml_fiber_t *fiber);
/* The next frame, innermost first, or NULL; at the ends of chunks in between, `*border` becomes
   true. */
frame_descr *haft_ocaml_next_frame(frames_t *frames, char **sp, bool *border);
/* Calls `action` for the live slots of a frame. */
void haft_ocaml_scan_frame(scanning_action action, const frame_descr *frame, char *sp,
                           value *registers);
void haft_ocaml_scan_frames(scanning_action action, frames_t *frames);
/* All roots of a suspended fiber and of those inside it. */
void haft_ocaml_scan_suspended(scanning_action action, ocaml_fiber_t *fiber);

/* nests.c: fibers that run on the stacks of others. */
/* The gap of the fiber that was placed last, or NULL. */
typedef struct gap gap_t;
extern gap_t *haft_ocaml_placed;
/* For a fiber that is not on a shelf: it is nested, or a settler. */
HAFTI_INLINE bool is_nested(const ocaml_fiber_t *fiber) {
    return haft_of(fiber)->pool == NULL;
}
HAFTI_INLINE bool is_settler(const ocaml_fiber_t *fiber) {
    return is_nested(fiber) && haft_of(fiber)->argument != NULL;
}
/* Bytes of stack that are left to a nested fiber, at least; more than there can be: none is to be
   nested now. */
extern uintnat haft_ocaml_nest_reserve;
/* The most bytes of a stack that has nested fibers: what an ordinary one has, so that they and
   their host fit any other stack. */
extern uintnat haft_ocaml_nest_most;
/* A settler has ended, or a host that was full. */
void haft_ocaml_leave_host(ocaml_fiber_t *settler);
void haft_ocaml_reuse_hosts(void);
/* How far below its header the stack pointer of a fiber may be that is to be placed: 0 while there
   are no shelves that it could go to. */
extern uintnat haft_ocaml_most_placed;
/* Whether the fields of a suspended nested fiber are those of a placed one. For assertions. */
bool haft_ocaml_is_placed(const ocaml_fiber_t *fiber);
/* All that is placed goes to shelves. */
void haft_ocaml_shelve_placed(void);
/* The roots of what was placed since the last minor collection; of all. */
void haft_ocaml_scan_placed(scanning_action action, bool all);
/* A cycle of the major collector begins: the roots of what was placed since the last one did; what
   was placed before that goes to shelves. */
void haft_ocaml_darken_placed(void);
/* A minor collection ends. */
void haft_ocaml_end_placed_youth(void);
/* The handler of a placed fiber has declined: whether its parent may be suspended around it, as it
   is. Then that has to be done. */
bool haft_ocaml_may_pass(const ocaml_fiber_t *placed);
/* Ends the stacks that no chain needs now. */
void haft_ocaml_give_spares(void);
/* The bytes of a fiber's stack from `start` on, without the gaps. `trap` is the innermost trap
   there. */
size_t haft_ocaml_dense_bytes(const ocaml_fiber_t *fiber, const char *start, const char *trap);
/* Copies the stack of `from`, from `start` on, to the end of that of `to`, without the gaps.
   `*link` leads to the innermost trap, and does so afterwards. Returns where `start` went. */
char *haft_ocaml_copy_dense(const ocaml_fiber_t *from, const char *start, char **link,
                            ocaml_fiber_t *to);

/* ---- Stacks that are moved ---- */

/* Whether, from a trap on the stack of `fiber` outwards, there is code on it that C has called back
   (compare find_callbacks of switch.S). */
HAFTI_INLINE bool has_callbacks(const ocaml_fiber_t *fiber, const char *innermost_trap) {
    const uintnat *base = (const uintnat *)base_trap(fiber);
    const uintnat *trap = (const uintnat *)(const void *)innermost_trap;
    for (; trap != base; trap = (const uintnat *)trap[0])
        if (trap[1] == haft_ocaml_callback_trap)
            return true;
    return false;
}
/* The links between the traps from `link` to the base of `to` get the addresses that they have been
   moved to. */
HAFTI_INLINE void move_traps(char **link, const ocaml_fiber_t *to, intnat distance) {
    const char *base = (const char *)base_trap(to);
    while ((const char *)link != base) {
        *link += distance;
        link = (char **)(void *)*link;
    }
}
/* Code that was moved to the fiber will end as it would on a stack of its own. */
HAFTI_INLINE void set_end(ocaml_fiber_t *fiber) {
    base_trap(fiber)[-1] = (value)haft_ocaml_returned;
}
/* The bytes that are in use of a suspended fiber's stack. */
HAFTI_INLINE size_t bytes_of(const ocaml_fiber_t *fiber) {
    return (size_t)((const char *)base_trap(fiber) - fiber->sp);
}
/* Copies the stack of a suspended fiber, with nothing inside. */
HAFTI_INLINE void move_stack(const ocaml_fiber_t *from, ocaml_fiber_t *to) {
    intnat distance = (char *)to - (char *)from;
    to->sp = from->sp + distance;
    to->top = &to->scope;
    to->handler = from->handler;
    to->roots = NULL;
    const char *base = (const char *)base_trap(to);
    /* Most stacks are a few times this, which they are aligned to. */
    for (char *at = to->sp; at < base; at += 16)
        __builtin_memcpy(at, at - distance, 16);
    set_end(to);
    move_traps((char **)(void *)to->sp, to, distance);
}

/* shelves.c: small places for stacks that do not run. */
extern long haft_ocaml_shelves_in_use;
HAFTI_INLINE bool is_shelf(const ocaml_fiber_t *fiber) {
    return fiber->base_return == NULL;
}
/* A suspended fiber, moved to a stack if it is a shelf. NULL: no memory for one. */
ocaml_fiber_t *haft_ocaml_unshelve(ocaml_fiber_t *shelf);
void haft_ocaml_free_shelf(ocaml_fiber_t *shelf);
/* A shelf for this many bytes of stack; NULL: there are too many bytes, or there is no memory. */
ocaml_fiber_t *haft_ocaml_take_shelf(size_t bytes);
/* After a minor collection. */
void haft_ocaml_forget_waiting(void);
/* Gives the memory of shelves back if none is in use. */
void haft_ocaml_trim_shelves(void);

/* roots.c: the garbage collector's hooks. */
/* A fiber on a stack is about to get a young continuation. */
void haft_ocaml_list_young(ocaml_fiber_t *fiber);
/* A shelf holds a young continuation. */
void haft_ocaml_list_shelf(ocaml_fiber_t *shelf);
/* Either of them gets one. */
void haft_ocaml_list_suspended(ocaml_fiber_t *fiber);
/* A suspended fiber's continuation, where a scan takes it for a root. */
void haft_ocaml_scan_continuation(scanning_action action, ocaml_fiber_t *fiber);
/* The fiber goes on, or ends: it is not recent any more. */
void haft_ocaml_forget_recent(ocaml_fiber_t *fiber);
/* The fiber's parent has local roots, or may have: they are looked for. */
void haft_ocaml_list_rooted(ocaml_fiber_t *fiber);
void haft_ocaml_watch_collector(void);

/* stacks.c: the blocks that keep the stacks of continuations that have survived a minor
   collection. */
/* The fiber of a continuation. NULL if it was used, and if it has an image of it. */
ocaml_fiber_t *haft_ocaml_fiber(value continuation, bool *image);
/* An image as a suspended fiber, with those inside it. NULL: no memory for a stack. */
ocaml_fiber_t *haft_ocaml_restore(value image);
/* A continuation that has survived a minor collection, and not been used, gets a block. */
void haft_ocaml_settle(value continuation, ocaml_fiber_t *fiber);
/* The same before a minor collection, for a young continuation: it has an image then, or still its
   fiber. */
void haft_ocaml_settle_early(value continuation, ocaml_fiber_t *fiber);
/* A minor collection ends: decides whether that pays. */
void haft_ocaml_judge_early(void);
/* For compaction: the roots on stacks that were not put away. */
void haft_ocaml_scan_settled(scanning_action action);

/* foreign.c: frames and effects of C among those of OCaml. */
extern const haft_language_t haft_ocaml_language;
void haft_ocaml_watch_threads(void);
/* Ends the fibers of threads that have ended on them. */
void haft_ocaml_end_abandoned(void);
void haft_ocaml_scan_foreign(scanning_action action);
/* `fiber` has ended: forgets what lies on its stack. */
void haft_ocaml_forget_crossings(const haft_fiber_t *fiber);
void haft_ocaml_scan_roots_blocks(scanning_action action, struct caml__roots_block *blocks);

#endif

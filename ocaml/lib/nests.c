/* SPDX-License-Identifier: MIT */
/*
 * Nests: many handlers around one another on one stack.
 *
 * A fiber that runs inside another one needs no stack of its own while both run: its frames may as
 * well lie below those of its parent, which waits. So, once there are some stacks, a fiber begins
 * there, and deep recursion with a handler at each level is dense in memory:
 *
 *   | guard | ...free... <- rsp | frames | header | frames | header | frames | header |
 *                                \____ nested ____/ \____ nested ___/         host
 *
 * - Nested fibers run; what is suspended would be overwritten by its parent, unless that leaves it
 *   in place (below). A small one that is captured goes to a shelf, any other to a stack. Resumed
 *   from the shelf, it is nested again, below whoever resumes it (switch.S).
 * - A fiber in which functions of C wait cannot be moved: its parents are, those that share the
 *   stack with it. It has that for itself then, as a settler. Therefore fibers begin to be nested
 *   only in parents that can be moved: nothing of C waits on those, nor has local roots.
 * - Enough is left below: `haft_ocaml_nest_reserve` bytes for every nested fiber. Where there is
 *   not, the next fiber has a stack of its own, and is the next host.
 * - The header is as large as of use (FIBER_ROOM). libhaft's pool knows nothing of it.
 *
 * The word below the base trap of a fiber tells where it ends: in haft_ocaml_returned, or in
 * haft_ocaml_nested_returned. Whoever moves the fiber sets it.
 */
#include "runtime.h"

#include <string.h>

/* ---- Clauses that run in place ---- */

/*
 * A small nested fiber that performs need not go to a shelf at once: its clause runs below it, in its
 * parent, with a gap between (layout.h). Where the clause ends with `continue`, the gap goes, and
 * the fiber runs on as it is: nothing was moved. (x86-64 only.)
 *
 *   ... <- rsp | frames of the parent | gap | frames | header | frames of the parent | header |
 *                                             \____ placed ___/
 *
 * Placed fibers are in a list, the last one first, through the gaps. Whatever else may happen to one
 * of them, and be it that its clause returns, happens after all of them have gone to shelves. A
 * minor collection scans those that it has not seen. So does the beginning of a cycle of the major
 * collector; those that it has seen go to shelves, and the collector finds out what is reachable.
 *
 * The gaps stay until their clauses have ended. Where a fiber is moved, those between its frames are
 * left out; they are found by their traps.
 *
 * Only what has room on a shelf is placed, and while there are shelves: a collection can fail nowhere.
 * And only so far below the fiber's header that most of the stack remains to its clause.
 */
ocaml_fiber_t *haft_ocaml_placed;
uintnat haft_ocaml_most_placed;

HAFTI_INLINE void *gap_word(const char *gap, size_t offset) {
    return *(void *const *)(const void *)(gap + offset);
}
HAFTI_INLINE bool is_gap(const char *trap) {
    return gap_word(trap, GAP_RAISED) == (void *)(uintptr_t)haft_ocaml_gap_raised;
}

/* What goes with a gap is from the return address below it to the next one of its fiber's own. */
size_t haft_ocaml_dense_bytes(const ocaml_fiber_t *fiber, const char *start, const char *trap) {
    const char *base = (const char *)base_trap(fiber);
    size_t bytes = (size_t)(base - start);
    for (; trap != base; trap = gap_word(trap, GAP_NEXT))
        if (is_gap(trap))
            bytes -= (size_t)((const char *)gap_word(trap, GAP_PARENT) - trap);
    return bytes;
}

char *haft_ocaml_copy_dense(const ocaml_fiber_t *from, const char *start, char **link,
                            ocaml_fiber_t *to) {
    const char *base = (const char *)base_trap(from), *trap = *link;
    char *begin = (char *)base_trap(to) - haft_ocaml_dense_bytes(from, start, trap), *at = begin;
    if ((const char *)link == start)
        link = (char **)(void *)begin;
    for (;;) {
        const char *end = trap;
        while (end != base && !is_gap(end))
            end = gap_word(end, GAP_NEXT);
        const char *gap = end == base ? NULL : end;
        if (gap != NULL)
            end -= sizeof(value);
        memcpy(at, start, (size_t)(end - start));
        intnat distance = at - start;
        for (; trap != base && trap != gap; trap = gap_word(trap, GAP_NEXT)) {
            *link = (char *)(uintptr_t)trap + distance;
            link = (char **)(void *)*link;
        }
        at += end - start;
        if (gap == NULL)
            break;
        start = (const char *)gap_word(gap, GAP_PARENT) - sizeof(value);
        trap = gap_word(gap, GAP_NEXT);
    }
    assert(at == (char *)base_trap(to));
    *link = at;
    set_end(to);
    return begin;
}

/* Copies the stack of a suspended fiber, with nothing inside, whatever gaps it has. */
static void move_dense(const ocaml_fiber_t *from, ocaml_fiber_t *to) {
    to->sp = haft_ocaml_copy_dense(from, from->sp, (char **)(void *)from->sp, to);
    to->top = &to->scope;
    to->handler = from->handler;
    to->roots = NULL;
}

/* A place for so many bytes of a fiber's stack. NULL: there is no memory. */
HAFTI_INLINE ocaml_fiber_t *take_place(size_t bytes) {
    ocaml_fiber_t *place = haft_ocaml_take_shelf(bytes);
    return HAFTI_LIKELY(place != NULL) ? place : haft_ocaml_take_stack();
}

static void list_young(ocaml_fiber_t *fiber) {
    if (is_shelf(fiber))
        haft_ocaml_list_shelf(fiber);
    else
        haft_ocaml_list_young(fiber);
}

static char *gap_of(const ocaml_fiber_t *placed) {
    return placed->sp - GAP_ROOM;
}
/* A gap whose fiber a cycle has seen has this in the lowest bit of the fiber's address. */
enum { SEEN = 1 };

bool haft_ocaml_is_placed(const ocaml_fiber_t *fiber) {
    const char *gap = gap_of(fiber);
    return is_gap(gap) &&
           ((uintptr_t)gap_word(gap, GAP_FIBER) & ~(uintptr_t)SEEN) == (uintptr_t)fiber &&
           fiber->top == &fiber->scope && fiber->roots == NULL &&
           fiber->young == (ocaml_fiber_t *)YOUNG_END && fiber->scope.serial == 0 &&
           gap_word(gap, GAP_PARENT) == fiber->parent.bottom_of_stack &&
           gap_word(gap, GAP_NEXT) == fiber->parent_exception;
}
/* Where the gap has what was placed before. */
static ocaml_fiber_t **placed_before(const ocaml_fiber_t *placed) {
    return (ocaml_fiber_t **)(void *)(gap_of(placed) + GAP_PLACED);
}

/* The fiber is not to go on where it is placed. */
static void leave_gap(ocaml_fiber_t *placed) {
    *(ocaml_fiber_t **)(void *)(gap_of(placed) + GAP_FIBER) = NULL;
    placed->continuation = FIBER_IDLE;
}

/* To a shelf. */
static void shelve(ocaml_fiber_t *placed) {
    assert(is_suspended(placed) && haft_ocaml_is_valid(placed));
    value continuation = placed->continuation;
    ocaml_fiber_t *to =
        take_place(haft_ocaml_dense_bytes(placed, placed->sp, *(char **)(void *)placed->sp));
    if (to == NULL)
        caml_fatal_error("haft: no memory for the stack of a continuation");
    move_dense(placed, to);
    to->continuation = continuation;
    assert(haft_ocaml_is_valid(to));
    Field(continuation, CONTINUATION_FIBER_FIELD) = (value)to | 1;
    Field(continuation, CONTINUATION_STACK_FIELD) = STACK_ASIDE;
    list_young(to);
    leave_gap(placed);
}

void haft_ocaml_shelve_placed(void) {
    while (haft_ocaml_placed != NULL) {
        ocaml_fiber_t *fiber = haft_ocaml_placed;
        haft_ocaml_placed = *placed_before(fiber);
        shelve(fiber);
    }
}

void haft_ocaml_darken_placed(void) {
    ocaml_fiber_t **link = &haft_ocaml_placed;
    while (*link != NULL) {
        ocaml_fiber_t *fiber = *link;
        uintptr_t *word = (uintptr_t *)(void *)(gap_of(fiber) + GAP_FIBER);
        if (*word & SEEN) {
            *link = *placed_before(fiber);
            shelve(fiber);
            continue;
        }
        *word |= SEEN;
        haft_ocaml_scan_suspended(caml_darken, fiber);
        if (!Is_young(fiber->continuation))
            haft_ocaml_scan_continuation(caml_darken, fiber);
        link = placed_before(fiber);
    }
}

/* Those with young continuations are the first of the list. */
void haft_ocaml_scan_placed(scanning_action action, bool all) {
    for (ocaml_fiber_t *fiber = haft_ocaml_placed;
         fiber != NULL && (all || Is_young(fiber->continuation)); fiber = *placed_before(fiber)) {
        haft_ocaml_scan_suspended(action, fiber);
        if (all)
            haft_ocaml_scan_continuation(action, fiber);
    }
}

void haft_ocaml_end_placed_youth(void) {
    ocaml_fiber_t **link = &haft_ocaml_placed;
    while (*link != NULL && Is_young((*link)->continuation)) {
        ocaml_fiber_t *fiber = *link;
        value continuation = fiber->continuation;
        if (Hd_val(continuation) == 0) {
            fiber->continuation = Field(continuation, 0);
            link = placed_before(fiber);
        } else {
            *link = *placed_before(fiber);
            leave_gap(fiber);
        }
    }
}

/* ---- Moving ---- */

static void copy_parent(const ocaml_fiber_t *from, ocaml_fiber_t *to) {
    to->parent = from->parent;
    to->parent_exception = from->parent_exception;
    to->parent_roots = from->parent_roots;
    to->scope.outer = from->scope.outer;
}

/* The fiber, in which `child` runs or is suspended, goes on on the stack of `to`, which is idle. */
static void move_parent(const ocaml_fiber_t *fiber, ocaml_fiber_t *child, ocaml_fiber_t *to) {
    char *begin = haft_ocaml_copy_dense(fiber, child->parent.bottom_of_stack - sizeof(value),
                                        &child->parent_exception, to);
    copy_parent(fiber, to);
    to->handler = fiber->handler;
    to->roots = NULL;
    to->top = &to->scope;
    child->parent.bottom_of_stack = begin + sizeof(value);
    child->parent.last_retaddr = *(const uintnat *)(const void *)begin;
    child->parent.gc_regs = (value *)(void *)child->parent.bottom_of_stack;
    child->scope.outer = &to->scope;
}

/* The fiber has the stack that it is on: it is nested in nobody. */
static bool is_host(const ocaml_fiber_t *fiber) {
    return !is_nested(fiber) || is_settler(fiber);
}

/* So many idle fibers, linked by `sp`; NULL: there is no memory. */
static ocaml_fiber_t *take_stacks(size_t count) {
    ocaml_fiber_t *taken = NULL;
    while (count-- > 0) {
        ocaml_fiber_t *fiber = haft_ocaml_take_stack();
        if (fiber != NULL) {
            fiber->sp = (char *)taken;
            taken = fiber;
            continue;
        }
        while (taken != NULL) {
            ocaml_fiber_t *next = (ocaml_fiber_t *)(void *)taken->sp;
            haft_ocaml_end_one(taken);
            taken = next;
        }
        return NULL;
    }
    return taken;
}

/* Gives the stack on which the fiber is nested to it alone. False: no memory for its parents. */
static bool settle(ocaml_fiber_t *fiber) {
    size_t parents = 1;
    ocaml_fiber_t *host = fiber_of_scope(fiber->scope.outer);
    for (; !is_host(host); host = fiber_of_scope(host->scope.outer))
        parents++;
    ocaml_fiber_t *stacks = take_stacks(parents), *child = fiber;
    if (stacks == NULL)
        return false;
    while (parents-- > 0) {
        ocaml_fiber_t *parent = fiber_of_scope(child->scope.outer), *to = stacks;
        stacks = (ocaml_fiber_t *)(void *)to->sp;
        assert(is_running(parent) && haft_ocaml_is_valid(parent));
        move_parent(parent, child, to);
        to->continuation = parent == host ? host->continuation : FIBER_RUNNING;
        child = to;
    }
    if (child->parent_roots != NULL)
        haft_ocaml_list_rooted(child);
    host->continuation = FIBER_IDLE; /* and not to be used again before the settler has ended */
    haft_fiber_t *stack = is_settler(host) ? haft_of(host)->argument : haft_of(host);
    haft_of(fiber)->argument = stack;
    stack->within = haft_of(fiber); /* libhaft goes on to the settler's resumer */
    fiber->continuation = FIBER_RUNNING;
    fiber->young = NULL;
    assert(haft_ocaml_is_valid(fiber));
    return true;
}

/* Where a nested fiber goes that is captured, with nothing inside. */
HAFTI_INLINE ocaml_fiber_t *move_alone(const ocaml_fiber_t *fiber) {
    const char *trap = *(const char **)(void *)fiber->sp;
    size_t bytes = haft_ocaml_dense_bytes(fiber, fiber->sp, trap);
    ocaml_fiber_t *to = take_place(bytes);
    if (to == NULL)
        return NULL;
    list_young(to);
    if (bytes == bytes_of(fiber))
        move_stack(fiber, to);
    else
        move_dense(fiber, to);
    copy_parent(fiber, to);
    assert(haft_ocaml_is_valid(to));
    return to;
}

/* The same, with another one inside. */
static ocaml_fiber_t *move_around(ocaml_fiber_t *fiber, ocaml_fiber_t *child) {
    ocaml_fiber_t *to = haft_ocaml_take_stack();
    if (to == NULL)
        return NULL;
    move_parent(fiber, child, to);
    to->sp = fiber->sp;
    to->roots = fiber->roots;
    to->top = fiber->top;
    haft_ocaml_list_young(to);
    assert(haft_ocaml_is_valid(to));
    return to;
}

ocaml_fiber_t *haft_ocaml_leave_nest(ocaml_fiber_t *fiber, ocaml_fiber_t *child);

/* Called by switch.S: the nested fiber is about to be captured, with `child` inside. Returns the
   fiber that it is then; NULL: there is no memory. */
ocaml_fiber_t *haft_ocaml_leave_nest(ocaml_fiber_t *fiber, ocaml_fiber_t *child) {
    assert(fiber->continuation == FIBER_NESTED && haft_ocaml_is_valid(fiber));
    haft_ocaml_shelve_placed();
    if (HAFTI_LIKELY(fiber->top == &fiber->scope)) {
        if (fiber->roots == NULL && !has_callbacks(fiber, *(char **)(void *)fiber->sp))
            return move_alone(fiber);
    } else if (child != NULL && child->scope.outer == &fiber->scope &&
               child->parent_roots == NULL && !has_callbacks(fiber, child->parent_exception)) {
        return move_around(fiber, child);
    }
    if (!settle(fiber))
        return NULL;
    haft_ocaml_list_young(fiber);
    return fiber;
}

/* ---- Settlers ---- */

static ocaml_fiber_t *left_hosts;

void haft_ocaml_leave_host(ocaml_fiber_t *settler) {
    if (!is_nested(settler)) {
        haft_ocaml_leave_full(settler);
        return;
    }
    ocaml_fiber_t *host = haft_of(settler)->argument;
    haft_of(host)->within = NULL;
    settler->continuation = FIBER_IDLE;
    host->sp = (char *)left_hosts;
    left_hosts = host;
}

/* After a minor collection: no list has an ended settler any more. */
void haft_ocaml_reuse_hosts(void) {
    while (left_hosts != NULL) {
        ocaml_fiber_t *host = left_hosts;
        left_hosts = (ocaml_fiber_t *)(void *)host->sp;
        haft_ocaml_end_one(host);
    }
}

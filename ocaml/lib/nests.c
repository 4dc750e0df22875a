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
 * - Nested fibers run, or are suspended together with their host; a fiber that is suspended alone
 *   would be overwritten by its parent, unless that leaves it in place (below). A small fiber that
 *   is captured goes to a shelf, any other to a stack. Resumed from the shelf, it is nested again,
 *   below its resumer (switch.S).
 * - A fiber in which functions of C wait cannot be moved: its parents are, those that share the
 *   stack with it. It has that for itself then, as a settler. Therefore fibers begin to be nested
 *   only in parents that can be moved: nothing of C waits on those, nor has local roots.
 * - Enough is left below: `haft_ocaml_nest_reserve` bytes for every nested fiber. Where there is
 *   not, the next fiber has a stack of its own, and is the next host.
 * - A host has an ordinary stack, and not one of the few larger ones (fiber.c): so it and its
 *   nested fibers fit any stack to which they are moved.
 * - The header is as large as of use (FIBER_ROOM). libhaft's pool knows nothing of it.
 *
 * The word below the base trap of a fiber tells where it ends: in haft_ocaml_returned, or in
 * haft_ocaml_nested_returned. Code that moves the fiber sets it.
 */
#include "runtime.h"

#include <string.h>

/* ---- Clauses that run in place ---- */

/*
 * A small nested fiber that performs need not go to a shelf at once: its clause runs below it, in
 * its parent, with a gap between (layout.h). Where the clause ends with `continue`, the gap goes,
 * and the fiber runs on as it is: nothing was moved.
 *
 *   ... <- rsp | frames of the parent | gap | frames | header | frames of the parent | header |
 *                                             \____ placed ___/
 *
 * Where the handler declines, the gap becomes the parent's: that is placed with the fiber inside
 * it, a chain, and its handler is asked in the grandparent. So an effect passes any number of
 * handlers, and nothing is moved. Where the parent is a host, it is suspended on its stack as any
 * other fiber, and the gap has gone. A host is placed inside of the fiber that its own stack was
 * taken for.
 *
 *  ... <- rsp | frames of the grandparent | gap | frames | header | frames | header | frames of the
 *                                                 \________ placed, a chain ________/  grandparent
 *
 * Placed fibers are in a list, the last one first, through the gaps. Before anything else happens
 * to one of them, even a return of its clause, all of them go to shelves, and chains go to stacks.
 * A minor collection scans those that it has not seen. So does the beginning of a cycle of the
 * major collector; those that it has seen go to shelves, and the collector determines what is
 * reachable. A fiber that a minor collection finds dropped stays IDLE on the list until then,
 * because others may be placed among its frames.
 *
 * The gaps stay until their clauses have ended. Where a fiber is moved, those between its frames
 * are left out; they are found by their traps.
 *
 * A fiber is placed only if it fits on a shelf and there are shelves, and for each chain there is a
 * spare stack: so a collection cannot fail. It is placed only so far below the fiber's header that
 * most of the stack remains for its clause.
 */
struct gap {
    char *next;
    void (*raised)(void);
    char *parent;
    uintnat parent_pc;
    uintptr_t fiber; /* and SEEN */
    gap_t *before;
};
_Static_assert(GAP_NEXT == offsetof(gap_t, next) && GAP_RAISED == offsetof(gap_t, raised) &&
                   GAP_PARENT == offsetof(gap_t, parent) &&
                   GAP_PARENT_PC == offsetof(gap_t, parent_pc) &&
                   GAP_FIBER == offsetof(gap_t, fiber) && GAP_PLACED == offsetof(gap_t, before) &&
                   GAP_ROOM == sizeof(gap_t),
               "layout.h tells where fields lie");
/* A cycle of the major collector has seen the fiber. */
enum { SEEN = 1 };

gap_t *haft_ocaml_placed;
uintnat haft_ocaml_most_placed;
/* Chains that are placed. */
long haft_ocaml_chains;
static long spares;
static ocaml_fiber_t *spare; /* linked by `sp` */

/* The gap at this trap, or NULL if it is another trap. */
HAFTI_INLINE const gap_t *gap_at(const char *trap) {
    const gap_t *gap = (const gap_t *)(const void *)trap;
    return gap->raised == haft_ocaml_gap_raised ? gap : NULL;
}
HAFTI_INLINE ocaml_fiber_t *fiber_of_gap(const gap_t *gap) {
    return (ocaml_fiber_t *)(gap->fiber & ~(uintptr_t)SEEN);
}

/* A gap reaches from the return address below it to the next one of its fiber itself. */
size_t haft_ocaml_dense_bytes(const ocaml_fiber_t *fiber, const char *start, const char *trap) {
    const char *base = (const char *)base_trap(fiber);
    size_t bytes = (size_t)(base - start);
    for (; trap != base; trap = *(const char *const *)(const void *)trap) {
        const gap_t *gap = gap_at(trap);
        if (gap != NULL)
            bytes -= (size_t)(gap->parent - trap);
    }
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
        while (end != base && gap_at(end) == NULL)
            end = *(const char *const *)(const void *)end;
        const gap_t *gap = end == base ? NULL : gap_at(end);
        if (gap != NULL)
            end -= sizeof(value);
        memcpy(at, start, (size_t)(end - start));
        intnat distance = at - start;
        for (; trap != base && trap != (const char *)gap;
             trap = *(const char *const *)(const void *)trap) {
            *link = (char *)(uintptr_t)trap + distance;
            link = (char **)(void *)*link;
        }
        at += end - start;
        if (gap == NULL)
            break;
        start = gap->parent - sizeof(value);
        trap = gap->next;
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

/* Returns a place for `bytes` of a fiber's stack; NULL: there is no memory. */
HAFTI_INLINE ocaml_fiber_t *take_place(size_t bytes) {
    ocaml_fiber_t *place = haft_ocaml_take_shelf(bytes);
    return HAFTI_LIKELY(place != NULL) ? place : haft_ocaml_take_stack();
}

/* ---- Moving ---- */

static void copy_parent(const ocaml_fiber_t *from, ocaml_fiber_t *to) {
    to->parent = from->parent;
    to->parent_exception = from->parent_exception;
    to->parent_roots = from->parent_roots;
    to->scope.outer = from->scope.outer;
}

/* The frames of the fiber in which `child` runs or is suspended go to `to`. */
static void move_frames_around(const ocaml_fiber_t *fiber, ocaml_fiber_t *child,
                               ocaml_fiber_t *to) {
    char *begin = haft_ocaml_copy_dense(fiber, child->parent.bottom_of_stack - sizeof(value),
                                        &child->parent_exception, to);
    child->parent.bottom_of_stack = begin + sizeof(value);
    child->parent.last_retaddr = *(const uintnat *)(const void *)begin;
    child->parent.gc_regs = (value *)(void *)child->parent.bottom_of_stack;
    child->scope.outer = &to->scope;
}

/* The fiber, in which `child` runs or is suspended, goes on on the stack of `to`, which is idle. */
static void move_parent(const ocaml_fiber_t *fiber, ocaml_fiber_t *child, ocaml_fiber_t *to) {
    move_frames_around(fiber, child, to);
    copy_parent(fiber, to);
    to->handler = fiber->handler;
    to->roots = NULL;
    to->top = &to->scope;
}

/* The fiber owns the stack that it is on: it is not nested. */
static bool is_host(const ocaml_fiber_t *fiber) {
    return !is_nested(fiber) || is_settler(fiber);
}

/* ---- Chains ---- */

/* The distance from the header of a nested fiber up to that of its parent: compare `nest` of
   switch.S. The parent is dense. */
static size_t distance_of(const ocaml_fiber_t *nested) {
    enum { LINE = 64 };
    const ocaml_fiber_t *parent = fiber_of_scope(nested->scope.outer);
    size_t bytes = haft_ocaml_dense_bytes(parent, nested->parent.bottom_of_stack - sizeof(value),
                                          nested->parent_exception);
    return (bytes + FIBER_ROOM - FIBER_TRAP + LINE - 1) / LINE * LINE;
}

/* A nested fiber goes to where a header may be, on the stack of `host`. */
static void move_header(const ocaml_fiber_t *fiber, ocaml_fiber_t *to, const ocaml_fiber_t *host) {
    memcpy(to, fiber, FIBER_ROOM);
    to->top = &to->scope;
    haft_of(to)->high = (char *)to;
    haft_of(to)->low = haft_of(host)->low;
    base_trap(to)[-1] = (value)haft_ocaml_nested_returned;
    base_trap(to)[1] = (value)(uintptr_t)haft_ocaml_nested_raised;
}

/*
 * The fibers from `fiber` to `innermost`, on one stack, go to that of `to`, which is idle: `fiber`
 * becomes its host, and the others are nested there. `child`, elsewhere, is inside the innermost;
 * NULL: that is where `fiber` is suspended.
 */
static void move_together(const ocaml_fiber_t *fiber, const ocaml_fiber_t *innermost,
                          ocaml_fiber_t *child, ocaml_fiber_t *to) {
    size_t distance = 0;
    for (const ocaml_fiber_t *one = innermost; one != fiber; one = fiber_of_scope(one->scope.outer))
        distance += distance_of(one);
    assert((uintptr_t)to % 64 == 0 && (size_t)((char *)to - haft_of(to)->low) > distance);
    for (const ocaml_fiber_t *one = innermost;; one = fiber_of_scope(one->scope.outer)) {
        ocaml_fiber_t *place = (ocaml_fiber_t *)(void *)((char *)to - distance);
        if (one != fiber)
            distance -= distance_of(one);
        if (child == NULL) {
            to->top = &place->scope;
            to->sp = haft_ocaml_copy_dense(one, fiber->sp, (char **)(void *)fiber->sp, place);
        } else {
            move_frames_around(one, child, place);
        }
        if (one == fiber)
            break;
        move_header(one, place, to);
        child = place;
    }
    copy_parent(fiber, to);
    to->handler = fiber->handler;
    to->roots = NULL;
}

/* Moves the fibers of the chain with this outermost fiber that are on its stack to the stack of
   `to`. */
static void move_chain(const ocaml_fiber_t *fiber, ocaml_fiber_t *to) {
    ocaml_fiber_t *inside = NULL;           /* the outermost one on another stack */
    const ocaml_fiber_t *innermost = fiber; /* on this one */
    uint64_t serials = fiber->scope.serial;
    for (hafti_scope_t *scope = fiber->top; scope != &fiber->scope; scope = scope->outer) {
        ocaml_fiber_t *one = fiber_of_scope(scope);
        if (one == NULL || is_host(one)) {
            inside = one;
            innermost = fiber;
            continue;
        }
        if (innermost == fiber)
            innermost = one;
        serials |= scope->serial;
    }
    if (serials != 0)
        haft_language_moved(fiber->top, haft_of(fiber));
    to->sp = fiber->sp;
    to->top = fiber->top;
    move_together(fiber, innermost, inside, to);
}

/* A chain begins: there is to be a stack for it. */
static bool begin_chain(void) {
    if (spares == haft_ocaml_chains) {
        ocaml_fiber_t *fiber = haft_ocaml_take_stack();
        if (fiber == NULL)
            return false;
        fiber->sp = (char *)spare;
        spare = fiber;
        spares++;
    }
    haft_ocaml_chains++;
    return true;
}

static ocaml_fiber_t *take_spare(void) {
    ocaml_fiber_t *fiber = spare;
    spare = (ocaml_fiber_t *)(void *)fiber->sp;
    spares--;
    return fiber;
}

void haft_ocaml_give_spares(void) {
    while (spares > haft_ocaml_chains)
        haft_ocaml_end_one(take_spare());
}

bool haft_ocaml_may_pass(const ocaml_fiber_t *placed) {
    const gap_t *gap = haft_ocaml_placed;
    const ocaml_fiber_t *outer = fiber_of_scope(placed->scope.outer);
    if (gap == NULL || fiber_of_gap(gap) != placed || outer == NULL ||
        haft_language_thread()->current != placed->scope.outer)
        return false;
    if (outer->continuation != FIBER_NESTED)
        return outer->continuation != FIBER_IDLE;
    return outer->scope.serial == 0 && (!is_alone(placed) || begin_chain());
}

bool haft_ocaml_may_place_around(const ocaml_fiber_t *fiber, const ocaml_fiber_t *child,
                                 const char *sp);

/* Called by switch.S: whether the nested fiber, which waits for `child` there, may be placed. */
bool haft_ocaml_may_place_around(const ocaml_fiber_t *fiber, const ocaml_fiber_t *child,
                                 const char *sp) {
    return child->scope.outer == &fiber->scope && child->parent_roots == NULL &&
           fiber->roots == NULL && fiber->scope.serial == 0 &&
           (size_t)((const char *)fiber - sp) <= haft_ocaml_stack_size / 16 &&
           !has_callbacks(fiber, child->parent_exception) && begin_chain();
}

/* ---- The list of placed fibers ---- */

bool haft_ocaml_is_placed(const ocaml_fiber_t *fiber) {
    if (fiber->roots != NULL || fiber->young != (ocaml_fiber_t *)YOUNG_END ||
        fiber->scope.serial != 0)
        return false;
    if (!is_alone(fiber))
        return true;
    const gap_t *gap = gap_at(fiber->sp - GAP_ROOM);
    return gap != NULL && fiber_of_gap(gap) == fiber &&
           gap->parent == fiber->parent.bottom_of_stack && gap->next == fiber->parent_exception;
}

/* Moves the fiber to a shelf or to a stack: it is not to continue where it is placed. */
static void shelve(gap_t *gap) {
    ocaml_fiber_t *placed = fiber_of_gap(gap), *to;
    assert(is_suspended(placed) && haft_ocaml_is_valid(placed));
    value continuation = placed->continuation;
    if (is_alone(placed)) {
        to = take_place(haft_ocaml_dense_bytes(placed, placed->sp, *(char **)(void *)placed->sp));
        if (to == NULL)
            caml_fatal_error("haft: no memory for the stack of a continuation");
        move_dense(placed, to);
    } else {
        to = take_spare();
        haft_ocaml_chains--;
        move_chain(placed, to);
    }
    to->continuation = continuation;
    assert(haft_ocaml_is_valid(to));
    set_holder(continuation, STACK_ASIDE, to);
    haft_ocaml_list_suspended(to);
    gap->fiber = 0;
    placed->continuation = FIBER_IDLE;
}

void haft_ocaml_shelve_placed(void) {
    ocaml_fiber_t *dropped = NULL;
    while (haft_ocaml_placed != NULL) {
        gap_t *gap = haft_ocaml_placed;
        haft_ocaml_placed = gap->before;
        ocaml_fiber_t *fiber = fiber_of_gap(gap);
        if (is_suspended(fiber)) {
            shelve(gap);
            continue;
        }
        gap->fiber = 0;
        fiber->young = dropped;
        dropped = fiber;
    }
    while (dropped != NULL) {
        ocaml_fiber_t *fiber = dropped;
        dropped = fiber->young;
        haft_ocaml_end(fiber);
    }
}

void haft_ocaml_darken_placed(void) {
    gap_t **link = &haft_ocaml_placed;
    while (*link != NULL) {
        gap_t *gap = *link;
        ocaml_fiber_t *fiber = fiber_of_gap(gap);
        if (is_suspended(fiber)) {
            if (gap->fiber & SEEN) {
                *link = gap->before;
                shelve(gap);
                continue;
            }
            gap->fiber |= SEEN;
            haft_ocaml_scan_suspended(caml_darken, fiber);
            if (!Is_young(fiber->continuation))
                haft_ocaml_scan_continuation(caml_darken, fiber);
        }
        link = &gap->before;
    }
}

/* The fibers with young continuations are the first of the list. */
void haft_ocaml_scan_placed(scanning_action action, bool all) {
    for (const gap_t *gap = haft_ocaml_placed; gap != NULL; gap = gap->before) {
        ocaml_fiber_t *fiber = fiber_of_gap(gap);
        if (!is_suspended(fiber))
            continue;
        if (!all && !Is_young(fiber->continuation))
            return;
        haft_ocaml_scan_suspended(action, fiber);
        if (all)
            haft_ocaml_scan_continuation(action, fiber);
    }
}

void haft_ocaml_end_placed_youth(void) {
    for (const gap_t *gap = haft_ocaml_placed; gap != NULL; gap = gap->before) {
        ocaml_fiber_t *fiber = fiber_of_gap(gap);
        value continuation = fiber->continuation;
        if (!is_suspended(fiber))
            continue;
        if (!Is_young(continuation))
            return;
        if (Hd_val(continuation) == 0) {
            fiber->continuation = Field(continuation, 0);
            continue;
        }
        fiber->continuation = FIBER_IDLE;
        if (!is_alone(fiber))
            haft_ocaml_chains--;
    }
}

/* ---- Leaving a nest ---- */

/* Returns this many idle fibers, linked by `sp`; NULL: there is no memory. */
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

/*
 * Gives the stack on which the fiber is nested to it alone. False: no memory for its parents.
 *
 * These are moved to few stacks: the innermost to one, the next two to another, the next four, and
 * so on. The next one to be settled is nested in one of them, and moves only those that share its
 * stack. So each is moved few times, also if every one of thousands of parents starts a fiber that
 * is settled.
 */
static bool settle(ocaml_fiber_t *fiber) {
    size_t parents = 1;
    ocaml_fiber_t *host = fiber_of_scope(fiber->scope.outer);
    uint64_t serials = host->scope.serial;
    for (; !is_host(host); parents++) {
        host = fiber_of_scope(host->scope.outer);
        serials |= host->scope.serial;
    }
    size_t count = 0;
    while (parents >> count != 0)
        count++;
    ocaml_fiber_t *stacks = take_stacks(count), *child = fiber;
    if (stacks == NULL)
        return false;
    if (serials != 0)
        haft_language_moved(fiber->top, haft_of(host));
    for (size_t together = 1; stacks != NULL; together *= 2) {
        ocaml_fiber_t *to = stacks, *innermost = fiber_of_scope(child->scope.outer);
        ocaml_fiber_t *outermost = innermost;
        stacks = (ocaml_fiber_t *)(void *)to->sp;
        for (size_t more = together; more > 1 && outermost != host; more--)
            outermost = fiber_of_scope(outermost->scope.outer);
        assert(is_running(outermost) && haft_ocaml_is_valid(outermost));
        move_together(outermost, innermost, child, to);
        to->top = &to->scope;
        to->continuation = outermost == host ? host->continuation : FIBER_RUNNING;
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
    haft_ocaml_list_suspended(to);
    if (bytes == bytes_of(fiber))
        move_stack(fiber, to);
    else
        move_dense(fiber, to);
    copy_parent(fiber, to);
    assert(haft_ocaml_is_valid(to));
    return to;
}

/* The same, with another one inside, which has a stack. */
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
    if (HAFTI_LIKELY(is_alone(fiber))) {
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

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
 * - Nested fibers run; what is suspended would be overwritten by its parent. A small one that is
 *   captured goes to a shelf, any other to a stack. Resumed from the shelf, it is nested again,
 *   below whoever resumes it (switch.S).
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

static void copy_parent(const ocaml_fiber_t *from, ocaml_fiber_t *to) {
    to->parent = from->parent;
    to->parent_exception = from->parent_exception;
    to->parent_roots = from->parent_roots;
    to->scope.outer = from->scope.outer;
}

/* The fiber, in which `child` runs or is suspended, goes on on the stack of `to`, which is idle. */
static void move_parent(const ocaml_fiber_t *fiber, ocaml_fiber_t *child, ocaml_fiber_t *to) {
    intnat distance = (char *)to - (char *)fiber;
    char *from = child->parent.bottom_of_stack - sizeof(value);
    memcpy(from + distance, from, (size_t)((char *)base_trap(fiber) - from));
    set_end(to);
    copy_parent(fiber, to);
    to->handler = fiber->handler;
    to->roots = NULL;
    to->top = &to->scope;
    child->parent.bottom_of_stack += distance;
    child->parent.last_retaddr = ((const uintnat *)(const void *)child->parent.bottom_of_stack)[-1];
    child->parent.gc_regs = (value *)(void *)child->parent.bottom_of_stack;
    move_traps(&child->parent_exception, to, distance);
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
    ocaml_fiber_t *to = haft_ocaml_take_shelf(bytes_of(fiber));
    if (HAFTI_LIKELY(to != NULL)) {
        haft_ocaml_list_shelf(to);
    } else {
        to = haft_ocaml_take_stack();
        if (to == NULL)
            return NULL;
        haft_ocaml_list_young(to);
    }
    move_stack(fiber, to);
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

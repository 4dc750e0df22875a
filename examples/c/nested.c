/* SPDX-License-Identifier: MIT */
/*
 * Nested: two fibers, one inside the other, and effects that stop at different ones. `outer_effect`
 * passes the inner resumer, which does not handle it, and suspends both fibers at once.
 * ("High-level effect handlers in C", §3.1, figures 1 to 3.)
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(outer_effect, void, {});
HAFT_EFFECT(inner_effect, void, {});

static void show(const char *when, haft_fiber_t *outer, haft_fiber_t *inner) {
    static const char *const names[] = {"new", "suspended", "running", "finished"};
    printf("%-28s outer: %-9s inner: %s\n", when, names[haft_fiber_state(outer)],
           names[haft_fiber_state(inner)]);
}

typedef struct fibers {
    haft_fiber_t *outer, *inner;
} fibers_t;

static void *inside(void *argument) {
    fibers_t *fibers = argument;
    show("before outer_effect", fibers->outer, fibers->inner);
    HAFT_PERFORM(outer_effect);
    show("before inner_effect", fibers->outer, fibers->inner);
    HAFT_PERFORM(inner_effect);
    return NULL;
}

static void *around(void *argument) {
    fibers_t *fibers = argument;
    haft_resume(fibers->inner, HAFT_NO_REPLY, HAFT_HANDLES(inner_effect));
    show("after inner_effect", fibers->outer, fibers->inner);
    haft_resume(fibers->inner, HAFT_NO_REPLY, HAFT_HANDLES(inner_effect));
    show("after the end of inside", fibers->outer, fibers->inner);
    return NULL;
}

int main(void) {
    fibers_t fibers;
    fibers.outer = haft_fiber_new(around, &fibers);
    fibers.inner = haft_fiber_new(inside, &fibers);
    show("at the beginning", fibers.outer, fibers.inner);
    haft_resume(fibers.outer, HAFT_NO_REPLY, HAFT_HANDLES(outer_effect));
    show("after outer_effect", fibers.outer, fibers.inner);
    haft_resume(fibers.outer, HAFT_NO_REPLY, HAFT_HANDLES(outer_effect));
    show("at the end", fibers.outer, fibers.inner);
    haft_fiber_drop(fibers.inner);
    haft_fiber_drop(fibers.outer);
    return 0;
}

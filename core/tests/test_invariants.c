/* SPDX-License-Identifier: MIT */
/* Checks of the library's own structures in debug builds: a broken one is reported where it is
   used. */
#include <haft.h>

#include <string.h>

#include "check.h"

#ifndef NDEBUG

HAFT_EFFECT(pause, void, {});

static void *pause_twice(void *unused) {
    HAFT_PERFORM(pause);
    HAFT_PERFORM(pause);
    return unused;
}
static haft_fiber_t *suspended(void) {
    haft_fiber_t *fiber = haft_fiber_new(pause_twice, NULL);
    (void)haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(pause));
    haft_fiber_detach(fiber); /* the next resume takes the path that looks */
    return fiber;
}
static void go_on(haft_fiber_t *fiber) {
    (void)haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(pause));
}

static void without_a_context(void) {
    haft_fiber_t *fiber = suspended();
    fiber->context.pc = NULL;
    go_on(fiber);
}
static void in_no_state(void) {
    haft_fiber_t *fiber = suspended();
    fiber->state = 77;
    haft_fiber_drop(fiber);
}
static void with_a_cut_chain(void) {
    haft_fiber_t *fiber = suspended();
    static hafti_scope_t stray;
    stray.kind = HAFTI_SCOPE_STACKLESS;
    stray.filled = UINT8_MAX;
    fiber->top = &stray;
    go_on(fiber);
}
static void with_a_hidden_entry(void) {
    haft_fiber_t *fiber = suspended();
    fiber->scope.filled = 0;
    fiber->scope.cache[3].key = (uintptr_t)HAFT_ID(pause);
    go_on(fiber);
}

static void a_broken_invariant_is_reported(void) {
    CHECK_ABORTS(without_a_context, "a suspended fiber has a context to go on with");
    CHECK_ABORTS(in_no_state, "a fiber's state is one that there is");
    CHECK_ABORTS(with_a_cut_chain, "the suspended chain of a fiber ends in its scope");
    CHECK_ABORTS(with_a_hidden_entry, "every entry of a scope's cache with a key");
}
#endif

int main(void) {
#ifndef NDEBUG
    RUN(a_broken_invariant_is_reported);
#endif
    return check_end();
}

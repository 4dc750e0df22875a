/* Dropping a suspended computation: its cleanups run, innermost first, through the whole chain. */
#include <haft.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(other, void, {});

static int order[64];
static int order_count;
static void note(int *value) {
    order[order_count++] = *value;
}
#define CLEANUP __attribute__((cleanup(note), unused)) int

static void check_order(int count) {
    CHECK_EQUAL(order_count, count);
    for (int i = 0; i < count; i++)
        CHECK_EQUAL(order[i], count - i);
    order_count = 0;
}

static __attribute__((noinline)) int frames(int from, int to) {
    CLEANUP here = from;
    int result = from == to ? HAFT_PERFORM(ask, 0) : frames(from + 1, to);
    __asm__ volatile("" ::: "memory");
    return result;
}
static void *ten_frames(void *unused) {
    (void)unused;
    frames(1, 10);
    CHECK(!"dropped");
    return NULL;
}

static void freeing_runs_the_cleanups_innermost_first(void) {
    haft_fiber_t *k = haft_fiber_new(ten_frames, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    CHECK_EQUAL(order_count, 0);
    haft_fiber_drop(k);
    check_order(10);
}

static void *chain(void *level_word) {
    int level = (int)(intptr_t)level_word;
    CLEANUP here = 2 * level - 1;
    if (level == 20) {
        CLEANUP innermost = 40;
        HAFT_PERFORM(ask, 0);
    } else {
        HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(chain, (void *)(intptr_t)(level + 1));
        CLEANUP between = 2 * level;
        haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(other));
    }
    CHECK(!"dropped");
    return NULL;
}

static void freeing_unwinds_the_whole_suspended_chain(void) {
    size_t before = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(chain, (void *)1);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    CHECK(request.effect == HAFT_ID(ask));
    CHECK_EQUAL(haft_pool_report().stacks, before + 20);
    haft_fiber_drop(k);
    check_order(40);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

/* A chain in memory of the caller: the out-of-line switches. */
static void *chain_in_fixed_memory(void *level_word) {
    static char memory[4][64 * 1024];
    int level = (int)(intptr_t)level_word;
    CLEANUP here = level;
    if (level == 4) {
        HAFT_PERFORM(ask, 0);
    } else {
        HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new_with(
            &(haft_fiber_options_t){.memory = memory[level], .memory_size = sizeof memory[level]},
            chain_in_fixed_memory, (void *)(intptr_t)(level + 1));
        haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(other));
    }
    return NULL;
}

static void a_chain_in_memory_of_the_caller_is_unwound_alike(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(chain_in_fixed_memory, (void *)1);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_fiber_drop(k);
    k = NULL;
    check_order(4);
}

static void *never_runs(void *unused) {
    CHECK(!"never resumed");
    return unused;
}

static void a_fiber_that_was_never_started_is_freed_without_running(void) {
    haft_fiber_drop(haft_fiber_new(never_runs, NULL));
    haft_fiber_t *k = haft_fiber_new(never_runs, NULL);
    haft_fiber_reset(k, never_runs, NULL);
    haft_fiber_drop(k);
}

/* A cleanup that performs while its fiber is dropped: its effects go past the fiber's resumer,
   which handles nothing any more, to the code around the free. */
static void ask_in_cleanup(int *value) {
    *value += HAFT_PERFORM(ask, *value);
}
static void *cleanup_asks(void *unused) {
    CLEANUP outer = 1;
    __attribute__((cleanup(ask_in_cleanup), unused)) int local = 5;
    HAFT_PERFORM(other);
    return unused;
}
static int asked;
static int answer(void *state, HAFT_PAYLOAD(ask) * payload) {
    (void)state;
    asked += payload->question;
    return 1;
}
HAFT_HANDLER(answering, NULL, HAFT_TAIL(ask, answer));
static void *free_it(void *k) {
    haft_fiber_drop(k);
    return NULL;
}

static void a_cleanup_may_perform_to_the_handlers_around_the_free(void) {
    asked = 0;
    haft_fiber_t *k = haft_fiber_new(cleanup_asks, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask, other));
    haft_handle(&answering, NULL, free_it, k);
    CHECK_EQUAL(asked, 5);
    check_order(1);
}

/* And it may suspend the task that frees. */
static void a_cleanup_may_suspend_the_fiber_that_frees(void) {
    haft_fiber_t *k = haft_fiber_new(cleanup_asks, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask, other));
    HAFT_SCOPED haft_fiber_t *freeing = haft_fiber_new(free_it, k);
    haft_request_t request = haft_resume(freeing, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    CHECK(request.effect == HAFT_ID(ask));
    CHECK_EQUAL(order_count, 0);
    CHECK(haft_finished(haft_resume(freeing, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask))));
    check_order(1);
}

static void *fibers_in_cleanup(void *unused) {
    (void)unused;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ten_frames, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    HAFT_PERFORM(other);
    return NULL;
}

static void a_suspended_fiber_owned_by_a_dropped_one_is_dropped_too(void) {
    size_t before = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(fibers_in_cleanup, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    haft_fiber_drop(k);
    check_order(10);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

static void without_cleanups_freeing_runs_none(void) {
    haft_fiber_t *k =
        haft_fiber_new_with(&(haft_fiber_options_t){.no_cleanups = true}, ten_frames, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_fiber_drop(k);
    CHECK_EQUAL(order_count, 0);
}

/* A clause that keeps nothing: its haft_handle is on a fiber that is dropped, so the resumption
   that it was given is dropped with it. */
static haft_answer_t suspend_in_clause(void *state, HAFT_PAYLOAD(ask) * payload,
                                       haft_resumption_t k) {
    CLEANUP clause = 2;
    (void)state, (void)payload;
    HAFT_PERFORM(other);
    return haft_answer(haft_resumption_resume(k, HAFT_REPLY(ask, 1)));
}
HAFT_HANDLER(suspending, NULL, HAFT_GENERAL(ask, suspend_in_clause));
static void *ask_once(void *unused) {
    CLEANUP body = 1;
    HAFT_PERFORM(ask, 1);
    return unused;
}
static void *under_suspending(void *unused) {
    return haft_handle(&suspending, NULL, ask_once, unused);
}

static void a_resumption_whose_clause_is_dropped_is_dropped_with_it(void) {
    size_t before = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(under_suspending, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    haft_fiber_drop(k);
    check_order(2);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

/* The handle of a body that is dropped in the middle gives its fiber back. */
static void *perform_inside_handle(void *unused) {
    CLEANUP body = 1;
    HAFT_PERFORM(other);
    return unused;
}
static void *handle_inside(void *unused) {
    return haft_handle(&suspending, NULL, perform_inside_handle, unused);
}

static void a_dropped_haft_handle_gives_its_fiber_back(void) {
    size_t before = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(handle_inside, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    CHECK_EQUAL(haft_pool_report().stacks, before + 2);
    haft_fiber_drop(k);
    check_order(1);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

int main(void) {
    RUN(freeing_runs_the_cleanups_innermost_first);
    RUN(freeing_unwinds_the_whole_suspended_chain);
    RUN(a_chain_in_memory_of_the_caller_is_unwound_alike);
    RUN(a_fiber_that_was_never_started_is_freed_without_running);
    RUN(a_cleanup_may_perform_to_the_handlers_around_the_free);
    RUN(a_cleanup_may_suspend_the_fiber_that_frees);
    RUN(a_suspended_fiber_owned_by_a_dropped_one_is_dropped_too);
    RUN(without_cleanups_freeing_runs_none);
    RUN(a_resumption_whose_clause_is_dropped_is_dropped_with_it);
    RUN(a_dropped_haft_handle_gives_its_fiber_back);
    return check_end();
}
/* SPDX-License-Identifier: MIT */

/* SPDX-License-Identifier: MIT */
/* Copies of computations on tasks. */
#include "check_io.h"

HAFT_EFFECT(test_choose, int, { int count; });

static haft_answer_t try_each(void *state, HAFT_PAYLOAD(test_choose) * payload,
                              haft_resumption_t k) {
    (void)state;
    intptr_t sum = 0;
    int count = payload->count;
    for (int i = 1; i < count; i++)
        sum +=
            (intptr_t)haft_resumption_resume(haft_resumption_copy(k), HAFT_REPLY(test_choose, i));
    return haft_answer(
        (void *)(sum + (intptr_t)haft_resumption_resume(k, HAFT_REPLY(test_choose, count))));
}
HAFT_HANDLER(all, NULL, HAFT_GENERAL(test_choose, try_each));

static void *choose_and_wait(void *unused) {
    (void)unused;
    intptr_t first = HAFT_PERFORM(test_choose, 3);
    haft_io_yield();
    haft_io_sleep(1000);
    return (void *)(first * 10 + HAFT_PERFORM(test_choose, 2));
}

/* The whole task waits, with the copy that runs in it. */
static void *wait_in_copies(void *unused) {
    CHECK_EQUAL((intptr_t)haft_handle(&all, NULL, choose_and_wait, unused), 129);
    return NULL;
}
static void copies_wait_in_a_task(void) {
    CHECK_EQUAL(haft_io_run(wait_in_copies, NULL), 0);
}

/* ---- Cancels ---- */

static int leaves, leaf_of_cancel;
static void *choose_and_yield(void *unused) {
    (void)unused;
    intptr_t first = HAFT_PERFORM(test_choose, 3);
    haft_io_yield();
    first = first * 10 + HAFT_PERFORM(test_choose, 2);
    if (++leaves == leaf_of_cancel)
        haft_io_cancel();
    haft_io_yield();
    return (void *)first;
}
static void *search(void *unused) {
    return haft_handle(&all, NULL, choose_and_yield, unused);
}
static void *cancel_at_each_leaf(void *unused) {
    size_t stacks = haft_pool_report().stacks;
    for (leaf_of_cancel = 1; leaf_of_cancel <= 7; leaf_of_cancel++) {
        void *result = NULL;
        leaves = 0;
        int code = haft_io_scope(search, unused, &result);
        CHECK_EQUAL(code, leaf_of_cancel <= 6 ? -ECANCELED : 0);
        CHECK_EQUAL(leaves, leaf_of_cancel <= 6 ? leaf_of_cancel : 6);
        CHECK_EQUAL((intptr_t)result, leaf_of_cancel <= 6 ? 0 : 2 * 60 + 3 * 3);
        CHECK_EQUAL(haft_pool_report().stacks, stacks);
    }
    return NULL;
}
static void a_cancel_ends_a_search_with_its_copies(void) {
    CHECK_EQUAL(haft_io_run(cancel_at_each_leaf, NULL), 0);
}

/* ---- Many tasks, threads, thread-locals ---- */

static void *search_once(void *unused) {
    CHECK_EQUAL((intptr_t)haft_handle(&all, NULL, choose_and_wait, unused), 129);
    CHECK_EQUAL((intptr_t)search(unused), 129);
    return NULL;
}
static void *spawn_searches(void *options) {
    for (int i = 0; i < 50; i++)
        CHECK_EQUAL(haft_io_spawn_with(options, search_once, NULL), 0);
    return NULL;
}
static void tasks_search_at_the_same_time(void) {
    leaf_of_cancel = -1;
    haft_io_run_options_t on_two_threads = {.threads = 2, .moves = true};
    CHECK_EQUAL(haft_io_run_with(&on_two_threads, spawn_searches, NULL), 0);
    haft_io_task_options_t own = {.own_thread_locals = true};
    if (haft_io_own_thread_locals_refused() == NULL)
        CHECK_EQUAL(haft_io_run(spawn_searches, &own), 0);
}

/* ---- What is not copied ---- */

static haft_answer_t copy_it(void *state, HAFT_PAYLOAD(test_choose) * payload,
                             haft_resumption_t k) {
    (void)state, (void)payload;
    (void)haft_resumption_copy(k);
    return haft_tail_resume(k, HAFT_REPLY(test_choose, 1));
}
HAFT_HANDLER(copying, NULL, HAFT_GENERAL(test_choose, copy_it));

static void *choose_in_scope(void *unused) {
    HAFT_PERFORM(test_choose, 2);
    return unused;
}
static void *open_a_scope(void *unused) {
    void *result;
    (void)haft_io_scope(choose_in_scope, unused, &result);
    return unused;
}
static void *copy_a_scope(void *unused) {
    return haft_handle(&copying, NULL, open_a_scope, unused);
}
static void run_and_copy_a_scope(void) {
    (void)haft_io_run(copy_a_scope, NULL);
}
static void a_scope_inside_is_not_copied(void) {
    if (CHECK_ADDRESS_SANITIZER)
        return; /* whose own cleanups cannot be told from others */
    CHECK_ABORTS(run_and_copy_a_scope, "waits in a frame with cleanups or destructors");
}

static void *choose_with_deadline(void *unused) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t soon = {0};
    haft_io_deadline_set(&soon, haft_io_now() + HAFT_IO_SECOND);
    HAFT_PERFORM(test_choose, 2);
    return unused;
}
static void *shield_and_choose(void *unused) {
    (void)haft_io_shield(choose_in_scope, unused);
    return unused;
}
static void *copy_a_deadline(void *unused) {
    return haft_handle(&copying, NULL, choose_with_deadline, unused);
}
static void *copy_a_shield(void *unused) {
    return haft_handle(&copying, NULL, shield_and_choose, unused);
}
static void run_and_copy_a_deadline(void) {
    (void)haft_io_run(copy_a_deadline, NULL);
}
static void run_and_copy_a_shield(void) {
    (void)haft_io_run(copy_a_shield, NULL);
}
static void deadlines_and_shields_inside_are_not_copied(void) {
    if (CHECK_ADDRESS_SANITIZER)
        return;
    CHECK_ABORTS(run_and_copy_a_deadline, "waits in a frame with cleanups or destructors");
    CHECK_ABORTS(run_and_copy_a_shield, "waits in a frame with cleanups or destructors");
}

/* A lock belongs to no frame: what is locked is locked once, and each copy unlocks it. */
static haft_io_mutex_t lock;
static void *choose_while_locked(void *unused) {
    haft_io_mutex_lock(&lock);
    HAFT_PERFORM(test_choose, 2);
    haft_io_mutex_unlock(&lock);
    return unused;
}
static void *copy_while_locked(void *unused) {
    return haft_handle(&all, NULL, choose_while_locked, unused);
}
static void run_and_copy_while_locked(void) {
    (void)haft_io_run(copy_while_locked, NULL);
}
static void a_lock_that_is_held_inside_is_unlocked_once(void) {
    CHECK_ABORTS(run_and_copy_while_locked, "A mutex that is not locked was unlocked.");
}

int main(void) {
    if (CHECK_THREAD_SANITIZER)
        return 77;
    RUN(copies_wait_in_a_task);
    RUN(a_cancel_ends_a_search_with_its_copies);
    RUN(tasks_search_at_the_same_time);
    RUN(a_scope_inside_is_not_copied);
    RUN(deadlines_and_shields_inside_are_not_copied);
    RUN(a_lock_that_is_held_inside_is_unlocked_once);
    return check_end();
}

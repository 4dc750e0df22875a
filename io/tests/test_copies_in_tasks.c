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

int main(void) {
    if (CHECK_THREAD_SANITIZER)
        return 77;
    RUN(copies_wait_in_a_task);
    RUN(a_scope_inside_is_not_copied);
    return check_end();
}

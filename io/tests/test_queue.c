/* SPDX-License-Identifier: MIT */
/* The queue that is stolen from, over more tasks than its numbers tell apart: test_protocols has
   every order of a few steps. */
#include "check_io.h"

#include "../src/queue.h"

static hafti_io_queue_t queue;

/* A thread that has read a slot and then sleeps until both ends are again what they were must
   notice it. */
static void check_differs(void *(*take)(void)) {
    static int first, other;
    hafti_io_queue_put(&queue, &first);
    uint64_t seen = hafti_io_queue_look(&queue);
    for (int i = 0; i < 1 << 17; i++) {
        void *taken = take();
        hafti_io_queue_put(&queue, &other);
        CHECK(taken == (i == 0 ? &first : &other));
        if (hafti_io_queue_look(&queue) == seen) {
            CHECK(!"the word is the same, and the task another");
            break;
        }
    }
    CHECK(take() == &other);
    CHECK_EQUAL(hafti_io_queue_count(&queue), 0);
}
static void *take_oldest(void) {
    void *task = NULL;
    hafti_io_queue_take(&queue, &task, 1);
    return task;
}
static void *take_newest(void) {
    return hafti_io_queue_take_newest(&queue);
}
static void whoever_sleeps_between_reading_and_taking_takes_nothing_that_is_not_there(void) {
    check_differs(take_oldest);
    check_differs(take_newest);
}

int main(void) {
    RUN(whoever_sleeps_between_reading_and_taking_takes_nothing_that_is_not_there);
    return check_end();
}

/* SPDX-License-Identifier: MIT */
/*
 * Scheduler: cooperative threads in thirty lines. Workers perform `fork` and `yield`; the scheduler
 * is an ordinary loop over a queue of suspended fibers. ("High-level effect handlers in C", §2.2.)
 */
#include <haft.h>
#include <stdint.h>
#include <stdio.h>

HAFT_EFFECT(fork_thread, void, {
    void *(*function)(void *);
    void *argument;
});
HAFT_EFFECT(yield_thread, void, {});

static void *worker(void *argument) {
    for (int iteration = 0; iteration < 3; iteration++) {
        printf("Worker %d, iteration %d\n", (int)(intptr_t)argument, iteration);
        HAFT_PERFORM(yield_thread);
    }
    return NULL;
}

static void *root(void *argument) {
    (void)argument;
    for (intptr_t i = 1; i <= 4; i++)
        HAFT_PERFORM(fork_thread, worker, (void *)i);
    puts("All workers are forked");
    return NULL;
}

enum { QUEUE_SIZE = 16 };
typedef struct queue {
    haft_fiber_t *fibers[QUEUE_SIZE];
    unsigned first, end;
} queue_t;

static void push(queue_t *queue, haft_fiber_t *fiber) {
    queue->fibers[queue->end++ % QUEUE_SIZE] = fiber;
}
static haft_fiber_t *pop(queue_t *queue) {
    return queue->fibers[queue->first++ % QUEUE_SIZE];
}

static void with_scheduler(void *(*function)(void *), void *argument) {
    queue_t queue = {.first = 0};
    push(&queue, haft_fiber_new(function, argument));
    while (queue.first != queue.end) {
        haft_fiber_t *next = pop(&queue);
        haft_request_t request =
            haft_resume(next, HAFT_NO_REPLY, HAFT_HANDLES(fork_thread, yield_thread));
        HAFT_MATCH(request) {
            HAFT_CASE(yield_thread, payload) {
                push(&queue, next);
            }
            HAFT_CASE(fork_thread, payload) {
                push(&queue, next);
                push(&queue, haft_fiber_new(payload->function, payload->argument));
            }
            HAFT_RETURN(result) {
                haft_fiber_drop(next);
            }
        }
    }
}

int main(void) {
    with_scheduler(root, NULL);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Threads: a hundred fibers on three threads. The thread that takes a fiber from the shared queue
 * resumes it, and the fiber continues where it was: its stack does not move, only its thread
 * changes.
 */
#include <haft.h>
#include <pthread.h>
#include <stdio.h>

HAFT_EFFECT(step_done, void, { int amount; });

enum { FIBERS = 100, STEPS = 50, THREADS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static haft_fiber_t *waiting[FIBERS];
static int waiting_count, live = FIBERS;
static long total;

static haft_fiber_t *take(bool *done) {
    pthread_mutex_lock(&lock);
    haft_fiber_t *fiber = waiting_count > 0 ? waiting[--waiting_count] : NULL;
    *done = live == 0;
    pthread_mutex_unlock(&lock);
    return fiber;
}

static void put_back(haft_fiber_t *fiber, int amount) {
    haft_fiber_detach(fiber);
    pthread_mutex_lock(&lock);
    total += amount;
    waiting[waiting_count++] = fiber;
    pthread_mutex_unlock(&lock);
}

static void retire(haft_fiber_t *fiber) {
    haft_fiber_drop(fiber);
    pthread_mutex_lock(&lock);
    live--;
    pthread_mutex_unlock(&lock);
}

static void *worker(void *argument) {
    int local = 0; /* lives on the fiber's stack, whichever thread runs it */
    for (int i = 1; i <= STEPS; i++) {
        local += i;
        HAFT_PERFORM(step_done, i);
    }
    return local == STEPS * (STEPS + 1) / 2 ? argument : NULL;
}

static void *thread(void *argument) {
    bool done = false;
    while (!done) {
        haft_fiber_t *fiber = take(&done);
        if (fiber == NULL)
            continue;
        haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(step_done));
        HAFT_MATCH(request) {
            HAFT_CASE(step_done, payload) {
                put_back(fiber, payload->amount);
            }
            HAFT_RETURN(result) {
                retire(fiber);
            }
        }
    }
    return argument;
}

int main(void) {
    for (int i = 0; i < FIBERS; i++)
        waiting[waiting_count++] = haft_fiber_new(worker, waiting);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d fibers took %d steps each; the amounts add up to %ld\n", FIBERS, STEPS, total);
    return 0;
}

/* Coroutines made on one thread and resumed by turns on others. */
#include "../../core/tests/check.h"
#include <pthread.h>
#include <seff.h>

DEFINE_EFFECT(turn, 5, int64_t, { int64_t sum; });

enum { COROUTINES = 64, TURNS = 100 };
static seff_coroutine_t *coroutines[COROUTINES];

static void *adds(void *argument) {
    int64_t sum = 0;
    for (int i = 0; i < TURNS; i++)
        sum += PERFORM(turn, sum);
    CHECK(sum == TURNS);
    return argument;
}

static void *resume_all(void *argument) {
    for (int i = 0; i < COROUTINES; i++)
        seff_resume(coroutines[i], (void *)1, HANDLES(turn));
    return argument;
}

static void by_turns_on_other_threads(void) {
    for (int i = 0; i < COROUTINES; i++)
        coroutines[i] = seff_coroutine_new(adds, NULL);
    for (int i = 0; i <= TURNS; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, resume_all, NULL) == 0);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < COROUTINES; i++) {
        CHECK(coroutines[i]->state == FINISHED);
        seff_coroutine_delete(coroutines[i]);
    }
}

int main(void) {
    RUN(by_turns_on_other_threads);
    return check_end();
}
/* SPDX-License-Identifier: MIT */

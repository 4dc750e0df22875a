/* SPDX-License-Identifier: MIT */
/*
 * Probabilistic programming by a particle filter: many runs of a model go on with random outcomes.
 * At an observation all wait; likely ones are copied in the place of others. (probability.c goes
 * through all outcomes of the same model.)
 */
#include "rain.h"
#include <stdio.h>

enum { PARTICLES = 5000 };
static haft_resumption_t particles[PARTICLES], next[PARTICLES];
static double weights[PARTICLES];
static int waiting, ended[2];

static double uniform(void) {
    static uint64_t seed = 42;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 11) / 9007199254740992.0;
}
static bool flip_one(void *state, HAFT_PAYLOAD(flip) * payload) {
    (void)state;
    return uniform() < payload->p;
}
static haft_answer_t wait(void *state, HAFT_PAYLOAD(observe) * payload, haft_resumption_t k) {
    (void)state;
    weights[waiting] = payload->likelihood;
    next[waiting++] = k;
    return haft_answer(NULL);
}
static void *count(void *state, void *rains) {
    (void)state;
    ended[rains != NULL]++;
    return NULL;
}
HAFT_HANDLER(filter, count, HAFT_TAIL(flip, flip_one), HAFT_GENERAL(observe, wait));

/* Copies each particle that waits, more often the more it weighs, and drops it. */
static void resample(void) {
    double all = 0, passed = 0, drawn = uniform();
    for (int i = 0; i < PARTICLES; i++)
        all += weights[i];
    for (int i = 0, made = 0; i < PARTICLES; i++) {
        passed += weights[i] / all * PARTICLES;
        for (; made < PARTICLES && made + drawn < passed; made++)
            particles[made] = haft_resumption_copy(next[i]);
        haft_resumption_drop(next[i]);
    }
    waiting = 0;
}

int main(void) {
    for (int i = 0; i < PARTICLES; i++)
        haft_handle(&filter, NULL, rain, NULL);
    while (waiting != 0) {
        resample();
        for (int i = 0; i < PARTICLES; i++)
            haft_resumption_resume(particles[i], HAFT_REPLY(observe));
    }
    printf("it rains: %.2f\n", (double)ended[1] / PARTICLES);
    return 0;
}

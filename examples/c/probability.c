/* SPDX-License-Identifier: MIT */
/*
 * Probabilistic programming by enumeration: the handler of a model goes on with every outcome of
 * what the model draws, and weighs each by what the model observes. (particle_filter.c runs the
 * same model by random outcomes.)
 */
#include "rain.h"
#include <stdio.h>

static double weight, total[2];
static haft_answer_t both(void *state, HAFT_PAYLOAD(flip) * payload, haft_resumption_t k) {
    (void)state;
    double before = weight, p = payload->p;
    haft_resumption_t other = haft_resumption_copy(k);
    weight = before * p;
    haft_resumption_resume(k, HAFT_REPLY(flip, true));
    weight = before * (1 - p);
    haft_resumption_resume(other, HAFT_REPLY(flip, false));
    return haft_answer(NULL);
}
static void weigh(void *state, HAFT_PAYLOAD(observe) * payload) {
    (void)state;
    weight *= payload->likelihood;
}
static void *add_up(void *state, void *rains) {
    (void)state;
    total[rains != NULL] += weight;
    return NULL;
}
HAFT_HANDLER(enumerate, add_up, HAFT_GENERAL(flip, both), HAFT_TAIL(observe, weigh));

int main(void) {
    weight = 1;
    haft_handle(&enumerate, NULL, rain, NULL);
    printf("it rains: %.4f\n", total[1] / (total[0] + total[1]));
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* The side of C of tests/shared.rs. */
#include <haft.h>

typedef struct point {
    double x, y;
} point_t;

HAFT_EFFECT(demo_ask, int, {
    int base;
    int times;
});
HAFT_EFFECT(demo_point, point_t, { double scale; });
HAFT_EFFECT(demo_tell, void, { int number; });

/* ---- Performed here ---- */

int demo_sum(int count);
int demo_sum(int count) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += HAFT_PERFORM(demo_ask, i, 2);
    HAFT_PERFORM(demo_tell, sum);
    point_t point = HAFT_PERFORM(demo_point, 0.5);
    return sum + (int)(point.x + point.y);
}

/* ---- Handled here: in place, and by a resumption ---- */

static int answer_ask(void *state, HAFT_PAYLOAD(demo_ask) * ask) {
    ++*(int *)state;
    return ask->base * ask->times;
}
static point_t answer_point(void *state, HAFT_PAYLOAD(demo_point) * payload) {
    ++*(int *)state;
    return (point_t){payload->scale, 2 * payload->scale};
}
static haft_answer_t answer_tell(void *state, HAFT_PAYLOAD(demo_tell) * payload,
                                 haft_resumption_t k) {
    *(int *)state += payload->number;
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
HAFT_HANDLER(demo_handler, NULL, HAFT_TAIL(demo_ask, answer_ask),
             HAFT_TAIL(demo_point, answer_point), HAFT_GENERAL(demo_tell, answer_tell));

int demo_handle(void *(*body)(void *), void *argument);
int demo_handle(void *(*body)(void *), void *argument) {
    int count = 0;
    haft_handle(&demo_handler, &count, body, argument);
    return count;
}

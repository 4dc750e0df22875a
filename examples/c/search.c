/* SPDX-License-Identifier: MIT */
/*
 * Search: the ways out of a computation. A tree walk finds its handler once and reports to it
 * directly (locate, yield), leaves for good when it has found what it wants (exit), or gives up
 * from deep inside (throw); what it holds is released on the way. ("High-level effect handlers in
 * C", §3.2.)
 */
#include <haft.h>
#include <stdio.h>
#include <stdlib.h>

HAFT_EFFECT(visit, void, { int value; });
HAFT_EFFECT(success, void, { int value, steps; });
HAFT_EFFECT(failure, void, { const char *reason; });

typedef struct search {
    int wanted, limit, steps;
    haft_fiber_t *handler; /* of `visit` and `success` */
} search_t;

static void released(int **memory) {
    printf("  released at %d\n", **memory);
    free(*memory);
}

/* Searches the numbers from `low` to `high` as a balanced tree. */
static void walk(search_t *search, int low, int high) {
    if (low > high)
        return;
    int middle = (low + high) / 2;
    __attribute__((cleanup(released))) int *memory = malloc(sizeof *memory);
    *memory = middle;
    HAFT_YIELD(search->handler, visit, middle);
    if (++search->steps > search->limit)
        HAFT_THROW(failure, "too many steps");
    if (middle == search->wanted)
        HAFT_EXIT(search->handler, success, middle, search->steps);
    if (search->wanted < middle)
        walk(search, low, middle - 1);
    else
        walk(search, middle + 1, high);
}

static void *start(void *argument) {
    search_t *search = argument;
    search->handler = haft_locate(HAFT_ID(visit));
    walk(search, 1, 100);
    return "no such number";
}

static void run(int wanted, int limit) {
    printf("Searching %d in at most %d steps\n", wanted, limit);
    search_t search = {wanted, limit, 0, NULL};
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(start, &search);
    while (haft_fiber_state(k) != HAFT_FIBER_FINISHED) {
        haft_request_t request =
            haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(visit, success, failure));
        HAFT_MATCH(request) {
            HAFT_CASE(visit, payload) {
                printf("  at %d\n", payload->value);
            }
            HAFT_CASE(success, payload) {
                printf("found %d after %d steps\n", payload->value, payload->steps);
            }
            HAFT_CASE(failure, payload) {
                printf("failed: %s\n", payload->reason);
            }
            HAFT_RETURN(result) {
                printf("ended: %s\n", (const char *)result);
            }
        }
    }
}

int main(void) {
    run(37, 10);
    run(37, 2);
    run(101, 10);
    return 0;
}

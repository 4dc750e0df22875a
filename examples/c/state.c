/* SPDX-License-Identifier: MIT */
/*
 * State: a function counts down in a variable that its caller keeps. The function only performs
 * `get` and `put`; the loop in main decides what they mean. ("High-level effect handlers in C",
 * §2.1.)
 */
#include <haft.h>
#include <inttypes.h>
#include <stdio.h>

HAFT_EFFECT(get, int64_t, {});
HAFT_EFFECT(put, void, { int64_t new_value; });

static void *counter(void *argument) {
    (void)argument;
    int64_t count;
    do {
        count = HAFT_PERFORM(get);
        printf("Counter is %" PRId64 "\n", count);
        HAFT_PERFORM(put, count - 1);
    } while (count > 0);
    return "The handled code has finished";
}

int main(void) {
    const haft_handles_t *state_effects = HAFT_HANDLES(get, put);
    int64_t state = 5;
    bool done = false;
    haft_fiber_t *k = haft_fiber_new(counter, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, state_effects);
    while (!done) {
        HAFT_MATCH(request) {
            HAFT_CASE(get, payload) {
                request = haft_resume(k, HAFT_REPLY(get, state), state_effects);
            }
            HAFT_CASE(put, payload) {
                state = payload->new_value;
                request = haft_resume(k, HAFT_NO_REPLY, state_effects);
            }
            HAFT_RETURN(result) {
                printf("%s; the state is %" PRId64 "\n", (const char *)result, state);
                done = true;
            }
        }
    }
    haft_fiber_drop(k);
    return 0;
}

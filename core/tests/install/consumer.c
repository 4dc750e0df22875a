/* A user's smallest program: one effect, performed on a fiber and answered by its resumer. */

#include <haft.h>

#include <stdint.h>
#include <stdio.h>

HAFT_EFFECT(ask, int64_t, {});

static void *question(void *argument) {
    int64_t *answer = argument;
    *answer = HAFT_PERFORM(ask);
    return argument;
}

int main(void) {
    int64_t answer = 0;
    haft_fiber_t *fiber = haft_fiber_new(question, &answer);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    if (request.effect != HAFT_ID(ask)) {
        return 1;
    }
    haft_resume(fiber, HAFT_REPLY(ask, 42), HAFT_HANDLES(ask));
    haft_fiber_drop(fiber);
    printf("%d\n", (int)answer);
    return answer == 42 ? 0 : 1;
}
/* SPDX-License-Identifier: MIT */

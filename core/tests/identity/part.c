/* Compiled as C and as C++ into every part of the program; PART names the part. */
#include "effects.h"

static haft_effect_t *identity(void) {
    return HAFT_ID(shared_ask);
}
static int perform(int question) {
    return HAFT_PERFORM(shared_ask, question);
}

static int (*inner)(int question);
static void *run(void *question) {
    return (void *)(intptr_t)inner((int)(intptr_t)question);
}
static int handle(int (*function)(int question), int question) {
    inner = function;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(run, (void *)(intptr_t)question);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(shared_ask));
    HAFT_MATCH(request) {
        HAFT_CASE(shared_ask, payload) {
            request = haft_resume(k, HAFT_REPLY(shared_ask, payload->question + 1), HAFT_HANDLES());
        }
    }
    return (int)(intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result;
}

#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) part_t PART;
part_t PART = {identity, perform, handle};
/* SPDX-License-Identifier: MIT */

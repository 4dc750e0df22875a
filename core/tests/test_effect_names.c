/* Any word may name an effect: the library's own names do not get in the way. */
#include "check.h"
#include <haft.h>

HAFT_EFFECT(exception, int, { int value; });
HAFT_EFFECT(dropped, int, { int value; });
HAFT_EFFECT(unwinding, int, { int value; });
HAFT_EFFECT(found, int, { int value; });
HAFT_EFFECT(slow, int, { int value; });
HAFT_EFFECT(hot, int, { int value; });
HAFT_EFFECT(t, int, { int value; });

static void *throws(void *argument) {
    (void)argument;
    HAFT_THROW(exception, HAFT_PERFORM(dropped, 1) + HAFT_PERFORM(unwinding, 10));
}

static void words_of_the_library_name_effects_of_the_program(void) {
    const haft_handles_t *handles = HAFT_HANDLES(exception, dropped, unwinding);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(throws, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, handles);
    CHECK(request.effect == HAFT_ID(dropped));
    request = haft_resume(k, HAFT_REPLY(dropped, 2), handles);
    CHECK(request.effect == HAFT_ID(unwinding));
    request = haft_resume(k, HAFT_REPLY(unwinding, 3), handles);
    CHECK(request.effect == HAFT_ID(exception));
    CHECK_EQUAL(((HAFT_PAYLOAD(exception) *)request.payload)->value, 5);
    CHECK_EQUAL(HAFT_ID(exception)->payload_size, sizeof(int));
}

int main(void) {
    RUN(words_of_the_library_name_effects_of_the_program);
    return check_end();
}
/* SPDX-License-Identifier: MIT */

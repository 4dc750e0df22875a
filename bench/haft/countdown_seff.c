/* SPDX-License-Identifier: MIT */
/* countdown Haft, through seff.h: the paper's state program (§2.1) without its output. */
#include "../program.h"

#include <seff.h>

DEFINE_EFFECT(get, 0, int64_t, {});
DEFINE_EFFECT(put, 1, void, { int64_t new_value; });

static void *countdown(void *unused) {
    (void)unused;
    for (;;) {
        int64_t value = PERFORM(get);
        if (value == 0)
            return NULL;
        PERFORM(put, value - 1);
    }
}

int main(int argc, char **argv) {
    int64_t state = program_argument(argc, argv, 5);
    effect_set state_effects = HANDLES(get) | HANDLES(put);
    seff_coroutine_t *k = seff_coroutine_new(countdown, NULL);
    seff_request_t request = seff_resume(k, NULL, state_effects);
    for (bool done = false; !done;) {
        switch (request.effect) {
            CASE_EFFECT(request, get, {
                request = seff_resume(k, (void *)state, state_effects);
                break;
            })
            CASE_EFFECT(request, put, {
                state = payload.new_value;
                request = seff_resume(k, NULL, state_effects);
                break;
            })
            CASE_RETURN(request, {
                done = true;
                break;
            })
        }
    }
    seff_coroutine_delete(k);
    return program_result(state);
}

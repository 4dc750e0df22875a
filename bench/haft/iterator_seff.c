/* SPDX-License-Identifier: MIT */
/* iterator Haft, through seff.h: the coroutine emits, the loop that resumes it sums. */
#include "../program.h"

#include <seff.h>

DEFINE_EFFECT(emit, 0, void, { int64_t value; });

static void *range(void *argument) {
    int64_t last = *(const int64_t *)argument;
    for (int64_t i = 0; i <= last; i++)
        PERFORM(emit, i);
    return NULL;
}

int main(int argc, char **argv) {
    int64_t last = program_argument(argc, argv, 5), sum = 0;
    seff_coroutine_t *k = seff_coroutine_new(range, &last);
    for (bool done = false; !done;) {
        seff_request_t request = seff_resume(k, NULL, HANDLES(emit));
        switch (request.effect) {
            CASE_EFFECT(request, emit, {
                sum += payload.value;
                break;
            })
            CASE_RETURN(request, {
                done = true;
                break;
            })
        }
    }
    seff_coroutine_delete(k);
    return program_result(sum);
}

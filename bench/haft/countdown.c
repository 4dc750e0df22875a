/* SPDX-License-Identifier: MIT */
/* countdown, Haft, by requests: the loop that resumes the fiber holds the state. */
#include "countdown.h"

int main(int argc, char **argv) {
    int64_t state = program_argument(argc, argv, 5);
    const haft_handles_t *state_effects = HAFT_HANDLES(get, put);
    haft_fiber_t *k = haft_fiber_new(countdown, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, state_effects);
    while (!haft_finished(request)) {
        HAFT_MATCH(request) {
            HAFT_CASE(get, payload) {
                request = haft_resume(k, HAFT_REPLY(get, state), state_effects);
            }
            HAFT_CASE(put, payload) {
                state = payload->new_value;
                request = haft_resume(k, HAFT_NO_REPLY, state_effects);
            }
        }
    }
    haft_fiber_drop(k);
    return program_result(state);
}

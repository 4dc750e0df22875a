/* SPDX-License-Identifier: MIT */
/* countdown, Haft, by general clauses: each gets the resumption and ends by continuing it. */
#include "countdown.h"

static haft_answer_t on_get(void *state, HAFT_PAYLOAD(get) * payload, haft_resumption_t k) {
    (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(get, *(int64_t *)state));
}

static haft_answer_t on_put(void *state, HAFT_PAYLOAD(put) * payload, haft_resumption_t k) {
    *(int64_t *)state = payload->new_value;
    return haft_tail_resume(k, HAFT_NO_REPLY);
}

HAFT_HANDLER(with_state, NULL, HAFT_GENERAL(get, on_get), HAFT_GENERAL(put, on_put));

int main(int argc, char **argv) {
    int64_t state = program_argument(argc, argv, 5);
    haft_handle(&with_state, &state, countdown, NULL);
    return program_result(state);
}

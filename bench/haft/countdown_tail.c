/* SPDX-License-Identifier: MIT */
/* countdown, Haft, by tail-resumptive clauses: called in place, without a fiber. */
#include "countdown.h"

static int64_t on_get(void *state, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return *(int64_t *)state;
}

static void on_put(void *state, HAFT_PAYLOAD(put) * payload) {
    *(int64_t *)state = payload->new_value;
}

HAFT_HANDLER(with_state, NULL, HAFT_TAIL(get, on_get), HAFT_TAIL(put, on_put));

int main(int argc, char **argv) {
    int64_t state = program_argument(argc, argv, 5);
    haft_handle(&with_state, &state, countdown, NULL);
    return program_result(state);
}

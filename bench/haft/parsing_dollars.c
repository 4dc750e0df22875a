/* SPDX-License-Identifier: MIT */
/* parsing_dollars, Haft, by requests: three nested handlers, each on a fiber of its own. */
#include "parser.h"

static void *feed(void *argument) {
    int64_t lines = *(int64_t *)argument, line = 0, dollars_left = 0;
    const haft_handles_t *reads = HAFT_HANDLES(read_character);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(parse, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, reads);
    while (!haft_finished(request)) {
        int character = '$';
        if (dollars_left > 0) {
            dollars_left--;
        } else if (line <= lines) {
            dollars_left = ++line;
            character = '\n';
        } else {
            HAFT_PERFORM(stop);
        }
        request = haft_resume(k, HAFT_REPLY(read_character, character), reads);
    }
    return NULL;
}

static void *catch_stop(void *lines) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(feed, lines);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop));
    return NULL;
}

int main(int argc, char **argv) {
    int64_t lines = program_argument(argc, argv, 10), sum = 0;
    const haft_handles_t *emissions = HAFT_HANDLES(emit);
    haft_fiber_t *k = haft_fiber_new(catch_stop, &lines);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, emissions);
    while (!haft_finished(request)) {
        sum += ((HAFT_PAYLOAD(emit) *)request.payload)->dollars;
        request = haft_resume(k, HAFT_NO_REPLY, emissions);
    }
    haft_fiber_drop(k);
    return program_result(sum);
}

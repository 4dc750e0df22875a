/* SPDX-License-Identifier: MIT */
/* parsing_dollars, Haft, by clauses: reading and emitting are tail-resumptive,
 * stopping never resumes. */
#include "parser.h"

typedef struct input {
    int64_t lines, line, dollars_left;
} input_t;

static int on_read(void *state, HAFT_PAYLOAD(read_character) * payload) {
    (void)payload;
    input_t *input = state;
    if (input->dollars_left > 0) {
        input->dollars_left--;
        return '$';
    }
    if (input->line > input->lines)
        HAFT_PERFORM(stop);
    input->dollars_left = ++input->line;
    return '\n';
}

static void *on_stop(void *unused, HAFT_PAYLOAD(stop) * payload) {
    (void)unused, (void)payload;
    return NULL;
}

static void on_emit(void *sum, HAFT_PAYLOAD(emit) * payload) {
    *(int64_t *)sum += payload->dollars;
}

HAFT_HANDLER(feeding, NULL, HAFT_TAIL(read_character, on_read));
HAFT_HANDLER(catching, NULL, HAFT_NEVER(stop, on_stop));
HAFT_HANDLER(summing, NULL, HAFT_TAIL(emit, on_emit));

static void *feed(void *lines) {
    input_t input = {.lines = *(int64_t *)lines, .line = 0, .dollars_left = 0};
    return haft_handle(&feeding, &input, parse, NULL);
}

static void *catch_stop(void *lines) {
    return haft_handle(&catching, NULL, feed, lines);
}

int main(int argc, char **argv) {
    int64_t lines = program_argument(argc, argv, 10), sum = 0;
    haft_handle(&summing, &sum, catch_stop, &lines);
    return program_result(sum);
}

/* SPDX-License-Identifier: MIT */
/* parsing_dollars for Haft, whatever handles it: the effects and the parser. */
#ifndef BENCH_HAFT_PARSER_H
#define BENCH_HAFT_PARSER_H

#include "../program.h"

#include <haft.h>

HAFT_EFFECT(read_character, int, {});
HAFT_EFFECT(emit, void, { int64_t dollars; });
HAFT_EFFECT(stop, void, {});

static void *parse(void *unused) {
    (void)unused;
    int64_t dollars = 0;
    for (;;) {
        int character = HAFT_PERFORM(read_character);
        if (character == '$') {
            dollars++;
        } else if (character == '\n') {
            HAFT_PERFORM(emit, dollars);
            dollars = 0;
        } else {
            HAFT_PERFORM(stop);
            return NULL;
        }
    }
}

#endif

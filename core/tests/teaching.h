/* SPDX-License-Identifier: MIT */
/* For tests of refusals: REFUSES(call, NUMBER, "words") makes a call that is a mistake of the
   program, whose result is -NUMBER, and which reports these words on the error handler. The table
   of docs/misuse.md is made of these lines (tools/check_refusals.py). */
#ifndef HAFT_TESTS_TEACHING_H
#define HAFT_TESTS_TEACHING_H

#include <haft.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char refusal_told[700];

static void note_refusal(const haft_error_t *error) {
    if (error->code != HAFT_ERROR_REFUSED)
        fprintf(stderr, "another error: %s\n", error->message);
    else
        snprintf(refusal_told, sizeof refusal_told, "%s", error->message);
}

/* Behind the words stands which task has called, and the simulation's seed. */
static inline bool has_told(const char *words) {
    size_t size = strlen(words);
    const char *end = refusal_told + size;
    return strncmp(refusal_told, words, size) == 0 &&
           (*end == '\0' || strncmp(end, ". It was the task '", 19) == 0 ||
            strncmp(end, ". (The seed was ", 16) == 0);
}

static inline void check_refusal(const char *file, int line, const char *call, long result,
                                 long expected, const char *words) {
    char kept[700];
    bool is_kept = haft_take_refusal((int)expected, kept, sizeof kept);
    if (result != expected || !has_told(words) ||
        (result != 0 && (!is_kept || strncmp(kept, words, strlen(kept)) != 0))) {
        fprintf(stderr, "%s:%d: %s returns %ld, and says\n  %s\nand not %ld and\n  %s\n", file,
                line, call, result, refusal_told, expected, words);
        abort();
    }
    refusal_told[0] = '\0';
}

#define REFUSES(call, number, words)                                                               \
    check_refusal(__FILE__, __LINE__, #call, (long)(call), -(long)(number), words)

#endif

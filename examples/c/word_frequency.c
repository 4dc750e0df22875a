/* SPDX-License-Identifier: MIT */
/*
 * Word frequency: a streaming pipeline in direct style. Reading, tokenising, filtering and
 * reporting are four functions with loops of their own; each takes its input by `next` and hands
 * its output on by `give`, a word at a time, and knows neither its neighbours nor where it is
 * suspended.
 */
#include "word_table.h"
#include <haft.h>

HAFT_EFFECT(next, text_t, {});              /* the next piece from the stage before */
HAFT_EFFECT(give, void, { text_t piece; }); /* a piece for the stage after */

static size_t bytes_read;

static void *read_files(void *paths) {
    static char chunk[CHUNK];
    for (char **path = paths; *path != NULL; path++) {
        FILE *file = fopen(*path, "r");
        if (file == NULL) {
            perror(*path);
            continue;
        }
        for (size_t length; (length = fread(chunk, 1, sizeof chunk, file)) > 0;) {
            bytes_read += length;
            HAFT_PERFORM(give, {chunk, length});
        }
        fclose(file);
    }
    return NULL;
}

static void *tokenise(void *unused) {
    char word[LONGEST_WORD];
    size_t length = 0;
    for (text_t text; (text = HAFT_PERFORM(next)).start != NULL;) {
        for (size_t i = 0; i < text.length; i++) {
            char lower = letter(text.start[i]);
            if (lower != 0 && length < LONGEST_WORD) {
                word[length++] = lower;
            } else if (lower == 0 && length > 0) {
                HAFT_PERFORM(give, {word, length});
                length = 0;
            }
        }
    }
    if (length > 0)
        HAFT_PERFORM(give, {word, length});
    return unused;
}

static void *filter(void *unused) {
    for (text_t word; (word = HAFT_PERFORM(next)).start != NULL;)
        if (word.length >= SHORTEST_COUNTED)
            HAFT_PERFORM(give, word);
    return unused;
}

static void *report(void *unused) {
    word_table_t table = {.size = 0};
    for (text_t word; (word = HAFT_PERFORM(next)).start != NULL;)
        word_table_add(&table, word);
    word_table_report(&table);
    return unused;
}

/* `next` runs the stage before until it gives something. */
static text_t pull(void *stage_before, HAFT_PAYLOAD(next) * payload) {
    (void)payload;
    haft_request_t request = haft_resume(stage_before, HAFT_NO_REPLY, HAFT_HANDLES(give));
    if (haft_finished(request))
        return (text_t){NULL, 0};
    return ((HAFT_PAYLOAD(give) *)request.payload)->piece;
}
HAFT_HANDLER(pulling, NULL, HAFT_TAIL(next, pull));

typedef struct stage {
    void *(*function)(void *);
    haft_fiber_t *before;
} stage_t;

static void *run_stage(void *argument) {
    const stage_t *stage = argument;
    return haft_handle(&pulling, stage->before, stage->function, NULL);
}

int main(int count, char **arguments) {
    if (count < 2)
        return fprintf(stderr, "usage: %s FILE...\n", arguments[0]), 2;
    double start = seconds_now();
    HAFT_SCOPED haft_fiber_t *source = haft_fiber_new(read_files, arguments + 1);
    HAFT_SCOPED haft_fiber_t *words = haft_fiber_new(run_stage, &(stage_t){tokenise, source});
    HAFT_SCOPED haft_fiber_t *filtered = haft_fiber_new(run_stage, &(stage_t){filter, words});
    run_stage(&(stage_t){report, filtered});
    report_throughput(bytes_read, seconds_now() - start);
    return 0;
}

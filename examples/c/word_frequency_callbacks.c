/* SPDX-License-Identifier: MIT */
/*
 * Word frequency with callbacks: the program word_frequency.c as one writes it without effects.
 * Every stage is called with a piece and must keep in a struct where it was; each stage calls the
 * next, beginning at the source.
 */
#include "word_table.h"

typedef struct stage {
    void (*piece)(struct stage *stage, text_t piece);
    void (*end)(struct stage *stage);
    struct stage *after;
} stage_t;

static size_t bytes_read;

static void read_files(stage_t *after, char **paths) {
    static char chunk[CHUNK];
    for (char **path = paths; *path != NULL; path++) {
        FILE *file = fopen(*path, "r");
        if (file == NULL) {
            perror(*path);
            continue;
        }
        for (size_t length; (length = fread(chunk, 1, sizeof chunk, file)) > 0;) {
            bytes_read += length;
            after->piece(after, (text_t){chunk, length});
        }
        fclose(file);
    }
    after->end(after);
}

typedef struct tokeniser {
    stage_t stage;
    char word[LONGEST_WORD];
    size_t length;
} tokeniser_t;

static void tokenise(stage_t *stage, text_t text) {
    tokeniser_t *tokeniser = (tokeniser_t *)stage;
    stage_t *after = stage->after;
    for (size_t i = 0; i < text.length; i++) {
        char lower = letter(text.start[i]);
        if (lower != 0 && tokeniser->length < LONGEST_WORD) {
            tokeniser->word[tokeniser->length++] = lower;
        } else if (lower == 0 && tokeniser->length > 0) {
            after->piece(after, (text_t){tokeniser->word, tokeniser->length});
            tokeniser->length = 0;
        }
    }
}

static void tokenise_end(stage_t *stage) {
    tokeniser_t *tokeniser = (tokeniser_t *)stage;
    if (tokeniser->length > 0)
        stage->after->piece(stage->after, (text_t){tokeniser->word, tokeniser->length});
    stage->after->end(stage->after);
}

static void filter(stage_t *stage, text_t word) {
    if (word.length >= SHORTEST_COUNTED)
        stage->after->piece(stage->after, word);
}

static void filter_end(stage_t *stage) {
    stage->after->end(stage->after);
}

typedef struct reporter {
    stage_t stage;
    word_table_t table;
} reporter_t;

static void report(stage_t *stage, text_t word) {
    word_table_add(&((reporter_t *)stage)->table, word);
}

static void report_end(stage_t *stage) {
    word_table_report(&((reporter_t *)stage)->table);
}

int main(int count, char **arguments) {
    if (count < 2)
        return fprintf(stderr, "usage: %s FILE...\n", arguments[0]), 2;
    double start = seconds_now();
    reporter_t last = {{report, report_end, NULL}, {.size = 0}};
    stage_t middle = {filter, filter_end, &last.stage};
    tokeniser_t first = {.stage = {tokenise, tokenise_end, &middle}};
    read_files(&first.stage, arguments + 1);
    report_throughput(bytes_read, seconds_now() - start);
    return 0;
}

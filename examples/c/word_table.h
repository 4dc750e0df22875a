/* SPDX-License-Identifier: MIT */
/*
 * Code of both word-frequency programs: pieces of text, a table that counts words, the report.
 */
#ifndef WORD_TABLE_H
#define WORD_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct text {
    const char *start; /* NULL: no more words */
    size_t length;
} text_t;

enum { CHUNK = 65536, LONGEST_WORD = 64, SHORTEST_COUNTED = 5, REPORTED = 10 };

/* The lower-case form of a letter, 0 for any other character. */
static inline char letter(char c) {
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'z' ? lower : 0;
}

/* Open addressing; grown when half full. */
typedef struct word {
    uint64_t hash;
    char *text;
    size_t length, count;
} word_t;

typedef struct word_table {
    word_t *words;
    size_t size, used, total;
} word_table_t;

static inline uint64_t word_hash(text_t word) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < word.length; i++)
        hash = (hash ^ (unsigned char)word.start[i]) * 1099511628211u;
    return hash;
}

static inline word_t *word_slot(const word_table_t *table, text_t text, uint64_t hash) {
    for (size_t i = (hash >> 20) & (table->size - 1);; i = (i + 1) & (table->size - 1)) {
        word_t *word = &table->words[i];
        if (word->text == NULL || (word->hash == hash && word->length == text.length &&
                                   memcmp(word->text, text.start, text.length) == 0))
            return word;
    }
}

static inline void word_table_grow(word_table_t *table) {
    word_table_t larger = {.size = table->size == 0 ? 4096 : table->size * 2};
    larger.words = calloc(larger.size, sizeof *larger.words);
    if (larger.words == NULL)
        abort();
    for (size_t i = 0; i < table->size; i++) {
        const word_t *word = &table->words[i];
        if (word->text != NULL)
            *word_slot(&larger, (text_t){word->text, word->length}, word->hash) = *word;
    }
    free(table->words);
    table->words = larger.words;
    table->size = larger.size;
}

static inline void word_table_add(word_table_t *table, text_t text) {
    if (table->used * 2 >= table->size)
        word_table_grow(table);
    uint64_t hash = word_hash(text);
    word_t *word = word_slot(table, text, hash);
    if (word->text == NULL) {
        *word = (word_t){hash, strndup(text.start, text.length), text.length, 0};
        table->used++;
    }
    word->count++;
    table->total++;
}

static inline bool more_frequent(const word_t *a, const word_t *b) {
    return a->count != b->count ? a->count > b->count : strcmp(a->text, b->text) < 0;
}

/* Prints the words used most, and empties the table. */
static inline void word_table_report(word_table_t *table) {
    const word_t *top[REPORTED + 1];
    size_t listed = 0;
    for (const word_t *word = table->words; word < table->words + table->size; word++) {
        if (word->text == NULL)
            continue;
        size_t place = listed;
        for (; place > 0 && more_frequent(word, top[place - 1]); place--)
            top[place] = top[place - 1];
        top[place] = word;
        listed += listed < REPORTED;
    }
    printf("%zu words, %zu different ones, used most:\n", table->total, table->used);
    for (size_t i = 0; i < listed; i++)
        printf("%8zu %s\n", top[i]->count, top[i]->text);
    for (size_t i = 0; i < table->size; i++)
        free(table->words[i].text);
    free(table->words);
    *table = (word_table_t){.size = 0};
}

/* Processor time, so that other programs do not count. It is reported on standard error, so that
   standard output is the same every time. */
static inline double seconds_now(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}
static inline void report_throughput(size_t bytes, double seconds) {
    fprintf(stderr, "%.1f MB in %.3f s: %.0f MB/s\n", (double)bytes / 1e6, seconds,
            (double)bytes / 1e6 / seconds);
}

#endif

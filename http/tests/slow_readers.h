/* SPDX-License-Identifier: MIT */
/* Clients that read slowly, or not at all: how they read an answer of HUGE bytes, and how long the
   server's handler may wait for them. Time is a simulation's. */
#ifndef SLOW_READERS_H
#define SLOW_READERS_H

#include <haft/http.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { HUGE = 512 << 10 };

typedef struct {
    const char *what;
    size_t first;   /* bytes are read at once */
    int64_t pause;  /* then milliseconds, and then `piece` bytes, again and again */
    size_t piece;   /* 0: nothing more */
    bool gets_all;  /* or is given up: */
    int64_t before; /* so many seconds have passed since `first` */
} slow_reader_t;

/* The limits are 30 s and 1,024 bytes a second. A look may come a quarter of the time later. */
static const slow_reader_t slow_readers[] = {
    {"nothing", 0, 0, 0, false, 38},
    {"much, and then nothing", HUGE / 2, 0, 0, false, 38},
    {"a byte a second", 0, 1000, 1, false, 46},
    {"much, and then a byte a second", HUGE / 2, 1000, 1, false, 46},
    {"500 bytes a second", 0, 1000, 500, false, 80},
    {"much, and then 500 bytes a second", HUGE / 2, 1000, 500, false, 80},
    {"16 KiB in 10 s", HUGE - 20 * 16384, 10000, 16384, true, 0},
    {"much after 20 s", 0, 20000, 100000, true, 0},
    {"all at once", HUGE, 1000, HUGE, true, 0},
};
enum { SLOW_READERS = sizeof slow_readers / sizeof *slow_readers };

/* ---- The server ---- */

static char huge[HUGE];
static struct {
    int code;
    int64_t at;
    atomic_bool is_over;
    haft_io_event_t event;
} huge_end;

static inline int note_huge_end(int code) {
    huge_end.code = code;
    huge_end.at = haft_io_now();
    atomic_store(&huge_end.is_over, true);
    haft_io_event_set(&huge_end.event);
    return code;
}
static inline int answer_huge(haft_http_request_t *request, void *unused) {
    (void)unused;
    return note_huge_end(haft_http_answer(request, 200, NULL, huge, HUGE));
}
static inline int answer_huge_pieces(haft_http_request_t *request, void *unused) {
    enum { PIECE = 1 << 16 };
    (void)unused;
    int code = haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE);
    for (size_t at = 0; at < HUGE && code == 0; at += PIECE)
        code = haft_http_answer_write(request, huge + at, PIECE);
    return note_huge_end(code);
}
static inline void no_huge_line(void *unused, const char *line) {
    (void)unused, (void)line;
}

/* ---- A client ---- */

/* Reads up to so many bytes: how many, 0 at the end. */
typedef size_t read_huge_t(void *client, size_t size);

static inline size_t read_for(read_huge_t *read, void *client, size_t size) {
    size_t got = 0;
    for (size_t part = 1; got < size && part != 0; got += part)
        part = read(client, size - got);
    return got;
}

/* Has the answer come, or the server give up. */
static inline void read_slowly(const slow_reader_t *reader, const char *way, read_huge_t *read,
                               void *client) {
    read_for(read, client, reader->first);
    int64_t begun = haft_io_now();
    while (reader->piece != 0 && !atomic_load(&huge_end.is_over)) {
        haft_io_sleep(reader->pause * HAFT_IO_MILLISECOND);
        read_for(read, client, reader->piece);
    }
    haft_io_event_wait(&huge_end.event);
    haft_io_event_clear(&huge_end.event);
    atomic_store(&huge_end.is_over, false);
    int64_t lasted = huge_end.at - begun;
    bool gets_all = huge_end.code == 0;
    if (gets_all == reader->gets_all &&
        (gets_all || (lasted >= 25 * HAFT_IO_SECOND && lasted < reader->before * HAFT_IO_SECOND)))
        return;
    fprintf(stderr, "%s: %s: %d after %lld ms\n", way, reader->what, huge_end.code,
            (long long)lasted / 1000000);
    abort();
}

#endif

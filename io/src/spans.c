/* SPDX-License-Identifier: MIT */
/*
 * Spans of tasks, for the trace, and for haft-top and the debug pages: open spans are in a table by
 * their task, and a few that took longest are kept when they are over. This is done while a socket
 * for haft-top is open, or debug pages are served. The table has a fixed size, and spans that have
 * no room in it are not shown.
 */
#include "spans.h"
#include "workers.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPEN = 4096,
    PLACES = 1024,
    SHOWN = 16, /* of each kind */
    NAME = 64,
};
static const int64_t OLDEST = 30 * HAFT_IO_SECOND; /* that is over, and still shown */

typedef struct open {
    struct open *next;
    const void *task;
    int64_t since;
    char name[NAME];
} open_t;

typedef struct over {
    int64_t duration, ended, value;
    char name[NAME];
} over_t;

static struct {
    uint32_t lock; /* for all of it */
    unsigned users;
    open_t *open, *free; /* `open`: all of them, never given back: a task may be about to end one */
    open_t *places[PLACES];
    over_t over[SHOWN];
} spans;

static void copy_name(char *to, const char *name) {
    size_t size = name != NULL ? strnlen(name, NAME - 1) : 0;
    memcpy(to, name != NULL ? name : "", size);
    to[size] = '\0';
}

static open_t **place_of(const void *task) {
    return &spans.places[((uintptr_t)task * UINT64_C(0x9E3779B97F4A7C15)) >> 54];
}
_Static_assert(PLACES == 1 << 10, "as many as 10 bits name");

/* A thread that runs no task is known by one of its variables. */
static const void *key_of(const void *task) {
    return task != NULL ? task : (const void *)&hafti_io_this_worker;
}

static void keep_begin(const void *task, const char *name) {
    open_t **place = place_of(key_of(task));
    hafti_io_guard(&spans.lock);
    open_t *span = spans.free;
    if (span != NULL) {
        spans.free = span->next;
        *span = (open_t){.next = *place, .task = key_of(task), .since = hafti_io_clock()};
        copy_name(span->name, name);
        *place = span;
    }
    hafti_io_unguard(&spans.lock);
}

/* Keeps the span in the place of the one that was shortest, or is too old. */
static void keep_over(const over_t *span) {
    over_t *least = &spans.over[0];
    for (size_t i = 0; i < SHOWN; i++) {
        over_t *one = &spans.over[i];
        if (span->ended - one->ended > OLDEST)
            one->duration = 0;
        if (one->duration < least->duration)
            least = one;
    }
    if (least->duration < span->duration)
        *least = *span;
}

static void keep_end(const void *task, const char *name, int64_t value) {
    const void *key = key_of(task);
    hafti_io_guard(&spans.lock);
    open_t **link = place_of(key);
    while (*link != NULL && (*link)->task != key)
        link = &(*link)->next;
    open_t *span = *link; /* the innermost */
    if (span != NULL) {
        int64_t now = hafti_io_clock();
        over_t over = {.duration = now - span->since, .ended = now, .value = value};
        copy_name(over.name, name != NULL ? name : span->name);
        keep_over(&over);
        *link = span->next;
        span->next = spans.free;
        spans.free = span;
    }
    hafti_io_unguard(&spans.lock);
}

/* ---- The program's functions, for the trace, too ---- */

static bool is_looked_at(void) {
    const unsigned any = HAFTI_IO_TRACES | HAFTI_IO_PROBES | HAFTI_IO_KEEPS_SPANS;
    return HAFTI_IO_UNLIKELY(hafti_io_watches() & any);
}

static HAFTI_IO_COLD void begin(const char *name) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_SPAN_BEGIN, task, name, true, 0, 0);
    if (hafti_io_watches() & HAFTI_IO_KEEPS_SPANS)
        keep_begin(task, name);
}

static HAFTI_IO_COLD void end(const char *name, int64_t value) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (hafti_io_is_traced())
        hafti_io_trace(HAFTI_IO_EVENT_SPAN_END, task, name, true, (uint64_t)value, 0);
    if (hafti_io_watches() & HAFTI_IO_KEEPS_SPANS)
        keep_end(task, name, value);
}

void haft_io_trace_begin(const char *name) {
    if (is_looked_at())
        begin(name);
}

void haft_io_trace_end(const char *name, int64_t value) {
    if (is_looked_at())
        end(name, value);
}

/* The number that so many hexadecimal digits are. */
static uint64_t number_of(const char *digits, size_t count) {
    uint64_t number = 0;
    for (size_t i = 0; i < count && digits[i] != '\0'; i++) {
        unsigned char digit = (unsigned char)digits[i];
        number = number << 4 | ((digit & 15) + (digit > '9' ? 9 : 0));
    }
    return number;
}

static HAFTI_IO_COLD void identify(const char *trace, const char *span, const char *parent) {
    const haft_io_task_t *task = hafti_io_this_task();
    const uint64_t words[] = {[HAFTI_IO_TRACE_HIGH] = number_of(trace, 16),
                              [HAFTI_IO_TRACE_LOW] =
                                  strnlen(trace, 16) == 16 ? number_of(trace + 16, 16) : 0,
                              [HAFTI_IO_SPAN] = number_of(span, 16),
                              [HAFTI_IO_SPAN_PARENT] = number_of(parent, 16)};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i] != 0)
            hafti_io_trace(HAFTI_IO_EVENT_SPAN_ID, task, NULL, false, words[i], i);
}

void haft_io_trace_identify(const char *trace, const char *span, const char *parent) {
    if (hafti_io_is_traced())
        identify(trace, span, parent);
}

/* ---- To look at them ---- */

/* Inserts the span before younger ones; the last falls out. */
static void insert_by_age(const open_t **oldest, const open_t *span) {
    for (size_t i = 0; i < SHOWN && span != NULL; i++)
        if (oldest[i] == NULL || span->since < oldest[i]->since) {
            const open_t *younger = oldest[i];
            oldest[i] = span;
            span = younger;
        }
}

void hafti_io_visit_spans(void (*visit)(void *state, const hafti_io_span_t *span), void *state) {
    const open_t *oldest[SHOWN] = {NULL};
    hafti_io_guard(&spans.lock);
    int64_t now = hafti_io_clock();
    for (size_t i = 0; i < PLACES; i++)
        for (const open_t *span = spans.places[i]; span != NULL; span = span->next)
            insert_by_age(oldest, span);
    for (size_t i = 0; i < SHOWN && oldest[i] != NULL; i++)
        visit(state, &(hafti_io_span_t){oldest[i]->name, true, now - oldest[i]->since, 0});
    for (size_t i = 0; i < SHOWN; i++) {
        const over_t *span = &spans.over[i];
        if (span->duration != 0 && now - span->ended <= OLDEST)
            visit(state, &(hafti_io_span_t){span->name, false, span->duration, span->value});
    }
    hafti_io_unguard(&spans.lock);
}

static void forget_all(void) {
    memset(spans.places, 0, sizeof spans.places);
    memset(spans.over, 0, sizeof spans.over);
    spans.free = NULL;
    for (size_t i = 0; i < OPEN && spans.open != NULL; i++) {
        spans.open[i].next = spans.free;
        spans.free = &spans.open[i];
    }
}

int haft_io_keep_spans(bool keep) {
    hafti_io_guard(&spans.lock);
    if (spans.open == NULL)
        spans.open = calloc(OPEN, sizeof *spans.open);
    bool has_memory = spans.open != NULL;
    if (keep && has_memory && spans.users++ == 0) {
        forget_all();
        __atomic_fetch_or(&hafti_io_watched, HAFTI_IO_KEEPS_SPANS, __ATOMIC_RELAXED);
    }
    if (!keep && --spans.users == 0)
        __atomic_fetch_and(&hafti_io_watched, ~HAFTI_IO_KEEPS_SPANS, __ATOMIC_RELAXED);
    hafti_io_unguard(&spans.lock);
    return has_memory ? 0 : -ENOMEM;
}

void hafti_io_forget_spans(void) {
    spans.lock = 0;
    spans.users = 0;
    forget_all();
    __atomic_fetch_and(&hafti_io_watched, ~HAFTI_IO_KEEPS_SPANS, __ATOMIC_RELAXED);
}

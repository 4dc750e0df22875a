/* SPDX-License-Identifier: MIT */
/*
 * A run in figures: its threads, its tasks by name and wait, the spans that take longest; a line of
 * JSON (docs/tracing.md), of bounded size. Tasks are counted under the locks of their scopes, and
 * named there, since a name lives as long as its task.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUPS = 512, PLACES = 1024, NAME = 64 };

typedef struct group {
    char name[NAME];
    const char *does; /* what they wait for, or their state */
    bool waits;
    size_t count;
    int64_t since; /* of the one that has waited longest */
} group_t;

typedef struct groups {
    group_t all[GROUPS];
    uint16_t places[PLACES]; /* a group's index, and 1; 0: free */
    size_t count, others;
} groups_t;

static uint64_t mix(uint64_t hash, const char *text) {
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return hash;
}

/* NULL: there is no room for another. */
static group_t *group_of(groups_t *groups, const char *name, const char *does) {
    char shown[NAME];
    size_t size = strnlen(name, NAME - 1);
    while (size == NAME - 1 && size > 0 && ((unsigned char)name[size] & 0xC0) == 0x80)
        size--; /* not in the middle of a character */
    memcpy(shown, name, size);
    shown[size] = '\0';
    size_t at = mix(mix(UINT64_C(0xCBF29CE484222325), shown), does) % PLACES;
    for (; groups->places[at] != 0; at = (at + 1) % PLACES) {
        group_t *group = &groups->all[groups->places[at] - 1];
        if (strcmp(group->name, shown) == 0 && strcmp(group->does, does) == 0)
            return group;
    }
    if (groups->count == GROUPS)
        return NULL;
    group_t *group = &groups->all[groups->count++];
    groups->places[at] = (uint16_t)groups->count;
    *group = (group_t){.does = does, .since = INT64_MAX};
    memcpy(group->name, shown, NAME);
    return group;
}

static void count_task(void *state, const haft_io_task_t *task) {
    groups_t *groups = state;
    const char *name = __atomic_load_n(&task->name, __ATOMIC_RELAXED);
    const char *waits_for = __atomic_load_n(&task->runner->waits_for, __ATOMIC_RELAXED);
    bool waits = waits_for != NULL && hafti_io_state(task) == HAFTI_IO_PARKED;
    group_t *group =
        group_of(groups, name != NULL ? name : "", waits ? waits_for : hafti_io_state_name(task));
    if (group == NULL) {
        groups->others++;
        return;
    }
    group->count++;
    group->waits = waits;
    int64_t since = __atomic_load_n(&task->runner->waits_since, __ATOMIC_RELAXED);
    if (waits && since < group->since)
        group->since = since;
}

static void add_group(hafti_io_text_t *text, const group_t *group, int64_t now) {
    int64_t oldest = group->waits && now > group->since ? now - group->since : 0;
    hafti_io_add(text, "{\"name\":");
    hafti_io_add_quoted(text, group->name);
    hafti_io_add(text, ",\"%s\":", group->waits ? "waits_for" : "state");
    hafti_io_add_quoted(text, group->does);
    hafti_io_add(text, ",\"count\":%zu,\"oldest\":%lld,\"wakes\":%llu}", group->count,
                 (long long)oldest, (unsigned long long)hafti_io_wakes_of(group->name));
}

static void add_tasks(hafti_io_text_t *text, hafti_io_crew_t *crew) {
    groups_t *groups = calloc(1, sizeof *groups);
    text->failed |= groups == NULL;
    if (groups == NULL)
        return;
    size_t unlisted = hafti_io_visit_tasks(&crew->root, count_task, groups);
    int64_t now = hafti_io_worker_now(crew->workers[0]);
    hafti_io_add(text, ",\"tasks\":[");
    for (size_t i = 0; i < groups->count; i++) {
        if (i != 0)
            hafti_io_add(text, ",");
        add_group(text, &groups->all[i], now);
    }
    hafti_io_add(text, "],\"others\":%zu,\"unwaited\":%zu", groups->others, unlisted);
    free(groups);
}

/* ---- Threads ---- */

static unsigned long long read_counter(const uint64_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add_thread(hafti_io_text_t *text, const hafti_io_worker_t *worker) {
    const haft_io_counters_t *counters = &worker->counters;
    hafti_io_add(text,
                 "{\"thread\":%d,\"processor\":%lld,\"resumed\":%u,\"tasks\":%llu,\"steals\":%llu,"
                 "\"operations\":%llu,\"polls\":%llu,\"wakes\":%llu}",
                 (int)__atomic_load_n(&worker->thread_number, __ATOMIC_RELAXED),
                 (long long)hafti_io_processor_time(worker),
                 __atomic_load_n(&worker->resumed, __ATOMIC_RELAXED),
                 read_counter(&counters->tasks), read_counter(&counters->steals),
                 read_counter(&counters->operations), read_counter(&counters->polls),
                 read_counter(&counters->wakes));
}

/* ---- Spans ---- */

typedef struct listing {
    hafti_io_text_t *text;
    const char *between;
} listing_t;

static void add_span(void *state, const hafti_io_span_t *span) {
    listing_t *listing = state;
    hafti_io_add(listing->text, "%s{\"name\":", listing->between);
    hafti_io_add_quoted(listing->text, span->name);
    hafti_io_add(listing->text, ",\"open\":%s,\"duration\":%lld,\"value\":%lld}",
                 span->is_open ? "true" : "false", (long long)span->duration,
                 (long long)span->value);
    listing->between = ",";
}

/* ---- All of it ---- */

void hafti_io_summarize(hafti_io_crew_t *crew, bool with_tasks, hafti_io_text_t *text) {
    hafti_io_add(text, "{\"version\":1,\"process\":%d,\"run\":%llu,\"backend\":", (int)getpid(),
                 (unsigned long long)crew->number);
    hafti_io_add_quoted(text, crew->workers[0]->backend->name);
    hafti_io_add(text, ",\"time\":%lld,\"threads\":[", (long long)hafti_io_clock());
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++) {
        if (i != 0)
            hafti_io_add(text, ",");
        add_thread(text, crew->workers[i]);
    }
    hafti_io_add(text, "]");
    if (with_tasks)
        add_tasks(text, crew);
    hafti_io_add(text, ",\"spans\":[");
    hafti_io_visit_spans(add_span, &(listing_t){text, ""});
    hafti_io_add(text, "]}\n");
}

int haft_io_summarize(int descriptor) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return hafti_io_refuse_outside("haft_io_summarize");
    hafti_io_text_t text = {.bytes = NULL};
    hafti_io_summarize(task->worker->crew, true, &text);
    return hafti_io_text_write(&text, descriptor);
}

int haft_io_summarize_run(haft_io_scope_t *run, int descriptor) {
    hafti_io_crew_t *crew = run->worker->crew;
    if (!crew->root.shared)
        return -ENOTSUP;
    hafti_io_text_t text = {.bytes = NULL};
    hafti_io_summarize(crew, true, &text);
    return hafti_io_text_write(&text, descriptor);
}

/* SPDX-License-Identifier: MIT */
/*
 * What a run looks like from inside: its scopes and tasks as text, and counters.
 *
 * The tree is walked from the root down, with the locks of the scopes on the way, which keep their lists and
 * the tasks in these. The text is collected, and written when no lock is held.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct text {
    char *bytes;
    size_t size, room;
    bool failed; /* no memory */
} text_t;

static __attribute__((format(printf, 2, 3))) void add(text_t *text, const char *format, ...) {
    enum { LONGEST = 512 };
    if (text->room - text->size < LONGEST && !text->failed) {
        size_t room = text->room * 2 + LONGEST;
        char *bytes = realloc(text->bytes, room);
        text->failed = bytes == NULL;
        if (bytes != NULL) {
            text->bytes = bytes;
            text->room = room;
        }
    }
    if (text->failed)
        return;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text->bytes + text->size, LONGEST, format, arguments);
    va_end(arguments);
    text->size += size < LONGEST ? (size_t)size : LONGEST - 1;
}

static const char *state_name(const haft_io_task_t *task) {
    switch (haft_io_state(task)) {
    case HAFT_IO_RUNNING:
        return "runs";
    case HAFT_IO_READY:
    case HAFT_IO_TAKEN:
    case HAFT_IO_NEW:
        return "is ready";
    default:
        return "is about to wait";
    }
}

static void add_task(text_t *text, int depth, const haft_io_task_t *task, int64_t now) {
    const char *name = __atomic_load_n(&task->name, __ATOMIC_RELAXED);
    const char *waits_for = __atomic_load_n(&task->waits_for, __ATOMIC_RELAXED);
    int descriptor = __atomic_load_n(&task->waits_on, __ATOMIC_RELAXED);
    add(text, "%*stask '%s' ", depth * 2, "", name != NULL ? name : "");
    if (waits_for == NULL || haft_io_state(task) != HAFT_IO_PARKED) {
        add(text, "%s\n", state_name(task));
        return;
    }
    add(text, "waits for: %s", waits_for);
    if (descriptor >= 0)
        add(text, " on descriptor %d", descriptor);
    int32_t ticks = (int32_t)((uint32_t)(now >> HAFT_IO_TICK_BITS) -
                              __atomic_load_n(&task->waits_since, __ATOMIC_RELAXED));
    int64_t since = ticks > 0 ? (int64_t)ticks << HAFT_IO_TICK_BITS : 0;
    add(text, ", %lld ms\n", (long long)(since / HAFT_IO_MILLISECOND));
}

/* The number of its tasks, and of those in scopes below, that have not waited yet. */
static ptrdiff_t add_scope(text_t *text, int depth, haft_io_scope_t *scope, int64_t now) {
    haft_io_lock_scope(scope);
    ptrdiff_t unlisted = (ptrdiff_t)__atomic_load_n(&scope->live, __ATOMIC_RELAXED);
    add(text, "%*sscope '%s'%s%s\n", depth * 2, "", scope->name != NULL ? scope->name : "",
        scope->cancelled ? ", cancelled" : "", scope->shielded ? ", shielded" : "");
    for (haft_io_link_t *link = scope->tasks.next; link != &scope->tasks; link = link->next) {
        add_task(text, depth + 1, HAFT_IO_OWNER(link, haft_io_task_t, link), now);
        unlisted--;
    }
    for (haft_io_link_t *link = scope->inner.next; link != &scope->inner; link = link->next)
        unlisted += add_scope(text, depth + 1, HAFT_IO_OWNER(link, haft_io_scope_t, sibling), now);
    haft_io_unlock_scope(scope);
    return unlisted;
}

int haft_io_dump(int descriptor) {
    const haft_io_task_t *task = haft_io_self();
    if (task == NULL)
        return -ESRCH;
    text_t text = {NULL, 0, 0, false};
    ptrdiff_t unlisted =
        add_scope(&text, 0, &task->worker->crew->root, haft_io_worker_now(task->worker));
    if (unlisted > 0)
        add(&text, "and %td tasks that have not waited yet\n", unlisted);
    int code = text.failed ? -ENOMEM : 0;
    for (size_t sent = 0; sent < text.size && code == 0;) {
        ssize_t done = write(descriptor, text.bytes + sent, text.size - sent);
        if (done >= 0)
            sent += (size_t)done;
        else if (errno != EINTR)
            code = -errno;
    }
    free(text.bytes);
    return code;
}

static uint64_t read_counter(const uint64_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

int haft_io_count(haft_io_counters_t *counters) {
    const haft_io_task_t *task = haft_io_self();
    if (task == NULL)
        return -ESRCH;
    const haft_io_crew_t *crew = task->worker->crew;
    *counters = (haft_io_counters_t){.tasks = 0};
    unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++) {
        const haft_io_counters_t *one = &crew->workers[i]->counters;
        counters->tasks += read_counter(&one->tasks);
        counters->steals += read_counter(&one->steals);
        counters->operations += read_counter(&one->operations);
        counters->polls += read_counter(&one->polls);
        counters->wakes += read_counter(&one->wakes);
    }
    return 0;
}

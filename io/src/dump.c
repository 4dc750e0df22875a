/* SPDX-License-Identifier: MIT */
/*
 * What a run looks like from inside: its scopes and tasks as text, and counters.
 *
 * The tree is walked from the root down, with the locks of the scopes on the way, which keep their lists and
 * the tasks in these. Before, who waits on which descriptor is read from the table of descriptors. Of each scope the tasks
 * that do the same are one entry. The text is collected; when no lock is held, frames get their functions, and it
 * is written.
 *
 * A stack is walked while its task is PARKED. In a run of several threads another one may be about to resume it:
 *
 *   who looks                          | who resumes (run in scheduler.c)
 *   takes look_lock, sets looked_at    | sets the task's state to RUNNING
 *   membarrier: on every thread, what  |
 *     was before it is done, and seen  |
 *   walks the stack if the state is    | if looked_at is set, waits for look_lock
 *     PARKED; then gives both back     | goes on
 */
#include "internal.h"
#include "symbols.h"

#include <linux/membarrier.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct text {
    char *bytes;
    size_t size, room;
    bool failed; /* no memory */
} text_t;

static bool grow(text_t *text, size_t needed) {
    enum { FIRST = 512 };
    size_t room = text->room * 2 + FIRST;
    if (room < needed)
        room = needed;
    char *bytes = realloc(text->bytes, room);
    text->failed = bytes == NULL;
    if (bytes == NULL)
        return false;
    text->bytes = bytes;
    text->room = room;
    return true;
}

/* However long it is: names of functions of C++ and of tasks may be. */
static __attribute__((format(printf, 2, 3))) void add(text_t *text, const char *format, ...) {
    while (!text->failed) {
        size_t room = text->room - text->size;
        va_list arguments;
        va_start(arguments, format);
        int size = vsnprintf(room != 0 ? text->bytes + text->size : NULL, room, format, arguments);
        va_end(arguments);
        if (size >= 0 && (size_t)size < room) {
            text->size += (size_t)size;
            return;
        }
        text->failed = size < 0 || !grow(text, text->size + (size_t)size + 1);
    }
}

static const char *state_name(enum haft_io_task_state state, bool several) {
    switch (state) {
    case HAFT_IO_RUNNING:
        return several ? "run" : "runs";
    case HAFT_IO_READY:
    case HAFT_IO_OFFERED:
    case HAFT_IO_NEW:
        return several ? "are ready" : "is ready";
    default:
        return several ? "are about to wait" : "is about to wait";
    }
}

/* ---- Stacks ---- */

/* False: none may be walked. */
static bool begin_look(haft_io_crew_t *crew) {
    if (!crew->root.shared)
        return true; /* All tasks are this thread's. */
    haft_io_guard(&crew->look_lock);
    __atomic_store_n(&crew->looked_at, true, __ATOMIC_SEQ_CST);
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void end_look(haft_io_crew_t *crew) {
    if (!crew->root.shared)
        return;
    __atomic_store_n(&crew->looked_at, false, __ATOMIC_RELEASE); /* what was read, was before */
    haft_io_unguard(&crew->look_lock);
}

void haft_io_await_look(haft_io_crew_t *crew) {
    haft_io_guard(&crew->look_lock);
    haft_io_unguard(&crew->look_lock);
}

/* ---- Who waits on which descriptor ---- */

/* A wait is known by when it began: the task may have had others since. */
typedef struct wait {
    const haft_io_task_t *task;
    const char *waits_for;
    int64_t since;
    int descriptor;
} wait_t;

enum { MOST_THINGS = 8, MOST_FRAMES = 64 };

/* Tasks of one scope that have the same name, do the same, and do it in the same place. */
typedef struct group {
    uint64_t hash;                /* of all this */
    const char *name, *waits_for; /* NULL: they do not wait */
    enum haft_io_task_state state;
    void **frames;
    int frames_count;
    size_t count;
    int64_t longest, shortest;    /* that they have waited */
    intptr_t things[MOST_THINGS]; /* on which they wait: descriptors, or addresses of objects */
    size_t things_count;
    bool are_objects;
} group_t;

/* Where in the text there are frames, whose names are looked up when no lock is held. */
typedef struct mark {
    size_t at;
    int depth;
    void **frames;
    int count;
} mark_t;

typedef struct view {
    text_t text;
    int64_t now;
    bool backtraces;
    wait_t *waits; /* by task, and then by descriptor */
    size_t waits_count, waits_room;
    group_t *groups; /* of the scope that is looked at, in the order of their first tasks */
    size_t groups_count, groups_room;
    uint32_t *index; /* of groups by hash: one more than its number, or 0 */
    size_t index_size;
    mark_t *marks;
    size_t marks_count, marks_room;
} view_t;

/* Makes room for one more; false: no memory. */
static bool make_room(view_t *view, void *array, size_t *room, size_t count, size_t size) {
    enum { FEW = 64 };
    if (count < *room)
        return true;
    void **place = array;
    void *larger = realloc(*place, (*room * 2 + FEW) * size);
    view->text.failed |= larger == NULL;
    if (larger == NULL)
        return false;
    *place = larger;
    *room = *room * 2 + FEW;
    return true;
}

static wait_t wait_of(const haft_io_task_t *task, int descriptor) {
    return (wait_t){task, __atomic_load_n(&task->runner->waits_for, __ATOMIC_RELAXED),
                    __atomic_load_n(&task->runner->waits_since, __ATOMIC_RELAXED), descriptor};
}

static void note_wait(void *state, int descriptor, const haft_io_task_t *task) {
    view_t *view = state;
    if (make_room(view, &view->waits, &view->waits_room, view->waits_count, sizeof *view->waits))
        view->waits[view->waits_count++] = wait_of(task, descriptor);
}

static int compare_waits(const void *left, const void *right) {
    const wait_t *a = left, *b = right;
    if (a->task != b->task)
        return (uintptr_t)a->task < (uintptr_t)b->task ? -1 : 1;
    return a->descriptor - b->descriptor;
}

static size_t first_wait_of(const view_t *view, const haft_io_task_t *task) {
    size_t from = 0, to = view->waits_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if ((uintptr_t)view->waits[middle].task < (uintptr_t)task)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* ---- Groups of tasks ---- */

static uint64_t mix(uint64_t hash, uint64_t word) {
    static const uint64_t ODD = 0x9e3779b97f4a7c15;
    hash = (hash ^ word) * ODD;
    return hash ^ hash >> 32;
}

static uint64_t hash_of(const group_t *group) {
    uint64_t hash = mix((uintptr_t)group->waits_for, group->state);
    for (const char *name = group->name; *name != '\0'; name++)
        hash = mix(hash, (unsigned char)*name);
    for (int i = 0; i < group->frames_count; i++)
        hash = mix(hash, (uintptr_t)group->frames[i]);
    return hash;
}

static bool is_same(const group_t *a, const group_t *b) {
    return a->hash == b->hash && a->waits_for == b->waits_for && a->state == b->state &&
           a->frames_count == b->frames_count && strcmp(a->name, b->name) == 0 &&
           (a->frames_count == 0 ||
            memcmp(a->frames, b->frames, (size_t)a->frames_count * sizeof *a->frames) == 0);
}

/* Where the index has the group, or would have it. */
static uint32_t *place_in_index(const view_t *view, const group_t *group) {
    size_t i = group->hash % view->index_size;
    while (view->index[i] != 0 && !is_same(&view->groups[view->index[i] - 1], group))
        i = (i + 1) % view->index_size;
    return &view->index[i];
}

/* At least half of it is free. */
static bool index_has_room(view_t *view) {
    if (view->groups_count * 2 < view->index_size)
        return true;
    free(view->index);
    view->index_size = view->groups_room * 4;
    view->index = calloc(view->index_size, sizeof *view->index);
    view->text.failed |= view->index == NULL;
    if (view->index == NULL)
        return false;
    for (size_t i = 0; i < view->groups_count; i++)
        *place_in_index(view, &view->groups[i]) = (uint32_t)i + 1;
    return true;
}

/* The group that the task with these frames belongs to, new or not; NULL: no memory. */
static group_t *group_of(view_t *view, group_t *task) {
    task->hash = hash_of(task);
    if (!make_room(view, &view->groups, &view->groups_room, view->groups_count,
                   sizeof *view->groups) ||
        !index_has_room(view))
        return NULL;
    uint32_t *place = place_in_index(view, task);
    if (*place != 0)
        return &view->groups[*place - 1];
    if (task->frames_count != 0) {
        void **copy = malloc((size_t)task->frames_count * sizeof *copy);
        view->text.failed |= copy == NULL;
        if (copy == NULL)
            return NULL;
        task->frames = memcpy(copy, task->frames, (size_t)task->frames_count * sizeof *copy);
    }
    view->groups[view->groups_count] = *task;
    *place = (uint32_t)++view->groups_count;
    return &view->groups[view->groups_count - 1];
}

static void add_thing(group_t *group, intptr_t thing) {
    for (size_t i = 0; i < group->things_count && i < MOST_THINGS; i++)
        if (group->things[i] == thing)
            return;
    if (group->things_count < MOST_THINGS)
        group->things[group->things_count] = thing;
    group->things_count++;
}

/* What the task waits on: descriptors, or an object. */
static void add_things(const view_t *view, group_t *group, const wait_t *wait) {
    const void *object = __atomic_load_n(&wait->task->runner->waits_on, __ATOMIC_RELAXED);
    if (object != NULL) {
        group->are_objects = true;
        add_thing(group, (intptr_t)object);
        return;
    }
    for (size_t i = first_wait_of(view, wait->task);
         i < view->waits_count && view->waits[i].task == wait->task &&
         view->waits[i].waits_for == wait->waits_for && view->waits[i].since == wait->since;
         i++)
        add_thing(group, view->waits[i].descriptor);
}

static void add_task(view_t *view, const haft_io_task_t *task) {
    void *frames[MOST_FRAMES];
    const char *name = __atomic_load_n(&task->name, __ATOMIC_RELAXED);
    wait_t wait = wait_of(task, -1);
    group_t one = {
        .name = name != NULL ? name : "", .state = haft_io_state(task), .frames = frames};
    bool waits = wait.waits_for != NULL && one.state == HAFT_IO_PARKED;
    if (waits) {
        one.waits_for = wait.waits_for;
        if (view->backtraces)
            one.frames_count = haft_fiber_backtrace(task->runner->fiber, frames, MOST_FRAMES);
    }
    group_t *group = group_of(view, &one);
    if (group == NULL)
        return;
    int64_t since = waits && view->now > wait.since ? view->now - wait.since : 0;
    if (group->count == 0 || since < group->shortest)
        group->shortest = since;
    if (since > group->longest)
        group->longest = since;
    group->count++;
    if (waits)
        add_things(view, group, &wait);
}

/* ---- Groups as text ---- */

static void write_things(text_t *text, const group_t *group) {
    size_t count = group->things_count;
    const char *plural = count > 1 ? "s" : "";
    for (size_t i = 0; i < count && i < MOST_THINGS; i++) {
        if (i != 0)
            add(text, ", ");
        else if (group->are_objects)
            add(text, " at ");
        else
            add(text, " on descriptor%s ", plural);
        if (group->are_objects)
            add(text, "%p", (void *)group->things[i]);
        else
            add(text, "%d", (int)group->things[i]);
    }
    if (count > MOST_THINGS)
        add(text, " and %zu more", count - MOST_THINGS);
}

static void write_group(view_t *view, int depth, const group_t *group) {
    text_t *text = &view->text;
    bool several = group->count > 1;
    if (several)
        add(text, "%*s%zu tasks '%s' ", depth * 2, "", group->count, group->name);
    else
        add(text, "%*stask '%s' ", depth * 2, "", group->name);
    if (group->waits_for == NULL) {
        add(text, "%s\n", state_name(group->state, several));
        return;
    }
    add(text, "%s for: %s", several ? "wait" : "waits", group->waits_for);
    write_things(text, group);
    long long shortest = group->shortest / HAFT_IO_MILLISECOND;
    long long longest = group->longest / HAFT_IO_MILLISECOND;
    if (shortest != longest)
        add(text, ", %lld to", shortest);
    else
        add(text, ",");
    add(text, " %lld ms\n", longest);
    if (make_room(view, &view->marks, &view->marks_room, view->marks_count, sizeof *view->marks))
        view->marks[view->marks_count++] =
            (mark_t){text->size, depth + 2, group->frames, group->frames_count};
    else if (group->frames_count != 0)
        free(group->frames);
}

static void write_groups(view_t *view, int depth) {
    for (size_t i = 0; i < view->groups_count; i++)
        write_group(view, depth, &view->groups[i]);
    view->groups_count = 0;
    if (view->index != NULL)
        memset(view->index, 0, view->index_size * sizeof *view->index);
}

/* C++'s names are those of the source, if its runtime is there. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *status)
    __attribute__((weak));

static void write_frame(text_t *text, int depth, const haft_io_frame_t *frame) {
    char *words = NULL;
    if (frame->function != NULL && frame->function[0] == '_' && __cxa_demangle)
        words = __cxa_demangle(frame->function, NULL, NULL, NULL);
    const char *function = frame->function != NULL ? frame->function : "";
    add(text, "%*s%s+0x%zx (%s)\n", depth * 2, "", words != NULL ? words : function,
        (size_t)frame->offset, frame->file);
    free(words);
}

/* The text with the frames in it; without those of the library. */
static text_t with_frames(const view_t *view) {
    text_t text = {.failed = view->text.failed};
    haft_io_modules_t modules = {.count = 0};
    size_t done = 0;
    for (size_t i = 0; i < view->marks_count; i++) {
        const mark_t *mark = &view->marks[i];
        add(&text, "%.*s", (int)(mark->at - done), view->text.bytes + done);
        done = mark->at;
        for (int k = 0; k < mark->count; k++) {
            haft_io_frame_t frame = haft_io_frame_of(&modules, mark->frames[k]);
            if (!frame.is_own)
                write_frame(&text, mark->depth, &frame);
        }
    }
    if (view->text.bytes != NULL)
        add(&text, "%s", view->text.bytes + done);
    haft_io_close_modules(&modules);
    return text;
}

/* ---- The tree ---- */

/* How many they are. */
static ptrdiff_t add_tasks(view_t *view, const haft_io_link_t *tasks) {
    ptrdiff_t count = 0;
    for (const haft_io_link_t *link = tasks->next; link != tasks; link = link->next) {
        add_task(view, HAFT_IO_OWNER(link, haft_io_runner_t, link)->task);
        count++;
    }
    return count;
}

/* The number of its tasks that have not waited yet, less that of those in scopes below that have. Under its lock. */
static ptrdiff_t add_scope(view_t *view, int depth, haft_io_scope_t *scope) {
    ptrdiff_t unlisted = (ptrdiff_t)haft_io_scope_live(scope);
    add(&view->text, "%*sscope '%s'%s%s\n", depth * 2, "", haft_io_scope_name(scope),
        scope->cancelled ? ", cancelled" : "", scope->shielded ? ", shielded" : "");
    unlisted -= add_tasks(view, &scope->tasks);
    haft_io_guard(&scope->lock_here);
    unlisted -= add_tasks(view, &scope->tasks_here);
    haft_io_unguard(&scope->lock_here);
    write_groups(view, depth + 1);
    return unlisted;
}

/* The number of all tasks that have not waited yet. */
static ptrdiff_t add_scopes(view_t *view, haft_io_scope_t *root) {
    enum { DEEPEST = 64 }; /* that is indented */
    ptrdiff_t unlisted = 0;
    unsigned depth = 0;
    haft_io_lock_scope(root);
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = haft_io_next_scope(scope, root, true, &depth))
        unlisted += add_scope(view, depth < DEEPEST ? (int)depth : DEEPEST, scope);
    haft_io_unlock_scope(root);
    return unlisted;
}

static int write_all(int descriptor, const char *bytes, size_t size) {
    while (size != 0) {
        ssize_t done = HAFT_IO_RESULT(write(descriptor, bytes, size));
        if (done < 0 && done != -EINTR)
            return (int)done;
        bytes += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static void free_view(view_t *view) {
    for (size_t i = 0; i < view->marks_count; i++)
        if (view->marks[i].count != 0)
            free(view->marks[i].frames);
    free(view->text.bytes);
    free(view->waits);
    free(view->groups);
    free(view->index);
    free(view->marks);
}

static int dump(haft_io_crew_t *crew, bool backtraces, int descriptor) {
    view_t view = {.now = haft_io_worker_now(crew->workers[0])};
    haft_io_visit_waiters(crew->descriptors, note_wait, &view);
    if (view.waits_count != 0)
        qsort(view.waits, view.waits_count, sizeof *view.waits, compare_waits);
    if (backtraces)
        view.backtraces = begin_look(crew);
    ptrdiff_t unlisted = add_scopes(&view, &crew->root);
    if (backtraces)
        end_look(crew);
    if (unlisted > 0)
        add(&view.text, "and %td tasks that have not waited yet\n", unlisted);
    text_t text = with_frames(&view);
    int code = text.failed ? -ENOMEM : write_all(descriptor, text.bytes, text.size);
    free(text.bytes);
    free_view(&view);
    return code;
}

int haft_io_dump_with(const haft_io_dump_options_t *options, int descriptor) {
    const haft_io_task_t *task = haft_io_this_task();
    bool backtraces = options != NULL && options->backtraces;
    return task != NULL ? dump(task->worker->crew, backtraces, descriptor) : -ESRCH;
}

int haft_io_dump(int descriptor) {
    return haft_io_dump_with(NULL, descriptor);
}

/* ---- On a signal ---- */

/*
 * The signal handler tells the runs, whose threads are woken and dump; it may interrupt any thread. A run is
 * taken out of the list, and then waits for the signal handlers that have begun before. (A child of fork has neither
 * those runs nor those handlers, which may have been other threads'.)
 */
static haft_io_crew_t *dumping; /* all runs with a signal */
static uint32_t dumping_lock;
static int telling; /* signal handlers */

static void ask_for_dumps(int number) {
    int saved = errno;
    __atomic_fetch_add(&telling, 1, __ATOMIC_SEQ_CST);
    for (haft_io_crew_t *crew = __atomic_load_n(&dumping, __ATOMIC_SEQ_CST); crew != NULL;
         crew = __atomic_load_n(&crew->next_dumping, __ATOMIC_SEQ_CST)) {
        if (crew->dump_signal != number)
            continue;
        __atomic_store_n(&crew->dump_asked, true, __ATOMIC_SEQ_CST);
        unsigned count = __atomic_load_n(&crew->count, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; i < count; i++)
            crew->workers[i]->backend->interrupt(crew->workers[i]);
    }
    __atomic_fetch_sub(&telling, 1, __ATOMIC_SEQ_CST);
    errno = saved;
}

int haft_io_dump_on_signal(haft_io_crew_t *crew, int number) {
    struct sigaction action = {.sa_handler = ask_for_dumps, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    /* The instruction that faulted would fault again. */
    if (number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
        sigaction(number, &action, NULL) != 0)
        return -EINVAL;
    crew->dump_signal = number;
    haft_io_guard(&dumping_lock);
    crew->next_dumping = dumping;
    __atomic_store_n(&dumping, crew, __ATOMIC_SEQ_CST);
    haft_io_unguard(&dumping_lock);
    return 0;
}

void haft_io_dump_no_more(haft_io_crew_t *crew) {
    haft_io_guard(&dumping_lock);
    haft_io_crew_t **place = &dumping;
    while (*place != NULL && *place != crew)
        place = &(*place)->next_dumping;
    if (*place != NULL)
        HAFT_IO_SHOW(place, crew->next_dumping);
    haft_io_unguard(&dumping_lock);
    unsigned turns = 0;
    while (__atomic_load_n(&telling, __ATOMIC_SEQ_CST) != 0)
        haft_io_relax(&turns);
}

void haft_io_forget_dumps(void) {
    dumping = NULL;
    dumping_lock = 0;
    telling = 0;
}

void haft_io_dump_as_asked(haft_io_crew_t *crew) {
    if (__atomic_exchange_n(&crew->dump_asked, false, __ATOMIC_SEQ_CST))
        dump(crew, true, STDERR_FILENO);
}

/* ---- Counters ---- */

static uint64_t read_counter(const uint64_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

int haft_io_count(haft_io_counters_t *counters) {
    const haft_io_task_t *task = haft_io_this_task();
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
        counters->polling += read_counter(&one->polling);
    }
    return 0;
}

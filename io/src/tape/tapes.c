/* SPDX-License-Identifier: MIT */
/*
 * A run with a tape: whether options or the environment name one, its beginning and its end, and
 * the message where a program asks for something else than the tape has.
 */
#include "addresses.h"
#include "tapes.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef hafti_io_tape_t tape_t;

/* ---- Where the two part ---- */

/* A place for a breakpoint: before the process ends, while all is as it was. */
__attribute__((noinline, noreturn)) static void haft_io_replay_ends(void) {
    enum { STATUS = 3 };
    fflush(NULL);
    _exit(STATUS);
}

static const haft_io_task_t *task_of(const tape_t *tape, int64_t number) {
    if (number < 0 || number >= tape->spawned)
        return NULL;
    const haft_io_task_t *task = tape->tasks[number].task;
    return hafti_io_tape_number_of(tape, task) == (uint32_t)number ? task : NULL;
}

static void tell_of_answer(const char *before, unsigned kind, int descriptor, const char *name) {
    dprintf(STDERR_FILENO, "%s%s", before, name != NULL ? name : hafti_io_tape_name(kind));
    if (descriptor >= 0)
        dprintf(STDERR_FILENO, " of the descriptor %d", descriptor);
}

static void tell_task(const char *before, const haft_io_task_t *task, int64_t number) {
    dprintf(STDERR_FILENO, "%sthe task '%s' (%lld)", before,
            task != NULL ? haft_io_task_name(task) : "?", (long long)number);
}

static void tell_frames(const haft_io_task_t *task, int64_t number) {
    enum { MOST = 64 };
    if (task == NULL || task->runner == NULL || hafti_io_state(task) == HAFTI_IO_ENDED)
        return;
    void *addresses[MOST];
    int count = haft_io_task_backtrace(task, addresses, MOST);
    count = haft_programs_frames(addresses, count, (const void *)(uintptr_t)task->function, true);
    tell_task("haft-io: ", task, number);
    dprintf(STDERR_FILENO, " is here:\n");
    backtrace_symbols_fd(addresses, count, STDERR_FILENO);
}

/* Prints why the task, whose turn it is by the tape, does not go on. */
static void tell_state(const haft_io_task_t *task) {
    const hafti_io_runner_t *runner = task != NULL ? task->runner : NULL;
    if (task == NULL || hafti_io_state(task) == HAFTI_IO_ENDED)
        dprintf(STDERR_FILENO, ", which does not exist here");
    else if (runner != NULL && runner->waits_for != NULL)
        dprintf(STDERR_FILENO, ", which waits for: %s", runner->waits_for);
}

/* Returns the task that asks; or, between tasks, the one that went on last, if it waits for an
   answer, and which. */
static const haft_io_task_t *find_asker(tape_t *tape, unsigned *kind, int *descriptor) {
    const haft_io_task_t *self = hafti_io_this_task();
    if (self != NULL)
        return self;
    const haft_io_task_t *last = task_of(tape, tape->running);
    const hafti_io_taped_task_t *taped = &tape->tasks[tape->running];
    if (last == NULL || taped->cell == NULL)
        return NULL;
    *kind = taped->kind;
    *descriptor = taped->descriptor;
    tape->asked = taped->asked;
    return last;
}

/* Prints the request's line, which is the second of the text. */
static void tell_request(const struct iovec *request) {
    const char *text = request->iov_base;
    const char *line = text != NULL ? memchr(text, '\n', request->iov_len) : NULL;
    if (line == NULL)
        return;
    size_t left = request->iov_len - (size_t)(++line - text);
    const char *end = memchr(line, '\r', left);
    dprintf(STDERR_FILENO, " (%.*s)", (int)(end != NULL ? (size_t)(end - line) : left), line);
}

__attribute__((noreturn)) static void differs(tape_t *tape, unsigned kind, int descriptor) {
    const hafti_io_entry_t *next = hafti_io_tape_look(tape);
    const haft_io_task_t *self = find_asker(tape, &kind, &descriptor);
    int64_t own = self != NULL ? (int64_t)hafti_io_tape_number_of(tape, self) : -1;
    bool ends = next->kind == HAFTI_IO_TAPED_END;
    int64_t other = next->kind == HAFTI_IO_TAPED_RUN ? next->result : (int64_t)tape->running;
    const haft_io_task_t *others = task_of(tape, other);
    fflush(stdout);
    dprintf(STDERR_FILENO, "haft-io: the %s %s", ends ? "record" : "replay of", tape->path);
    tell_request(&tape->request);
    dprintf(STDERR_FILENO, " after %llu entries", (unsigned long long)tape->entries);
    dprintf(STDERR_FILENO, "%s",
            ends                             ? " has no more"
            : tape->request.iov_base != NULL ? " is not the request that was kept"
                                             : " is not the run that was recorded");
    if (self != NULL) {
        tell_task(": ", self, own);
        tell_of_answer(" asks for ", kind, descriptor, tape->asked);
    } else {
        dprintf(STDERR_FILENO, ": all tasks wait");
    }
    if (!ends) {
        tell_of_answer(", where the record has ", next->kind, next->descriptor,
                       next->kind == HAFTI_IO_TAPED_CALL_OF_C ? (const char *)next->bytes : NULL);
        tell_task(next->kind == HAFTI_IO_TAPED_RUN ? ", of " : " for ", others, other);
        if (others != self)
            tell_state(others);
    }
    dprintf(STDERR_FILENO, ".%s%s\n",
            tape->rebuilt ? " (The program has been built anew since it was recorded.)" : "",
            tape->request.iov_base != NULL
                ? " (What other requests have left in memory is not on the record.)"
                : "");
    tell_frames(self, own);
    if (!ends && others != self)
        tell_frames(others, other);
    haft_io_replay_ends();
}

/* ---- The options and the environment ---- */

static struct {
    uint32_t lock;
    tape_t *tape; /* that of the environment, for all runs of the process in turn */
    unsigned in_run;
} process;

static int refuse(int code, const char *format, const char *first, const char *second) {
    dprintf(STDERR_FILENO, format, first, second);
    return code;
}

static const char *asked(const char *option, const char *variable) {
    const char *path = option != NULL ? option : getenv(variable);
    return path != NULL && path[0] != '\0' ? path : NULL;
}

static void rest_at_exit(void) {
    if (process.tape != NULL)
        hafti_io_tape_rest(process.tape);
}

static int open_tape(tape_t *tape, const char *record, const char *replay) {
    int code =
        record != NULL ? hafti_io_tape_make(tape, record, false) : hafti_io_tape_load(tape, replay);
    if (code != 0 && record != NULL)
        dprintf(STDERR_FILENO, "haft-io: the run cannot be recorded in %s: %s.\n", record,
                strerror(-code));
    tape->differs = differs;
    tape->awaits = hafti_io_tape_await;
    return code;
}

/* A function of libhaft-posix, or NULL. */
static void (*at_beginning)(void);

void haft_io_tape_set_beginning(void (*begins)(void)) {
    __atomic_store_n(&at_beginning, begins, __ATOMIC_RELEASE);
}

static void tell_beginning(void) {
    void (*begins)(void) = __atomic_load_n(&at_beginning, __ATOMIC_ACQUIRE);
    if (begins != NULL)
        begins();
}

static int new_tape(const char *record, const char *replay, bool shared, tape_t **tape) {
    *tape = malloc(sizeof **tape);
    if (*tape == NULL)
        return -ENOMEM;
    int code = open_tape(*tape, record, replay);
    if (code == 0) {
        (*tape)->shared = shared;
        return 0;
    }
    hafti_io_tape_free(*tape);
    free(*tape);
    *tape = NULL;
    return code;
}

/* The tape of the process is one run's at a time. */
static int tape_of_process(const char *record, const char *replay, tape_t **tape) {
    int code = 0;
    hafti_io_guard(&process.lock);
    if (process.tape == NULL) {
        code = new_tape(record, replay, true, &process.tape);
        if (code == 0)
            atexit(rest_at_exit);
    } else if (process.tape->in_run) {
        code = -EBUSY;
    }
    if (code == 0)
        process.tape->in_run = true;
    *tape = code == 0 ? process.tape : NULL;
    hafti_io_unguard(&process.lock);
    if (code == -EBUSY)
        refuse(code,
               "haft-io: a second run begins while another is %s %s: only one at a time can be.\n",
               record != NULL ? "recorded in" : "replayed from", record != NULL ? record : replay);
    return code;
}

/* The time at which it begins, and the name of the back end, are next. */
static void prepare_replay(tape_t *tape) {
    tape->spawned = tape->running = 0;
    hafti_io_tape_take_request(tape);
    const hafti_io_entry_t *entry = hafti_io_tape_answer(tape, HAFTI_IO_TAPED_BEGIN, -1);
    tape->backend = hafti_io_replayer;
    if (entry->size != 0 && entry->bytes[entry->size - 1] == '\0')
        tape->backend.name = (const char *)entry->bytes;
    free(tape->simulated.lots.tasks);
    tape->simulated = (hafti_io_simulated_t){
        .now = entry->result, .network = false, .files = false, .backend = &tape->backend};
    hafti_io_ring(&tape->simulated.lots.ring);
}

/* The environment's file may have a request: its server replays that in a run of its own
   (haft_io_kept_file), and this run has no tape. */
static void leave_to_server(tape_t **tape) {
    if (!(*tape)->replays || hafti_io_tape_look(*tape)->kind != HAFTI_IO_TAPED_REQUEST)
        return;
    hafti_io_guard(&process.lock);
    process.tape = NULL;
    hafti_io_unguard(&process.lock);
    hafti_io_tape_free(*tape);
    free(*tape);
    *tape = NULL;
}

static int tape_that_keeps(const haft_io_run_options_t *options, tape_t **tape) {
    const char *folder =
        asked(options != NULL ? options->keep_requests : NULL, "HAFT_IO_KEEP_REQUESTS");
    int code = folder != NULL ? hafti_io_kept_new(folder, options, tape) : 0;
    if (code == 0 && *tape != NULL) {
        (*tape)->differs = differs;
        tell_beginning();
    }
    return code;
}

int hafti_io_tape_for_run(const haft_io_run_options_t *options, unsigned threads, tape_t **tape) {
    const char *record = asked(options != NULL ? options->record : NULL, "HAFT_IO_RECORD"),
               *replay = asked(options != NULL ? options->replay : NULL, "HAFT_IO_REPLAY");
    *tape = NULL;
    if (record == NULL && replay == NULL)
        return tape_that_keeps(options, tape);
    if (record != NULL && replay != NULL)
        return refuse(-EINVAL, "haft-io: a run is recorded (%s) or replayed (%s), and not both.\n",
                      record, replay);
    if (threads > 1)
        return refuse(-ENOTSUP,
                      "haft-io: a run of several threads cannot be recorded or replayed, because "
                      "the order of what they do to common memory is not known: give the run one "
                      "thread (haft_io_run_options_t.threads = 1)%s%s.\n",
                      "", "");
    bool of_process = options == NULL || (options->record == NULL && options->replay == NULL);
    int code =
        of_process ? tape_of_process(record, replay, tape) : new_tape(record, replay, false, tape);
    if (code == 0 && of_process)
        leave_to_server(tape);
    if (code != 0 || *tape == NULL)
        return code;
    tell_beginning();
    if (replay != NULL)
        prepare_replay(*tape);
    return 0;
}

/* ---- A run ---- */

static void count_runs(int by) {
    hafti_io_guard(&process.lock);
    process.in_run += (unsigned)by;
    if (process.in_run != 0)
        __atomic_fetch_or(&hafti_io_watched, HAFTI_IO_TAPES, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&hafti_io_watched, ~(unsigned)HAFTI_IO_TAPES, __ATOMIC_RELEASE);
    hafti_io_unguard(&process.lock);
}

void hafti_io_tape_begin_run(hafti_io_worker_t *worker) {
    tape_t *tape = worker->tape;
    tape->begun = true;
    worker->calls = worker->simulated_calls = worker->network_calls = worker->file_calls =
        hafti_io_taped_calls();
    tape->worker = worker;
    if (tape->keeps) {
        hafti_io_record_backend(worker);
        count_runs(1);
        return;
    }
    tape->spawned = tape->running = 0;
    tape->numbers_used = 0;
    if (tape->numbers != NULL)
        memset(tape->numbers, 0, tape->numbers_size * sizeof *tape->numbers);
    if (!tape->replays) {
        const char *name = worker->backend->name;
        hafti_io_record_backend(worker);
        hafti_io_keep(tape, HAFTI_IO_TAPED_BEGIN, -1, worker->clock, name, strlen(name) + 1);
        hafti_io_tape_keep_descriptors(tape);
        tape->time = worker->clock;
    } else {
        hafti_io_tape_occupy_all(tape);
    }
    count_runs(1);
}

void hafti_io_tape_end_run(tape_t *tape) {
    bool begun = tape->begun;
    tape->begun = false;
    if (begun)
        count_runs(-1);
    if (!begun || tape->keeps) {
        /* Nothing was kept. */
    } else if (!tape->replays) {
        hafti_io_keep_order(tape, HAFTI_IO_TAPED_ENDED, 0);
        hafti_io_tape_rest(tape);
    } else if (hafti_io_tape_look(tape)->kind == HAFTI_IO_TAPED_ENDED) {
        hafti_io_tape_take(tape);
    } else if (hafti_io_tape_look(tape)->kind != HAFTI_IO_TAPED_END) {
        tape->differs(tape, HAFTI_IO_TAPED_ENDED, -1);
    }
    if (tape->shared) {
        __atomic_store_n(&tape->in_run, false, __ATOMIC_RELEASE);
        return;
    }
    hafti_io_tape_free(tape);
    free(tape);
}

void hafti_io_forget_tapes(tape_t *own) {
    process.lock = 0;
    if (process.tape != NULL)
        hafti_io_tape_forget(process.tape);
    if (own != NULL)
        hafti_io_tape_forget(own);
}

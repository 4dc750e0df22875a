/* SPDX-License-Identifier: MIT */
/*
 * Runs that keep requests (haft_io_run_options_t.keep_requests). The tape of each worker has the
 * recorder's back end, and nothing on it. A request has a tape in memory, from haft_io_kept_begin
 * to haft_io_kept_end, with the answers that its tasks get and the order in which they go on: the
 * task that began it is number 0, and those that it spawns follow. While one of them runs, that
 * tape is the worker's (turn_to_request, in tape.c).
 *
 * The file is the record of a run whose first task is the request's, so it is replayed like any
 * other. A task that goes on at another thread than the request's is not on it.
 */
#include "tapes.h"
#include "../system_call.h"

#include <haft/io_binding.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef hafti_io_tape_t tape_t;

enum { MOST_FILES = 100, MOST = 1 << 20, MOST_SPARE = 64 << 10 };

/* ---- Runs ---- */

/* Whether the process may make files there: as its effective user, who will make them. A kernel
   before Linux 5.8 only answers for the real one. */
static long may_write(const char *folder) {
    long code = -ENOSYS;
#ifdef SYS_faccessat2
    code =
        hafti_io_system_call(SYS_faccessat2, AT_FDCWD, (long)folder, W_OK | X_OK, AT_EACCESS, 0, 0);
#endif
    return hafti_io_is_missing((int)code)
               ? hafti_io_system_call(SYS_faccessat, AT_FDCWD, (long)folder, W_OK | X_OK, 0, 0, 0)
               : code;
}

static long make_folder(const char *folder) {
    long code = hafti_io_system_call(SYS_mkdirat, AT_FDCWD, (long)folder, 0700, 0, 0, 0);
    if (code != 0 && code != -EEXIST)
        return code;
    code = hafti_io_system_call(SYS_openat, AT_FDCWD, (long)folder,
                                O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    if (code < 0)
        return code;
    hafti_io_system_call(SYS_close, code, 0, 0, 0, 0, 0);
    return may_write(folder);
}

int hafti_io_kept_new(const char *folder, const haft_io_run_options_t *options, tape_t **tape) {
    long code = make_folder(folder);
    if (code == -ENOTDIR)
        return haft_io_refuse(-ENOTDIR, "haft_io_run",
                              "requests cannot be kept in '%s', which is a file or below one: name "
                              "a folder, which is made if it is not there (keep_requests, or "
                              "HAFT_IO_KEEP_REQUESTS)",
                              folder);
    if (code != 0)
        dprintf(STDERR_FILENO, "haft-io: requests cannot be kept in %s: %s.\n", folder,
                strerror((int)-code));
    if (code != 0)
        return (int)code;
    size_t most = options != NULL && options->kept_size != 0 ? options->kept_size : MOST;
    *tape = calloc(1, sizeof **tape);
    if (*tape != NULL)
        **tape = (tape_t){.keeps = true, .file = -1, .most = most, .path = strdup(folder)};
    if (*tape != NULL && (*tape)->path != NULL)
        return 0;
    free(*tape);
    *tape = NULL;
    return -ENOMEM;
}

bool hafti_io_kept_join(hafti_io_worker_t *worker) {
    const tape_t *first = worker->crew->workers[0]->tape;
    if (first == NULL)
        return true;
    tape_t *tape = calloc(1, sizeof *tape);
    if (tape == NULL)
        return false;
    const tape_t *run = first->run != NULL ? first->run : first;
    *tape = (tape_t){.keeps = true,
                     .file = -1,
                     .most = run->most,
                     .path = strdup(run->path),
                     .differs = run->differs};
    worker->tape = tape;
    return true;
}

bool haft_io_keeps_requests(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    return worker != NULL && worker->tape != NULL &&
           (worker->tape->keeps || worker->tape->run != NULL);
}

/* ---- A request ---- */

static tape_t *add_tape(tape_t *run) {
    if (run->requests_count == run->requests_room) {
        uint32_t room = run->requests_room != 0 ? 2 * run->requests_room : 16;
        tape_t **larger = realloc(run->requests, room * sizeof(tape_t *));
        if (larger == NULL)
            return NULL;
        run->requests = larger;
        run->requests_room = room;
    }
    tape_t *tape = calloc(1, sizeof *tape);
    if (tape == NULL)
        return NULL;
    *tape = (tape_t){.grows = true,
                     .begun = true,
                     .file = -1,
                     .run = run,
                     .place = run->requests_count,
                     .most = run->most,
                     .real = run->real,
                     .differs = run->differs,
                     .worker = run->worker};
    run->requests[run->requests_count++] = tape;
    return tape;
}

static tape_t *take_tape(tape_t *run) {
    tape_t *tape = run->spare;
    if (tape == NULL)
        return add_tape(run);
    run->spare = tape->next_spare;
    return tape;
}

static void put_back(tape_t *tape) {
    if (tape->part_size > MOST_SPARE) {
        free(tape->part);
        tape->part = NULL;
        tape->part_size = 0;
    }
    tape->next_spare = tape->run->spare;
    tape->run->spare = tape;
}

haft_io_kept_t *haft_io_kept_begin(size_t *most) {
    hafti_io_worker_t *worker = hafti_io_worker();
    const haft_io_task_t *task = hafti_io_this_task();
    tape_t *run = worker != NULL ? worker->tape : NULL;
    if (run == NULL || !run->keeps || task == NULL || worker->forked || task->moves)
        return NULL;
    tape_t *tape = take_tape(run);
    if (tape == NULL)
        return NULL;
    tape->at = tape->part;
    tape->end = tape->part != NULL ? tape->part + tape->part_size : NULL;
    tape->lost = false;
    tape->spawned = 1;
    tape->begins_at = tape->time = worker->clock;
    if (!hafti_io_tape_enter(tape, task, 0)) {
        put_back(tape);
        return NULL;
    }
    worker->tape = tape;
    hafti_io_keep_order(tape, HAFTI_IO_TAPED_RUN, 0);
    *most = tape->most;
    return tape;
}

static unsigned written, numbered;

static bool take_place(void) {
    if (__atomic_fetch_add(&written, 1, __ATOMIC_RELAXED) < MOST_FILES)
        return true;
    __atomic_fetch_sub(&written, 1, __ATOMIC_RELAXED);
    return false;
}

static void name_file(const tape_t *run, char *path, size_t size) {
    unsigned number = __atomic_add_fetch(&numbered, 1, __ATOMIC_RELAXED);
    struct timespec now;
    struct tm day;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &day);
    snprintf(path, size, "%s/request-%04d%02d%02d-%d-%u.haft", run->path, day.tm_year + 1900,
             day.tm_mon + 1, day.tm_mday, (int)getpid(), number);
}

static void keep_command(tape_t *file) {
    char command[4096];
    long from = hafti_io_system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/cmdline",
                                     O_RDONLY | O_CLOEXEC, 0, 0, 0);
    long size = hafti_io_system_call(SYS_read, from, (long)command, sizeof command, 0, 0, 0);
    hafti_io_system_call(SYS_close, from, 0, 0, 0, 0, 0);
    hafti_io_keep(file, HAFTI_IO_TAPED_COMMAND, -1, 0, command, size > 0 ? (size_t)size : 0);
}

/* An earlier process may have had the same number, as in a container: its files stay. */
static int make_file(const tape_t *run, tape_t *file, char *path, size_t size) {
    for (;;) {
        name_file(run, path, size);
        int code = hafti_io_tape_make(file, path, true);
        if (code != -EEXIST)
            return code;
        hafti_io_tape_free(file);
    }
}

static int write_file(const tape_t *tape, const struct iovec *request, const struct iovec *answer,
                      char *path, size_t size) {
    tape_t file;
    int code = make_file(tape->run, &file, path, size);
    bool is_made = file.file >= 0;
    if (code == 0) {
        const char *backend = tape->real->name;
        hafti_io_keep(&file, HAFTI_IO_TAPED_REQUEST, -1, 0, request->iov_base, request->iov_len);
        hafti_io_keep(&file, HAFTI_IO_TAPED_ANSWER, -1, 0, answer->iov_base, answer->iov_len);
        keep_command(&file);
        hafti_io_keep(&file, HAFTI_IO_TAPED_BEGIN, -1, tape->begins_at, backend,
                      strlen(backend) + 1);
        hafti_io_keep(&file, HAFTI_IO_TAPED_DESCRIPTORS, -1, 0, NULL, 0);
        hafti_io_keep_bytes(&file, tape->part, (size_t)(tape->at - tape->part));
        hafti_io_keep_order(&file, HAFTI_IO_TAPED_ENDED, 0);
        code = file.lost ? -ENOSPC : 0;
    }
    hafti_io_tape_free(&file);
    if (code != 0 && is_made)
        hafti_io_system_call(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0);
    return code;
}

int haft_io_kept_end(haft_io_kept_t *tape, const struct iovec *request, const struct iovec *answer,
                     char *path, size_t size) {
    int code = 0;
    hafti_io_worker()->tape = tape->run;
    hafti_io_tape_leave(tape);
    if (request != NULL && tape->lost)
        code = -ENOBUFS;
    else if (request != NULL && !take_place())
        code = -EDQUOT;
    else if (request != NULL && (code = write_file(tape, request, answer, path, size)) != 0)
        __atomic_fetch_sub(&written, 1, __ATOMIC_RELAXED);
    put_back(tape);
    return code;
}

bool haft_io_kept_pause(void) {
    hafti_io_worker_t *worker = hafti_io_worker();
    hafti_io_runner_t *runner = worker != NULL ? worker->running : NULL;
    if (runner == NULL)
        return false;
    bool was = !runner->taped;
    runner->taped = true;
    return was;
}

void haft_io_kept_resume(bool was) {
    if (was)
        hafti_io_worker()->running->taped = false;
}

enum haft_io_tape_use haft_io_kept_use(void) {
    const tape_t *tape = hafti_io_tape_here();
    if (tape == NULL || (tape->run == NULL && tape->request.iov_base == NULL))
        return HAFT_IO_TAPE_NONE;
    return tape->replays ? HAFT_IO_TAPE_ANSWERS : HAFT_IO_TAPE_KEEPS;
}

/* ---- Replays ---- */

const char *haft_io_kept_file(void) {
    const char *path = getenv("HAFT_IO_REPLAY");
    if (path == NULL || path[0] == '\0')
        return NULL;
    tape_t tape;
    bool is_one = hafti_io_tape_load(&tape, path) == 0 &&
                  hafti_io_tape_look(&tape)->kind == HAFTI_IO_TAPED_REQUEST;
    hafti_io_tape_free(&tape);
    return is_one ? path : NULL;
}

const char *haft_io_kept_rest(void) {
    tape_t *tape = hafti_io_worker()->tape;
    const hafti_io_entry_t *next;
    while (next = hafti_io_tape_look(tape),
           next->kind == HAFTI_IO_TAPED_RUN || next->kind == HAFTI_IO_TAPED_TIME)
        hafti_io_tape_take(tape);
    if (next->kind == HAFTI_IO_TAPED_CALL_OF_C)
        return (const char *)next->bytes;
    return next->kind != HAFTI_IO_TAPED_ENDED && next->kind != HAFTI_IO_TAPED_END
               ? hafti_io_tape_name(next->kind)
               : NULL;
}

bool haft_io_kept_found(struct iovec *request, struct iovec *answer) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    const tape_t *tape = worker != NULL ? worker->tape : NULL;
    if (tape == NULL || tape->request.iov_base == NULL)
        return false;
    *request = tape->request;
    *answer = tape->answer;
    if (answer->iov_base == NULL) /* the record ends before */
        answer->iov_base = (void *)(uintptr_t) "";
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * The tape of a run: the answers that the run got from outside, and the order in which its tasks
 * went on. A run that is recorded writes it, a replay reads it. tape.c has the format.
 *
 *   what asks                        | where it meets the tape
 *   operations on descriptors, polls | the table of the back end (recorder.c, replayer.c)
 *   sockets, files and names made    | the table calls.h (taped_system.c, files.c)
 *   blocking work                    | its clause (taped_work.c)
 *   the time, the date, chance       | hafti_io_tape_number, hafti_io_tape_bytes
 *   which task goes on               | hafti_io_tape_goes_on, by the loop; a replay has
 *                                    |   hafti_io_tape_next (replaying.c)
 *
 * A tape is of one run of one thread at a time, and only that thread touches it.
 *
 * A run that keeps requests (kept.c) has a tape for each worker that has nothing on it, and one in
 * memory for each request: while a task of a request runs, that one is the worker's.
 */
#ifndef HAFTI_IO_TAPE_H
#define HAFTI_IO_TAPE_H

#include "../workers.h"

/* The kinds of entries, and the name of each for people. The numbers are part of the format; those
   of operations follow TAPED_OPERATION, in the order of HAFTI_IO_KINDS. */
/* clang-format off */
#define HAFTI_IO_TAPED_KINDS(one) \
    one(CLOSE, "close") one(WATCH, "wait without a stack") one(POLLED, "poll") \
    one(NOW, "the time") one(NOW_ROUGHLY, "the time, roughly") one(DATE, "the date") \
    one(RANDOM, "random bytes") one(TURN, "a turn of a select") one(WORK, "blocking work") \
    one(NEXT_PART, "the next part of a call") one(RESOLVE, "the addresses of a name") \
    one(PIPE, "a pipe") one(SOCKET, "a socket") one(SOCKET_PAIR, "a pair of sockets") \
    one(BIND, "bind") one(LISTEN, "listen") one(NAME, "the name of a socket") \
    one(SHUTDOWN, "shutdown") one(OPEN, "open") one(PREAD, "pread") one(PWRITE, "pwrite") \
    one(FSYNC, "fsync") one(LIST, "the names in a directory") \
    one(MKDIR, "mkdir") one(REMOVE, "remove") one(RENAME, "rename") one(STAT, "stat") \
    one(GET_OPTION, "an option of a socket") one(SEND_FILE, "send a file") one(SPLICE, "splice") \
    one(PROCESS_START, "start a process") one(PROCESS_WAIT, "the end of a process") \
    one(SIGNAL, "a signal") one(DESCRIPTORS, "the descriptors") \
    one(CALL_OF_C, "a call of the C library") one(SET_OPTION, "set an option of a socket") \
    one(REQUEST, "a request that was kept") one(ANSWER, "the answer to a request that was kept") \
    one(COMMAND, "the command")
/* clang-format on */

enum hafti_io_taped {
    HAFTI_IO_TAPED_END,   /* nothing follows: also where a file ends early */
    HAFTI_IO_TAPED_RUN,   /* the number of the task that goes on */
    HAFTI_IO_TAPED_TIME,  /* of the loop, from now on */
    HAFTI_IO_TAPED_BEGIN, /* of a run */
    HAFTI_IO_TAPED_ENDED, /* the run has */
    HAFTI_IO_TAPED_OPERATION = 16,
    HAFTI_IO_TAPED_OTHERS = 48 - 1,
#define HAFTI_IO_TAPED_ITSELF(kind, name) HAFTI_IO_TAPED_##kind,
    HAFTI_IO_TAPED_KINDS(HAFTI_IO_TAPED_ITSELF)
};
const char *hafti_io_tape_name(unsigned kind);

/* The next entry of a tape that is read. */
typedef struct hafti_io_entry {
    unsigned kind;
    int descriptor; /* of an answer; -1: it has none */
    int64_t result; /* RUN: the task; TIME: the time */
    const unsigned char *bytes;
    size_t size;
    const unsigned char *after; /* it; NULL: it has not been read */
} hafti_io_entry_t;

/* A task of a replay. */
typedef struct hafti_io_taped_task {
    haft_io_task_t *task;
    hafti_io_cell_t *cell; /* of its wait for an answer; NULL: it is in none */
    unsigned kind;         /* of that, and of which descriptor */
    int descriptor;
    const char *asked;
} hafti_io_taped_task_t;

typedef struct hafti_io_number_of {
    const haft_io_task_t *task;
    uint32_t number;
    uint32_t request; /* 1 + the place in `requests` of the one whose task it is; 0: of none */
    uint32_t use;     /* of that place: another is over, and none has the task */
} hafti_io_number_of_t;

typedef struct hafti_io_tape {
    unsigned char *at, *end; /* a tape that is recorded: of the part that is in memory */
    bool replays;
    bool lost;    /* there was no room for all; the rest is not kept */
    bool in_run;  /* it is a run's now */
    bool begun;   /* which has a back end */
    bool rebuilt; /* the program has another build-id than the one that was recorded */
    bool shared;  /* by the runs of the process, one after the other */
    bool grows;   /* it is in memory only: of blocking work, or of a request */
    bool keeps;   /* nothing is on it: the run keeps requests, which have tapes of their own */
    int file;     /* of a recording, or -1; of a replay /dev/null, or -1 */
    unsigned char *part;
    size_t part_at, part_size; /* of the file */
    int64_t time;
    uint64_t entries;
    uint32_t running;              /* the number of the task that went on last */
    uint32_t spawned;              /* tasks of this run */
    hafti_io_number_of_t *numbers; /* by the tasks' addresses; a power of two */
    size_t numbers_size, numbers_used;
    hafti_io_taped_task_t *tasks; /* of a replay, by their numbers */
    size_t tasks_room;
    hafti_io_entry_t next;
    const hafti_io_backend_t *real;
    hafti_io_backend_t backend;
    hafti_io_simulated_t simulated; /* of a replay */
    hafti_io_worker_t *worker;
    /* Called when the program asks for this, and the tape has something else. */
    void (*differs)(struct hafti_io_tape *tape, unsigned kind, int descriptor)
        __attribute__((noreturn));
    const char *asked; /* the function of the C library that is asked for; or NULL */
    char *path;        /* of a run that keeps requests: their folder */
    /* A run that keeps requests. */
    struct hafti_io_tape **requests; /* their tapes, of which some are spare */
    uint32_t requests_count, requests_room;
    struct hafti_io_tape *spare;
    size_t most; /* bytes that a request may take */
    /* The tape of such a request. */
    struct hafti_io_tape *run; /* the worker's own; NULL: it is no request's */
    struct hafti_io_tape *next_spare;
    uint32_t place;    /* in `requests` */
    uint32_t use;      /* of the place, by so many requests before this one */
    int64_t begins_at; /* by the clock of the loop */
    /* A replay of a request: what it was, and its answer; without base: of a run. */
    struct iovec request, answer, command;
    const hafti_io_entry_t *(*awaits)(hafti_io_runner_t *runner, unsigned kind, int descriptor);
} hafti_io_tape_t;

/* ---- The file (tape.c) ---- */

/* 0, or an error of the system, -EEXIST if it `is_new` and there is a file; the head of the file is
   written. */
int hafti_io_tape_make(hafti_io_tape_t *tape, const char *path, bool is_new);
/* Reads the head: 0, or -EINVAL, after a message on standard error, if it is no tape for this
   program. */
int hafti_io_tape_load(hafti_io_tape_t *tape, const char *path);
/* Cuts the file to its contents, which stay there. */
void hafti_io_tape_rest(hafti_io_tape_t *tape);
void hafti_io_tape_free(hafti_io_tape_t *tape);
/* To be called in a child of fork: the file is the parent's. */
void hafti_io_tape_forget(hafti_io_tape_t *tape);
/* Takes the request that was kept, if the file is of one: it stands before the run. */
void hafti_io_tape_take_request(hafti_io_tape_t *tape);

/* ---- Recording ---- */

HAFTI_IO_COLD void hafti_io_tape_turn(hafti_io_tape_t *tape);
enum { HAFTI_IO_MOST_OF_HEAD = 32 }; /* bytes of an entry without its bytes */
static inline unsigned char *hafti_io_put_number(unsigned char *at, uint64_t number) {
    while (number >= 0x80) {
        *at++ = (unsigned char)(number | 0x80);
        number >>= 7;
    }
    *at++ = (unsigned char)number;
    return at;
}
/* Small for numbers near 0 of either sign. */
static inline uint64_t hafti_io_folded(int64_t number) {
    return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}
static inline void hafti_io_keep_order(hafti_io_tape_t *tape, unsigned kind, uint64_t number) {
    if (HAFTI_IO_UNLIKELY(tape->end - tape->at < HAFTI_IO_MOST_OF_HEAD))
        hafti_io_tape_turn(tape);
    *tape->at = (unsigned char)kind;
    tape->at = hafti_io_put_number(tape->at + 1, number);
}
/* Begins an answer of which so many bytes follow, by hafti_io_keep_bytes. */
static inline void hafti_io_keep_head(hafti_io_tape_t *tape, unsigned kind, int descriptor,
                                      int64_t result, size_t size) {
    if (HAFTI_IO_UNLIKELY(tape->end - tape->at < HAFTI_IO_MOST_OF_HEAD))
        hafti_io_tape_turn(tape);
    unsigned char *at = tape->at;
    *at++ = (unsigned char)kind;
    at = hafti_io_put_number(at, hafti_io_folded(descriptor));
    at = hafti_io_put_number(at, hafti_io_folded(result));
    tape->at = hafti_io_put_number(at, size);
}
HAFTI_IO_COLD void hafti_io_keep_over_parts(hafti_io_tape_t *tape, const void *bytes, size_t size);
static inline void hafti_io_keep_bytes(hafti_io_tape_t *tape, const void *bytes, size_t size) {
    if (HAFTI_IO_UNLIKELY(size > (size_t)(tape->end - tape->at))) {
        hafti_io_keep_over_parts(tape, bytes, size);
        return;
    }
    if (size != 0)
        memcpy(tape->at, bytes, size);
    tape->at += size;
}
static inline void hafti_io_keep(hafti_io_tape_t *tape, unsigned kind, int descriptor,
                                 int64_t result, const void *bytes, size_t size) {
    hafti_io_keep_head(tape, kind, descriptor, result, size);
    hafti_io_keep_bytes(tape, bytes, size);
}

/* ---- Replaying ---- */

/* The next entry; END where there is none. */
const hafti_io_entry_t *hafti_io_tape_look(hafti_io_tape_t *tape);
static inline void hafti_io_tape_take(hafti_io_tape_t *tape) {
    tape->at = (unsigned char *)(uintptr_t)tape->next.after;
    tape->next.after = NULL;
    tape->entries++;
}
/* The answer to a call that needs no wait: it has to be next, and to fit. */
const hafti_io_entry_t *hafti_io_tape_answer(hafti_io_tape_t *tape, unsigned kind, int descriptor);
/*
 * A replay has the numbers of the descriptors that the tape gives, so that the program's own calls
 * of the system, such as the C library's, get the numbers that they got: each is a descriptor of
 * /dev/null.
 */
void hafti_io_tape_occupy(hafti_io_tape_t *tape, int descriptor);
void hafti_io_tape_vacate(hafti_io_tape_t *tape, int descriptor);
/* Keeps the numbers that are in use when a run begins, and occupies them. */
void hafti_io_tape_keep_descriptors(hafti_io_tape_t *tape);
void hafti_io_tape_occupy_all(hafti_io_tape_t *tape);
/* Copies as many bytes of the answer as there is room for. */
static inline void hafti_io_copy_answer(const hafti_io_entry_t *entry, void *into, size_t room) {
    if (entry->size != 0 && into != NULL && room != 0)
        memcpy(into, entry->bytes, entry->size < room ? entry->size : room);
}

/* ---- Both ---- */

/* The tape of the calling task, if what it asks for is kept or answered; or NULL. */
static inline hafti_io_tape_t *hafti_io_tape_here(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    if (HAFTI_IO_LIKELY(worker == NULL || worker->tape == NULL))
        return NULL;
    const hafti_io_runner_t *runner = worker->running;
    return runner != NULL && !runner->taped && !worker->forked && !worker->tape->keeps
               ? worker->tape
               : NULL;
}

/* Returns the value that was kept; a recording keeps this one. */
int64_t hafti_io_tape_number(hafti_io_tape_t *tape, unsigned kind, int64_t value);
/* In a recording the bytes are there already. */
void hafti_io_tape_bytes(hafti_io_tape_t *tape, unsigned kind, void *bytes, size_t size);

void hafti_io_tape_spawned(hafti_io_tape_t *tape, haft_io_task_t *task);
/* Makes the task one of the request, under this number; false: no memory. */
bool hafti_io_tape_enter(hafti_io_tape_t *request, const haft_io_task_t *task, uint32_t number);
/* No task is one of the request any more. */
static inline void hafti_io_tape_leave(hafti_io_tape_t *request) {
    request->use++;
}
/* To be called when the task goes on. */
void hafti_io_tape_goes_on(hafti_io_worker_t *worker, const haft_io_task_t *task);
/* Put around calls of the system whose answers are kept in another form, to the end of the block:
   libhaft-posix may make them, and would keep them, too. */
#define HAFTI_IO_UNTAPED                                                                           \
    __attribute__((cleanup(hafti_io_tape_again), unused)) hafti_io_runner_t *untaped =             \
        hafti_io_tape_pauses()
static inline hafti_io_runner_t *hafti_io_tape_pauses(void) {
    if (HAFTI_IO_LIKELY(hafti_io_tape_here() == NULL))
        return NULL;
    hafti_io_runner_t *runner = hafti_io_worker()->running;
    runner->taped = true;
    return runner;
}
static inline void hafti_io_tape_again(hafti_io_runner_t *const *runner) {
    if (HAFTI_IO_UNLIKELY(*runner != NULL))
        (*runner)->taped = false;
}
/* The tape of a thread that does blocking work for a task, with the answers of the C library;
   NULL: it does none (tape_calls.c). */
extern __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))
hafti_io_tape_t *hafti_io_work_tape;
uint32_t hafti_io_tape_number_of(const hafti_io_tape_t *tape, const haft_io_task_t *task);

#endif

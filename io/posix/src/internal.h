/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of libhaft-posix share. Each replaced function has the system's name.
 * On a task it does the same as the system's in three steps: try without blocking; if that gives
 * EAGAIN and the caller would block, wait by an effect of libhaft-io; try again.
 *
 * The effects are performed directly: the functions of haft/io.h would unwind the stack of a
 * cancelled task, and frames of a C library cannot be unwound.
 */
#ifndef HAFTI_POSIX_INTERNAL_H
#define HAFTI_POSIX_INTERNAL_H

#include "waits.h"

/* The system of a path, below the descriptor of a directory or AT_FDCWD. If it is the simulation's,
   other tasks have gone on first, as they would while the pool works. (paths.c) */
const hafti_posix_system_t *hafti_posix_path_system_asked(int directory, const char *path);
static inline const hafti_posix_system_t *hafti_posix_path_system(int directory, const char *path) {
    return hafti_posix_may_simulate() ? hafti_posix_path_system_asked(directory, path)
                                      : hafti_posix_system();
}
/* The same for a path that is to be opened: any simulation has its own /dev/random and
   /dev/urandom. */
const hafti_posix_system_t *hafti_posix_opening_system(int directory, const char *path);
#define PATH_SYSTEM(directory, path, name) (hafti_posix_path_system(directory, path)->name)

/* Whether the task has forked, and does not know yet whether exec has failed in the child.
   (children.c) */
bool hafti_posix_awaits_report(void);
/* Called when the task has read the child's report, with the result: 0 or an error is its end. */
void hafti_posix_note_report(ssize_t done);

/* ---- Directories of a simulation (directories.c) ---- */

/* Their streams have odd addresses, which no memory of the C library has. */
static inline bool hafti_posix_is_simulated_stream(const DIR *stream) {
    return ((uintptr_t)stream & 1) != 0;
}

/* ---- FILEs of a simulation, or of a run with a tape (streams.c) ---- */

/* The FILE of a descriptor that was opened for it, and of one that there was before: fopen and
   fdopen. The flags are those of open(2); -1: they are none. NULL, and errno: it cannot be had. */
FILE *hafti_posix_opened_stream(int descriptor, int flags);
FILE *hafti_posix_stream_of(int descriptor, int flags);
/* The flags of a mode of fopen(3); -1: it is none. */
int hafti_posix_flags_of(const char *mode);

/* The name that is resolved in place of this one: in a simulation with a network every name is of
   its one host. (pooled.c) */
const char *hafti_posix_host_of(const char *name, int family);

/* ---- The modes of descriptors (modes.c) ---- */

/* Whether reads and writes of the number may wait by libhaft-io's own operations: it is a socket
   that blocks, without limits of time or a mark, as an earlier wait has found out. */
bool hafti_posix_is_plain(int number);
/* Called before a wait looks at the number's mode; and when it blocks without a limit. */
typedef struct hafti_posix_look {
    uint64_t word;
    uint32_t changes;
} hafti_posix_look_t;
hafti_posix_look_t hafti_posix_look(int number);
void hafti_posix_note_wait(int number, hafti_posix_look_t look);
/* Called before and after the number is closed or given to another file. */
void hafti_posix_number_changes(int number);
void hafti_posix_number_has_changed(int number);
/* Called after a change of the mode of some descriptor, or of many numbers. */
void hafti_posix_mode_has_changed(void);
/* Whether a low-water mark has been set on some socket of the process. */
bool hafti_posix_some_low_water(void);

/* Whether a wait while the word has this value parks the calling thread, as Rust's std does it. */
bool hafti_posix_is_park(const uint32_t *word, uint32_t value);
/* Called before and after the wait of a task for such a word, whose key it is. The first returns
   the task. */
const haft_io_task_t *hafti_posix_begin_park(uintptr_t key);
void hafti_posix_end_park(void);

/* Defines a system call for the pool: a struct with its arguments, a block of members, and its
   result, `done`; and a function that makes the call, in which `c` is that struct. */
#define HAFT_POSIX_POOLED(name, type, arguments, ...)                                              \
    typedef struct name##_call {                                                                   \
        struct arguments;                                                                          \
        type done;                                                                                 \
    } name##_call_t;                                                                               \
    static void call_##name(void *argument) {                                                      \
        name##_call_t *c = argument;                                                               \
        c->done = SYSTEM(name)(__VA_ARGS__);                                                       \
    }
/* How many numbers the process's table of descriptors has room for; FD_SETSIZE, if that is
   unknown. */
int hafti_posix_room_for_descriptors(void);
/* Calls the function, which closes the descriptor, or has none (-1) to close, and returns a
   negative error number: ends the waits on the descriptor, and returns 0, or -1 and errno.
   (closing.c) */
int hafti_posix_close_by(int descriptor, int (*function)(void *), void *argument);
/* Ends the waits on the descriptor of the stream, which is about to be closed. */
void hafti_posix_end_waits(FILE *stream);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Closing, directly or as a side effect: giving a number to another file, and the functions of the
 * C library that close a descriptor internally. haft_io_close and haft_io_close_by end the waits of
 * tasks of any run on the number with EBADF, even if the call is made on a thread without tasks.
 */
#include "internal.h"

/* ---- Whether the call is the system's ---- */

/* Set on a thread without tasks while it closes: calls that libhaft-io makes then, and calls of a
   signal handler that interrupts it, are the system's. */
static __thread bool closes __attribute__((tls_model("initial-exec")));

static bool is_the_systems(void) {
    return closes || (haft_io_runs_here() && haft_io_self() == NULL) ||
           hafti_posix_is_child_of_vfork();
}

static bool begin(void) {
    bool thread = !haft_io_runs_here();
    if (thread)
        closes = true;
    return thread;
}
static int end(bool thread, int code, int before) {
    if (thread)
        closes = false;
    return (int)hafti_posix_answer(code, before);
}

/* The function returns what closes the descriptor, or a negative error number. */
static int close_by(int descriptor, int (*function)(void *), void *argument, int before) {
    hafti_posix_number_changes(descriptor);
    bool thread = begin();
    int code = end(thread, haft_io_close_by(descriptor, function, argument), before);
    hafti_posix_number_has_changed(descriptor);
    return code;
}

/* The result of a call of the system that may have closed something. */
#define CLOSED_BY(call)                                                                            \
    __extension__({                                                                                \
        __auto_type closed_ = (call);                                                              \
        hafti_posix_mode_has_changed();                                                            \
        closed_;                                                                                   \
    })

/* ---- close ---- */

/* libhaft-io, too, closes by this function in the end, and then it is the system's. */
HAFT_POSIX_EXPORT int close(int descriptor) {
    if (is_the_systems()) {
        hafti_posix_number_changes(descriptor);
        int code = SYSTEM(close)(descriptor);
        hafti_posix_number_has_changed(descriptor);
        return code;
    }
    int before = hafti_posix_error();
    bool thread = begin();
    return end(thread, HAFT_PERFORM(haft_io_close, descriptor), before);
}

/* No number beyond the table's size is open, unless that size is unknown. */
static int close_all(unsigned first, unsigned last) {
    unsigned room = (unsigned)hafti_posix_room_for_descriptors();
    for (unsigned i = first; i <= last && i < room; i++)
        if (SYSTEM(fcntl)((int)i, F_GETFD) >= 0)
            close((int)i);
    return last < room ? 0 : CLOSED_BY(SYSTEM(close_range)(first > room ? first : room, last, 0));
}

/* With flags it closes nothing, or closes in a table of descriptors that becomes the thread's own.
   In a child it closes very many numbers, before there are tasks. */
HAFT_POSIX_EXPORT int close_range(unsigned first, unsigned last, int flags) {
    if (first > last || flags != 0 || hafti_posix_is_child() || is_the_systems())
        return CLOSED_BY(SYSTEM(close_range)(first, last, flags));
    int before = hafti_posix_error();
    int code = close_all(first, last);
    hafti_posix_set_error(before);
    return code;
}

HAFT_POSIX_EXPORT void closefrom(int first) {
    if (hafti_posix_is_child() || is_the_systems()) {
        SYSTEM(closefrom)(first);
        hafti_posix_mode_has_changed();
    } else {
        close_range(first > 0 ? (unsigned)first : 0, ~0U, 0);
    }
}

/* ---- Another file for the number ---- */

typedef struct duplicate {
    int from, to, flags;
} duplicate_t;

static int call_dup3(void *argument) {
    const duplicate_t *call = argument;
    return (int)HAFT_POSIX_RESULT(SYSTEM(dup3)(call->from, call->to, call->flags));
}

/* Otherwise the call does nothing, or fails and leaves the number as it is. */
static bool replaces(int from, int to) {
    struct rlimit most;
    return from != to && to >= 0 && SYSTEM(fcntl)(from, F_GETFD) >= 0 &&
           getrlimit(RLIMIT_NOFILE, &most) == 0 && (rlim_t)to < most.rlim_cur;
}

HAFT_POSIX_EXPORT int dup2(int from, int to) {
    int before = hafti_posix_error();
    if (is_the_systems() || !replaces(from, to))
        return CLOSED_BY(SYSTEM(dup2)(from, to));
    return close_by(to, call_dup3, &(duplicate_t){from, to, 0}, before);
}

HAFT_POSIX_EXPORT int dup3(int from, int to, int flags) {
    int before = hafti_posix_error();
    if (is_the_systems() || (flags & ~O_CLOEXEC) != 0 || !replaces(from, to))
        return CLOSED_BY(SYSTEM(dup3)(from, to, flags));
    return close_by(to, call_dup3, &(duplicate_t){from, to, flags}, before);
}

/* ---- Objects with a descriptor inside ---- */

int hafti_posix_close_by(int descriptor, int (*function)(void *), void *argument) {
    int before = hafti_posix_error();
    if (descriptor < 0 || is_the_systems())
        return (int)hafti_posix_answer(CLOSED_BY(function(argument)), before);
    return close_by(descriptor, function, argument, before);
}

/* -1: the object has no descriptor. */
static int number_of(FILE *stream) {
    int before = hafti_posix_error();
    int descriptor = fileno(stream);
    hafti_posix_set_error(before);
    return descriptor;
}

static int call_fclose(void *stream) {
    return (int)HAFT_POSIX_RESULT(SYSTEM(fclose)(stream));
}
HAFT_POSIX_EXPORT int fclose(FILE *stream) {
    int descriptor = number_of(stream);
    if (hafti_posix_may_be_simulated(descriptor)) /* streams.c */
        return SYSTEM(fclose)(stream);
    return hafti_posix_close_by(descriptor, call_fclose, stream);
}

typedef struct reopening {
    const char *path, *mode;
    FILE *stream, *opened;
} reopening_t;

static int call_freopen(void *argument) {
    reopening_t *call = argument;
    call->opened = SYSTEM(freopen)(call->path, call->mode, call->stream);
    return call->opened != NULL ? 0 : -hafti_posix_error();
}
HAFT_POSIX_EXPORT FILE *freopen(const char *restrict path, const char *restrict mode,
                                FILE *restrict stream) {
    int descriptor = number_of(stream);
    bool is_simulated = hafti_posix_may_be_simulated(descriptor);
    if (path != NULL && hafti_posix_path_system(AT_FDCWD, path) != hafti_posix_system())
        is_simulated = true;
    if (is_simulated) { /* A FILE stays what fopen has made it. */
        hafti_posix_set_error(EOPNOTSUPP);
        return NULL;
    }
    if (descriptor < 0 || is_the_systems())
        return CLOSED_BY(SYSTEM(freopen)(path, mode, stream));
    reopening_t call = {path, mode, stream, NULL};
    close_by(descriptor, call_freopen, &call, hafti_posix_error());
    return call.opened;
}

static int leave_open(void *unused) {
    (void)unused;
    return 0;
}
void hafti_posix_end_waits(FILE *stream) {
    int descriptor = number_of(stream);
    if (descriptor >= 0 && !is_the_systems())
        close_by(descriptor, leave_open, NULL, hafti_posix_error());
}

/* ---- Other names: of large files, of glibc ---- */

HAFT_POSIX_ALSO(__close, close)
HAFT_POSIX_ALSO(freopen64, freopen)

int __dup2(int from, int to);
HAFT_POSIX_EXPORT int __dup2(int from, int to) {
    return dup2(from, to);
}

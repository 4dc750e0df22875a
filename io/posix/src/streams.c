/* SPDX-License-Identifier: MIT */
/*
 * FILEs of a simulation's files, and of a run that is recorded or replayed. The C library makes
 * them of functions that read and write (fopencookie), and keeps the number for fileno. These
 * functions neither wait nor let another task go on, so no task sees a FILE half changed; a FILE of
 * a simulation whose run has ended, or that another thread uses, fails with EBADF.
 */
#include "internal.h"

#include <string.h>

typedef struct stream {
    int descriptor;
    uint64_t run; /* of the simulation; 0: its functions are the table's */
    FILE *file;
} stream_t;

/* NULL, and errno: the caller is not of the stream's run. */
static const haft_io_calls_t *calls_of(const stream_t *stream) {
    if (hafti_posix_on_task() && haft_io_run_number() == stream->run)
        return haft_io_simulated_calls();
    hafti_posix_set_error(EBADF);
    return NULL;
}

static ssize_t read_stream(void *cookie, char *buffer, size_t size) {
    const stream_t *stream = cookie;
    if (stream->run == 0)
        return SYSTEM(read)(stream->descriptor, buffer, size);
    const haft_io_calls_t *calls = calls_of(stream);
    if (calls == NULL)
        return -1;
    ssize_t done = calls->readv(stream->descriptor, &(struct iovec){buffer, size}, 1, -1);
    return hafti_posix_result(done);
}

/* Returns how much has been written, or -1, with errno. */
static ssize_t write_some(const stream_t *stream, const char *buffer, size_t size) {
    if (stream->run == 0)
        return SYSTEM(write)(stream->descriptor, buffer, size);
    const haft_io_calls_t *calls = calls_of(stream);
    struct iovec part = {(void *)(uintptr_t)buffer, size};
    return calls != NULL
               ? (ssize_t)hafti_posix_result(calls->writev(stream->descriptor, &part, 1, -1))
               : -1;
}

/* Less than all is an error, for the C library. It does not count what a function has written, so
   it has to look up the file's position anew. */
static ssize_t write_stream(void *cookie, const char *buffer, size_t size) {
    const stream_t *stream = cookie;
    size_t done = 0;
    while (done < size) {
        ssize_t more = write_some(stream, buffer + done, size - done);
        if (more <= 0)
            break;
        done += (size_t)more;
    }
    stream->file->_offset = -1;
    return (ssize_t)done;
}

static int seek_stream(void *cookie, off64_t *offset, int whence) {
    const stream_t *stream = cookie;
    const haft_io_calls_t *calls = stream->run != 0 ? calls_of(stream) : NULL;
    if (calls == NULL && stream->run != 0)
        return -1;
    int64_t position = calls != NULL
                           ? hafti_posix_result(calls->lseek(stream->descriptor, *offset, whence))
                           : SYSTEM(lseek)(stream->descriptor, *offset, whence);
    if (position < 0)
        return -1;
    *offset = position;
    return 0;
}

static int close_stream(void *cookie) {
    const stream_t stream = *(stream_t *)cookie;
    free(cookie);
    if (stream.run == 0) /* fclose has ended the waits on the descriptor */
        return SYSTEM(close)(stream.descriptor);
    return calls_of(&stream) != NULL ? close(stream.descriptor) : -1;
}

/* For fopencookie, which does not know all modes of fopen. */
static const char *mode_of(int flags) {
    bool appends = (flags & O_APPEND) != 0;
    switch (flags & O_ACCMODE) {
    case O_RDONLY:
        return "r";
    case O_WRONLY:
        return appends ? "a" : "w";
    default:
        return appends ? "a+" : "r+";
    }
}

/* The flags are those of open(2). NULL: no memory. */
static FILE *make_stream(int descriptor, int flags) {
    static const cookie_io_functions_t functions = {read_stream, write_stream, seek_stream,
                                                    close_stream};
    stream_t *stream = malloc(sizeof *stream);
    if (stream == NULL)
        return NULL;
    bool is_simulated = hafti_posix_may_be_simulated(descriptor);
    *stream = (stream_t){descriptor, is_simulated ? haft_io_run_number() : 0, NULL};
    FILE *file = fopencookie(stream, mode_of(flags), functions);
    if (file == NULL) {
        free(stream);
        return NULL;
    }
    stream->file = file;
    file->_fileno = descriptor;
    return file;
}

int hafti_posix_flags_of(const char *mode) {
    static const int first[] = {O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC,
                                O_WRONLY | O_CREAT | O_APPEND};
    const char *found = strchr("rwa", mode[0]);
    if (mode[0] == '\0' || found == NULL || strchr(mode, ',') != NULL)
        return -1;
    int flags = first[found - "rwa"];
    if (strchr(mode, '+') != NULL)
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    return flags | (strchr(mode, 'x') != NULL ? O_EXCL : 0) |
           (strchr(mode, 'e') != NULL ? O_CLOEXEC : 0);
}

/* Moves to the end of a file that is only appended to, so that ftell returns its size. */
static void go_to_end(int descriptor, int flags) {
    if ((flags & (O_APPEND | O_ACCMODE)) == (O_APPEND | O_WRONLY))
        SYSTEM_OF(descriptor, lseek)(descriptor, 0, SEEK_END);
}

FILE *hafti_posix_opened_stream(int descriptor, int flags) {
    go_to_end(descriptor, flags);
    return make_stream(descriptor, flags);
}

HAFT_POSIX_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode) {
    const hafti_posix_system_t *system = hafti_posix_opening_system(AT_FDCWD, path);
    if (system == hafti_posix_system())
        return system->fopen(path, mode);
    int flags = hafti_posix_flags_of(mode);
    if (flags < 0) {
        hafti_posix_set_error(EINVAL);
        return NULL;
    }
    int descriptor = system->openat(AT_FDCWD, path, flags, 0666);
    FILE *file = descriptor >= 0 ? hafti_posix_opened_stream(descriptor, flags) : NULL;
    if (file == NULL && descriptor >= 0)
        close(descriptor);
    return file;
}

/* Whether the descriptor is of a file; otherwise errno. */
static bool is_of_file(int descriptor) {
    struct stat status;
    if (SYSTEM_OF(descriptor, fstat)(descriptor, &status) != 0)
        return false;
    if (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode))
        return true;
    hafti_posix_set_error(EBADF);
    return false;
}

FILE *hafti_posix_stream_of(int descriptor, int flags) {
    __typeof__(&fcntl) control = SYSTEM_OF(descriptor, fcntl);
    int before = control(descriptor, F_GETFL), access = before & O_ACCMODE;
    if (before < 0)
        return NULL;
    if (flags < 0 || (access != O_RDWR && access != (flags & O_ACCMODE))) {
        hafti_posix_set_error(EINVAL);
        return NULL;
    }
    if ((flags & O_APPEND) != 0 && (before & O_APPEND) == 0) { /* or it stays where it is */
        control(descriptor, F_SETFL, before | O_APPEND);
        go_to_end(descriptor, flags);
    }
    return make_stream(descriptor, flags);
}

HAFT_POSIX_EXPORT FILE *fdopen(int descriptor, const char *mode) {
    if (!hafti_posix_may_be_simulated(descriptor))
        return SYSTEM(fdopen)(descriptor, mode);
    return is_of_file(descriptor) ? hafti_posix_stream_of(descriptor, hafti_posix_flags_of(mode))
                                  : NULL;
}

HAFT_POSIX_ALSO(fopen64, fopen)

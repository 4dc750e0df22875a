/* SPDX-License-Identifier: MIT */
/*
 * Runs that are recorded or replayed (libhaft-io, tape/): the answers of the system to this
 * library, and so to code that was written without tapes in mind. When the first tape of the
 * process begins, functions of the table (system.c) are replaced by those here: each makes the call
 * and keeps what it answers, or answers from the tape. Before that no call passes through this
 * file.
 */
#include "taped.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <string.h>
#include <unwind.h>

static hafti_posix_system_t real;

static int64_t opened(int64_t descriptor) {
    haft_io_tape_opened((int)descriptor);
    return descriptor;
}

/* ---- A function ---- */

#define OUT(...)                                                                                   \
    (hafti_posix_out_t[HAFTI_POSIX_MOST_OUTS]) {                                                   \
        __VA_ARGS__                                                                                \
    }
#define TAPED_WITH(name, type, parameters, arguments, error, descriptor, given, ...)               \
    static type taped_##name parameters {                                                          \
        enum haft_io_tape_use use = haft_io_tape_use();                                            \
        if (use == HAFT_IO_TAPE_NONE)                                                              \
            return real.name arguments;                                                            \
        const hafti_posix_out_t outs[HAFTI_POSIX_MOST_OUTS] = {__VA_ARGS__};                       \
        if (use == HAFT_IO_TAPE_ANSWERS)                                                           \
            return (type)given(                                                                    \
                hafti_posix_tape_answer(#name, descriptor, error, outs, HAFTI_POSIX_MOST_OUTS));   \
        return (type)hafti_posix_tape_keep(#name, descriptor, (int64_t)real.name arguments, error, \
                                           outs, HAFTI_POSIX_MOST_OUTS);                           \
    }
#define AS_IT_IS(result) (result)
#define TAPED(name, type, parameters, arguments, descriptor, ...)                                  \
    TAPED_WITH(name, type, parameters, arguments, true, descriptor, AS_IT_IS, __VA_ARGS__)
/* It returns a descriptor. */
#define TAPED_NEW(name, parameters, arguments, descriptor, ...)                                    \
    TAPED_WITH(name, int, parameters, arguments, true, descriptor, opened, __VA_ARGS__)
/* It returns an error instead of setting errno. */
#define TAPED_PLAIN(name, type, parameters, arguments, descriptor, ...)                            \
    TAPED_WITH(name, type, parameters, arguments, false, descriptor, AS_IT_IS, __VA_ARGS__)
#define NONE_AT_ALL                                                                                \
    { HAFTI_POSIX_NOTHING, NULL, 0, NULL, 0 }
#define BYTES_OF(bytes, size)                                                                      \
    { HAFTI_POSIX_AS_MANY, bytes, size, NULL, 0 }
#define ALL_OF(bytes, size)                                                                        \
    { HAFTI_POSIX_WHOLE, bytes, size, NULL, 0 }
#define ADDRESS_OF(address, place)                                                                 \
    { HAFTI_POSIX_SIZED, address, 0, place, (place) != NULL ? *(place) : 0 }
#define MESSAGE_OF(message)                                                                        \
    { HAFTI_POSIX_MESSAGE, message, 0, NULL, (message) != NULL ? (message)->msg_namelen : 0 }
#define PARTS_OF(parts, count)                                                                     \
    { HAFTI_POSIX_PARTS, (void *)(uintptr_t)(parts), (size_t)(count), NULL, 0 }

/* ---- Reading and writing ---- */

TAPED(read, ssize_t, (int d, void *b, size_t n), (d, b, n), d, BYTES_OF(b, n), NONE_AT_ALL)
TAPED(pread, ssize_t, (int d, void *b, size_t n, off_t at), (d, b, n, at), d, BYTES_OF(b, n),
      NONE_AT_ALL)
TAPED(readv, ssize_t, (int d, const struct iovec *p, int n), (d, p, n), d, PARTS_OF(p, n),
      NONE_AT_ALL)
TAPED(preadv, ssize_t, (int d, const struct iovec *p, int n, off_t at), (d, p, n, at), d,
      PARTS_OF(p, n), NONE_AT_ALL)
TAPED(preadv2, ssize_t, (int d, const struct iovec *p, int n, off_t at, int f), (d, p, n, at, f), d,
      PARTS_OF(p, n), NONE_AT_ALL)

#define WRITES(name, parameters, arguments, d, parts, count)                                       \
    static ssize_t taped_##name parameters {                                                       \
        enum haft_io_tape_use use = haft_io_tape_use();                                            \
        if (use == HAFT_IO_TAPE_NONE)                                                              \
            return real.name arguments;                                                            \
        if (use == HAFT_IO_TAPE_ANSWERS)                                                           \
            return (ssize_t)hafti_posix_tape_show(                                                 \
                d, hafti_posix_tape_answer(#name, d, true, NULL, 0), parts, (size_t)(count));      \
        return (ssize_t)hafti_posix_tape_keep(#name, d, real.name arguments, true, NULL, 0);       \
    }
#define PART(bytes, size) (&(struct iovec){(void *)(uintptr_t)(bytes), size})
WRITES(write, (int d, const void *b, size_t n), (d, b, n), d, PART(b, n), 1)
WRITES(pwrite, (int d, const void *b, size_t n, off_t at), (d, b, n, at), d, PART(b, n), 1)
WRITES(writev, (int d, const struct iovec *p, int n), (d, p, n), d, p, n)
WRITES(pwritev, (int d, const struct iovec *p, int n, off_t at), (d, p, n, at), d, p, n)
WRITES(pwritev2, (int d, const struct iovec *p, int n, off_t at, int f), (d, p, n, at, f), d, p, n)

/* ---- Sockets ---- */

TAPED(recv, ssize_t, (int d, void *b, size_t n, int f), (d, b, n, f), d, BYTES_OF(b, n),
      NONE_AT_ALL)
TAPED(recvfrom, ssize_t,
      (int d, void *restrict b, size_t n, int f, __SOCKADDR_ARG a, socklen_t *restrict s),
      (d, b, n, f, a, s), d, BYTES_OF(b, n), ADDRESS_OF(a.__sockaddr__, s))
TAPED(recvmsg, ssize_t, (int d, struct msghdr *m, int f), (d, m, f), d, MESSAGE_OF(m), NONE_AT_ALL)
TAPED(send, ssize_t, (int d, const void *b, size_t n, int f), (d, b, n, f), d, NONE_AT_ALL,
      NONE_AT_ALL)
TAPED(sendto, ssize_t, (int d, const void *b, size_t n, int f, __CONST_SOCKADDR_ARG a, socklen_t s),
      (d, b, n, f, a, s), d, NONE_AT_ALL, NONE_AT_ALL)
TAPED(sendmsg, ssize_t, (int d, const struct msghdr *m, int f), (d, m, f), d, NONE_AT_ALL,
      NONE_AT_ALL)
TAPED_NEW(socket, (int domain, int type, int protocol), (domain, type, protocol), -1, NONE_AT_ALL,
          NONE_AT_ALL)
TAPED(bind, int, (int d, __CONST_SOCKADDR_ARG a, socklen_t s), (d, a, s), d, NONE_AT_ALL,
      NONE_AT_ALL)
TAPED(listen, int, (int d, int backlog), (d, backlog), d, NONE_AT_ALL, NONE_AT_ALL)
TAPED_NEW(accept, (int d, __SOCKADDR_ARG a, socklen_t *restrict s), (d, a, s), d,
          ADDRESS_OF(a.__sockaddr__, s), NONE_AT_ALL)
TAPED_NEW(accept4, (int d, __SOCKADDR_ARG a, socklen_t *restrict s, int f), (d, a, s, f), d,
          ADDRESS_OF(a.__sockaddr__, s), NONE_AT_ALL)
TAPED(connect, int, (int d, __CONST_SOCKADDR_ARG a, socklen_t s), (d, a, s), d, NONE_AT_ALL,
      NONE_AT_ALL)
TAPED(shutdown, int, (int d, int how), (d, how), d, NONE_AT_ALL, NONE_AT_ALL)
TAPED(getsockname, int, (int d, __SOCKADDR_ARG a, socklen_t *restrict s), (d, a, s), d,
      ADDRESS_OF(a.__sockaddr__, s), NONE_AT_ALL)
TAPED(getpeername, int, (int d, __SOCKADDR_ARG a, socklen_t *restrict s), (d, a, s), d,
      ADDRESS_OF(a.__sockaddr__, s), NONE_AT_ALL)
TAPED(getsockopt, int, (int d, int level, int option, void *restrict v, socklen_t *restrict s),
      (d, level, option, v, s), d, ADDRESS_OF(v, s), NONE_AT_ALL)
TAPED(setsockopt, int, (int d, int level, int option, const void *v, socklen_t s),
      (d, level, option, v, s), d, NONE_AT_ALL, NONE_AT_ALL)

static int taped_socketpair(int domain, int type, int protocol, int ends[2]) {
    enum haft_io_tape_use use = haft_io_tape_use();
    const hafti_posix_out_t out = ALL_OF(ends, 2 * sizeof *ends);
    if (use == HAFT_IO_TAPE_NONE)
        return real.socketpair(domain, type, protocol, ends);
    if (use == HAFT_IO_TAPE_KEEPS)
        return (int)hafti_posix_tape_keep(
            "socketpair", -1, real.socketpair(domain, type, protocol, ends), true, &out, 1);
    int code = (int)hafti_posix_tape_answer("socketpair", -1, true, &out, 1);
    for (int i = 0; code == 0 && i < 2; i++)
        opened(ends[i]);
    return code;
}

/* ---- Any descriptor ---- */

TAPED(poll, int, (struct pollfd * entries, nfds_t n, int limit), (entries, n, limit), -1,
      ALL_OF(entries, n * sizeof *entries), NONE_AT_ALL)
TAPED(fsync, int, (int d), (d), d, NONE_AT_ALL, NONE_AT_ALL)
TAPED(fdatasync, int, (int d), (d), d, NONE_AT_ALL, NONE_AT_ALL)
TAPED_NEW(dup, (int d), (d), d, NONE_AT_ALL, NONE_AT_ALL)
TAPED_NEW(dup2, (int d, int to), (d, to), d, NONE_AT_ALL, NONE_AT_ALL)
TAPED_NEW(dup3, (int d, int to, int f), (d, to, f), d, NONE_AT_ALL, NONE_AT_ALL)

static int taped_close(int d) {
    enum haft_io_tape_use use = haft_io_tape_use();
    if (use == HAFT_IO_TAPE_NONE)
        return real.close(d);
    if (use == HAFT_IO_TAPE_KEEPS)
        return (int)hafti_posix_tape_keep("close", d, real.close(d), true, NULL, 0);
    int code = (int)hafti_posix_tape_answer("close", d, true, NULL, 0);
    haft_io_tape_closed(d);
    return code;
}

#define ITS_ARGUMENT(after)                                                                        \
    va_list arguments;                                                                             \
    va_start(arguments, after);                                                                    \
    void *argument = va_arg(arguments, void *);                                                    \
    va_end(arguments)

static int taped_fcntl(int d, int command, ...) {
    ITS_ARGUMENT(command);
    enum haft_io_tape_use use = haft_io_tape_use();
    if (use == HAFT_IO_TAPE_NONE)
        return real.fcntl(d, command, argument);
    bool gets = command == F_GETLK || command == F_OFD_GETLK;
    const hafti_posix_out_t out = {gets ? HAFTI_POSIX_WHOLE : HAFTI_POSIX_NOTHING, argument,
                                   sizeof(struct flock), NULL, 0};
    if (use == HAFT_IO_TAPE_KEEPS)
        return (int)hafti_posix_tape_keep("fcntl", d, real.fcntl(d, command, argument), true, &out,
                                          1);
    int result = (int)hafti_posix_tape_answer("fcntl", d, true, &out, 1);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        opened(result);
    return result;
}

/* How many bytes the request writes, of those that programs make. */
static size_t size_of_request(unsigned long request) {
    switch (request) {
    case FIONREAD:
    case TIOCOUTQ:
        return sizeof(int);
    case TIOCGWINSZ:
        return sizeof(struct winsize);
    default:
        return 0;
    }
}
static int taped_ioctl(int d, unsigned long request, ...) {
    ITS_ARGUMENT(request);
    enum haft_io_tape_use use = haft_io_tape_use();
    if (use == HAFT_IO_TAPE_NONE)
        return real.ioctl(d, request, argument);
    size_t size = size_of_request(request);
    const hafti_posix_out_t out = {size != 0 ? HAFTI_POSIX_WHOLE : HAFTI_POSIX_NOTHING, argument,
                                   size, NULL, 0};
    return use == HAFT_IO_TAPE_KEEPS
               ? (int)hafti_posix_tape_keep("ioctl", d, real.ioctl(d, request, argument), true,
                                            &out, 1)
               : (int)hafti_posix_tape_answer("ioctl", d, true, &out, 1);
}

/* ---- Files ---- */

static int taped_openat(int directory, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    enum haft_io_tape_use use = haft_io_tape_use();
    if (use == HAFT_IO_TAPE_NONE)
        return real.openat(directory, path, flags, mode);
    return use == HAFT_IO_TAPE_KEEPS
               ? (int)hafti_posix_tape_keep("openat", -1, real.openat(directory, path, flags, mode),
                                            true, NULL, 0)
               : (int)opened(hafti_posix_tape_answer("openat", -1, true, NULL, 0));
}
static int taped_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    enum haft_io_tape_use use = haft_io_tape_use();
    if (use == HAFT_IO_TAPE_NONE)
        return real.open(path, flags, mode);
    return use == HAFT_IO_TAPE_KEEPS
               ? (int)hafti_posix_tape_keep("open", -1, real.open(path, flags, mode), true, NULL, 0)
               : (int)opened(hafti_posix_tape_answer("open", -1, true, NULL, 0));
}

#define NO_OUTS NONE_AT_ALL, NONE_AT_ALL
TAPED(lseek, off_t, (int d, off_t at, int whence), (d, at, whence), d, NO_OUTS)
TAPED(ftruncate, int, (int d, off_t size), (d, size), d, NO_OUTS)
TAPED(truncate, int, (const char *path, off_t size), (path, size), -1, NO_OUTS)
TAPED(fallocate, int, (int d, int mode, off_t at, off_t size), (d, mode, at, size), d, NO_OUTS)
TAPED_PLAIN(posix_fallocate, int, (int d, off_t at, off_t size), (d, at, size), d, NO_OUTS)
TAPED_PLAIN(posix_fadvise, int, (int d, off_t at, off_t size, int advice), (d, at, size, advice), d,
            NO_OUTS)
TAPED(flock, int, (int d, int command), (d, command), d, NO_OUTS)
TAPED(lockf, int, (int d, int command, off_t size), (d, command, size), d, NO_OUTS)
TAPED(statx, int,
      (int d, const char *restrict path, int flags, unsigned mask, struct statx *restrict s),
      (d, path, flags, mask, s), -1, ALL_OF(s, sizeof *s), NONE_AT_ALL)
TAPED(fstat, int, (int d, struct stat *s), (d, s), d, ALL_OF(s, sizeof *s), NONE_AT_ALL)
TAPED(fstatat, int, (int d, const char *restrict path, struct stat *restrict s, int flags),
      (d, path, s, flags), -1, ALL_OF(s, sizeof *s), NONE_AT_ALL)
TAPED(faccessat, int, (int d, const char *path, int mode, int flags), (d, path, mode, flags), -1,
      NO_OUTS)
TAPED(euidaccess, int, (const char *path, int mode), (path, mode), -1, NO_OUTS)
TAPED(fchmod, int, (int d, mode_t mode), (d, mode), d, NO_OUTS)
TAPED(fchmodat, int, (int d, const char *path, mode_t mode, int flags), (d, path, mode, flags), -1,
      NO_OUTS)
TAPED(fchown, int, (int d, uid_t user, gid_t group), (d, user, group), d, NO_OUTS)
TAPED(fchownat, int, (int d, const char *path, uid_t user, gid_t group, int flags),
      (d, path, user, group, flags), -1, NO_OUTS)
TAPED(utimensat, int, (int d, const char *path, const struct timespec times[2], int flags),
      (d, path, times, flags), -1, NO_OUTS)
TAPED(futimens, int, (int d, const struct timespec times[2]), (d, times), d, NO_OUTS)
TAPED(mkdirat, int, (int d, const char *path, mode_t mode), (d, path, mode), -1, NO_OUTS)
TAPED(unlinkat, int, (int d, const char *path, int flags), (d, path, flags), -1, NO_OUTS)
TAPED(remove, int, (const char *path), (path), -1, NO_OUTS)
TAPED(renameat2, int, (int d, const char *from, int e, const char *to, unsigned flags),
      (d, from, e, to, flags), -1, NO_OUTS)
TAPED(linkat, int, (int d, const char *from, int e, const char *to, int flags),
      (d, from, e, to, flags), -1, NO_OUTS)
TAPED(symlinkat, int, (const char *from, int d, const char *to), (from, d, to), -1, NO_OUTS)
TAPED(readlinkat, ssize_t, (int d, const char *restrict path, char *restrict b, size_t n),
      (d, path, b, n), -1, BYTES_OF(b, n), NONE_AT_ALL)
TAPED(chdir, int, (const char *path), (path), -1, NO_OUTS)
TAPED(fchdir, int, (int d), (d), d, NO_OUTS)

/* Returns a text of the tape, in memory of malloc if the caller gave none. */
static char *give_text(const char *name, char *room, size_t size) {
    const unsigned char *bytes;
    size_t length;
    int64_t result = haft_io_tape_ask(name, -1, &bytes, &length);
    if (result < 0) {
        hafti_posix_set_error((int)-result);
        return NULL;
    }
    if (room == NULL)
        room = malloc(size > length ? size : length);
    if (room != NULL)
        memcpy(room, bytes, length);
    return room;
}
static char *keep_text(const char *name, char *text) {
    haft_io_tape_keep(name, -1, text != NULL ? 0 : -hafti_posix_error(),
                      &(struct iovec){text, text != NULL ? strlen(text) + 1 : 0}, 1);
    return text;
}
static char *taped_realpath(const char *restrict path, char *restrict room) {
    enum haft_io_tape_use use = haft_io_tape_use();
    return use == HAFT_IO_TAPE_NONE    ? real.realpath(path, room)
           : use == HAFT_IO_TAPE_KEEPS ? keep_text("realpath", real.realpath(path, room))
                                       : give_text("realpath", room, PATH_MAX);
}
static char *taped_getcwd(char *room, size_t size) {
    enum haft_io_tape_use use = haft_io_tape_use();
    return use == HAFT_IO_TAPE_NONE    ? real.getcwd(room, size)
           : use == HAFT_IO_TAPE_KEEPS ? keep_text("getcwd", real.getcwd(room, size))
                                       : give_text("getcwd", room, size);
}

TAPED(sendfile, ssize_t, (int to, int from, off_t *at, size_t n), (to, from, at, n), to,
      ALL_OF(at, sizeof *at), NONE_AT_ALL)
TAPED(copy_file_range, ssize_t,
      (int from, off64_t *at, int to, off64_t *there, size_t n, unsigned flags),
      (from, at, to, there, n, flags), from, ALL_OF(at, sizeof *at), ALL_OF(there, sizeof *there))
TAPED(splice, ssize_t, (int from, off64_t *at, int to, off64_t *there, size_t n, unsigned flags),
      (from, at, to, there, n, flags), from, ALL_OF(at, sizeof *at), ALL_OF(there, sizeof *there))
TAPED(tee, ssize_t, (int from, int to, size_t n, unsigned flags), (from, to, n, flags), from,
      NO_OUTS)

/* ---- Streams of files: such as a simulation has, which read and write by the table ---- */

static FILE *taped_fopen(const char *restrict path, const char *restrict mode) {
    int flags = hafti_posix_flags_of(mode);
    if (haft_io_tape_use() == HAFT_IO_TAPE_NONE || flags < 0)
        return real.fopen(path, mode);
    int descriptor = taped_open(path, flags, 0666);
    FILE *file = descriptor >= 0 ? hafti_posix_opened_stream(descriptor, flags) : NULL;
    if (file == NULL && descriptor >= 0)
        taped_close(descriptor);
    return file;
}
static FILE *taped_fdopen(int descriptor, const char *mode) {
    int flags = hafti_posix_flags_of(mode);
    return haft_io_tape_use() == HAFT_IO_TAPE_NONE || flags < 0
               ? real.fdopen(descriptor, mode)
               : hafti_posix_stream_of(descriptor, flags);
}

/* ---- Streams of directories: each name is an answer ---- */

/* The DIR of a replay. Like the C library's, it begins with a descriptor. */
typedef struct directory {
    int magic, descriptor;
    struct dirent entry;
} directory_t;
enum { OF_TAPE = 0x48414654 };
static directory_t *replayed(DIR *stream) {
    directory_t *directory = (directory_t *)(void *)stream;
    return directory->magic == OF_TAPE ? directory : NULL;
}

static DIR *give_directory(const char *name) {
    int descriptor = (int)hafti_posix_tape_answer(name, -1, true, NULL, 0);
    directory_t *directory = descriptor >= 0 ? malloc(sizeof *directory) : NULL;
    if (directory == NULL)
        return NULL;
    *directory = (directory_t){.magic = OF_TAPE, .descriptor = descriptor};
    opened(descriptor);
    return (DIR *)(void *)directory;
}
static DIR *keep_directory(const char *name, DIR *stream) {
    hafti_posix_tape_keep(name, -1, stream != NULL ? real.dirfd(stream) : -1, true, NULL, 0);
    return stream;
}
static DIR *taped_opendir(const char *path) {
    enum haft_io_tape_use use = haft_io_tape_use();
    return use == HAFT_IO_TAPE_NONE    ? real.opendir(path)
           : use == HAFT_IO_TAPE_KEEPS ? keep_directory("opendir", real.opendir(path))
                                       : give_directory("opendir");
}
static DIR *taped_fdopendir(int descriptor) {
    enum haft_io_tape_use use = haft_io_tape_use();
    return use == HAFT_IO_TAPE_NONE    ? real.fdopendir(descriptor)
           : use == HAFT_IO_TAPE_KEEPS ? keep_directory("fdopendir", real.fdopendir(descriptor))
                                       : give_directory("fdopendir");
}

/* The result: 1, 0 at the end, or an error. */
static struct dirent *keep_name(DIR *stream) {
    int before = hafti_posix_error();
    hafti_posix_set_error(0);
    struct dirent *entry = real.readdir(stream);
    int error = hafti_posix_error();
    int64_t result = entry != NULL ? 1 : -error;
    const hafti_posix_out_t out = ALL_OF(entry, entry != NULL ? entry->d_reclen : 0);
    hafti_posix_tape_keep("readdir", real.dirfd(stream), result, false, &out, 1);
    hafti_posix_set_error(error != 0 ? error : before);
    return entry;
}
static struct dirent *give_name(directory_t *directory) {
    const hafti_posix_out_t out = ALL_OF(&directory->entry, sizeof directory->entry);
    int64_t result = hafti_posix_tape_answer("readdir", directory->descriptor, false, &out, 1);
    if (result < 0)
        hafti_posix_set_error((int)-result);
    return result > 0 ? &directory->entry : NULL;
}
static struct dirent *taped_readdir(DIR *stream) {
    directory_t *directory = replayed(stream);
    return directory != NULL                          ? give_name(directory)
           : haft_io_tape_use() != HAFT_IO_TAPE_KEEPS ? real.readdir(stream)
                                                      : keep_name(stream);
}
static int taped_closedir(DIR *stream) {
    directory_t *directory = stream != NULL ? replayed(stream) : NULL;
    if (directory == NULL) {
        bool keeps = stream != NULL && haft_io_tape_use() == HAFT_IO_TAPE_KEEPS;
        int descriptor = keeps ? real.dirfd(stream) : -1, code = real.closedir(stream);
        return keeps ? (int)hafti_posix_tape_keep("closedir", descriptor, code, true, NULL, 0)
                     : code;
    }
    int descriptor = directory->descriptor,
        code = (int)hafti_posix_tape_answer("closedir", descriptor, true, NULL, 0);
    haft_io_tape_closed(descriptor);
    free(directory);
    return code;
}
static int taped_dirfd(DIR *stream) {
    const directory_t *directory = replayed(stream);
    return directory != NULL ? directory->descriptor : real.dirfd(stream);
}
/* Does nothing in a replay: the names that are read afterwards are on the tape. */
static void taped_rewinddir(DIR *stream) {
    if (replayed(stream) == NULL)
        real.rewinddir(stream);
}
static void taped_seekdir(DIR *stream, long place) {
    if (replayed(stream) == NULL)
        real.seekdir(stream, place);
}
static long taped_telldir(DIR *stream) {
    const directory_t *directory = replayed(stream);
    return directory != NULL
               ? (long)hafti_posix_tape_answer("telldir", directory->descriptor, false, NULL, 0)
           : haft_io_tape_use() == HAFT_IO_TAPE_KEEPS
               ? (long)hafti_posix_tape_keep("telldir", real.dirfd(stream), real.telldir(stream),
                                             false, NULL, 0)
               : real.telldir(stream);
}

/* ---- Time and chance ---- */

/*
 * The allocator of the address sanitizer reads the time at any moment, with its lock held: such a
 * call is not the program's, and is not kept. The program's calls come by the sanitizer's own
 * clock_gettime, which stands before that of this library.
 */
static struct {
    uintptr_t from, size; /* the code of that function; 0: there is none */
} interceptor;

/* A compiler may have divided it: its parts are side by side. */
static void find_interceptor(void) {
    enum { BESIDE = 1024 };
    void *place = dlsym(RTLD_DEFAULT, "clock_gettime");
    Dl_info there, here;
    const ElfW(Sym) *symbol = NULL;
    if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL &&
        dladdr1(place, &there, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
        dladdr(&interceptor, &here) != 0 && there.dli_fbase != here.dli_fbase) {
        interceptor.from = (uintptr_t)place - BESIDE;
        interceptor.size = symbol->st_size + 2 * BESIDE;
    }
}

static _Unwind_Reason_Code find_frame(struct _Unwind_Context *context, void *left) {
    if (_Unwind_GetIP(context) - interceptor.from < interceptor.size)
        return _URC_END_OF_STACK;
    return --*(int *)left > 0 ? _URC_NO_REASON : _URC_END_OF_STACK;
}
/* (backtrace(3) is intercepted, too.) */
static __attribute__((noinline)) bool is_asked_by_sanitizer(void) {
    enum { FRAMES = 5 }; /* of this library, and one more */
    int left = FRAMES;
    _Unwind_Backtrace(find_frame, &left);
    return left == 0;
}

static int taped_clock_gettime(clockid_t clock, struct timespec *time) {
    enum haft_io_tape_use use = haft_io_tape_use();
    if (use == HAFT_IO_TAPE_NONE || (interceptor.size != 0 && is_asked_by_sanitizer()))
        return real.clock_gettime(clock, time);
    const hafti_posix_out_t out = ALL_OF(time, sizeof *time);
    return use == HAFT_IO_TAPE_KEEPS
               ? (int)hafti_posix_tape_keep("clock_gettime", -1, real.clock_gettime(clock, time),
                                            true, &out, 1)
               : (int)hafti_posix_tape_answer("clock_gettime", -1, true, &out, 1);
}
TAPED(gettimeofday, int, (struct timeval *restrict t, void *restrict zone), (t, zone), -1,
      ALL_OF(t, sizeof *t), NONE_AT_ALL)
TAPED(time, time_t, (time_t * place), (place), -1, ALL_OF(place, sizeof *place), NONE_AT_ALL)
TAPED(timespec_get, int, (struct timespec * t, int base), (t, base), -1, ALL_OF(t, sizeof *t),
      NONE_AT_ALL)
TAPED(getrandom, ssize_t, (void *b, size_t n, unsigned flags), (b, n, flags), -1, BYTES_OF(b, n),
      NONE_AT_ALL)
TAPED(getentropy, int, (void *b, size_t n), (b, n), -1, ALL_OF(b, n), NONE_AT_ALL)
#if __GLIBC_PREREQ(2, 36)
TAPED_PLAIN(arc4random, uint32_t, (void), (), -1, NO_OUTS)
TAPED_PLAIN(arc4random_uniform, uint32_t, (uint32_t bound), (bound), -1, NO_OUTS)
static void taped_arc4random_buf(void *bytes, size_t size) {
    enum haft_io_tape_use use = haft_io_tape_use();
    const hafti_posix_out_t out = ALL_OF(bytes, size);
    if (use != HAFT_IO_TAPE_ANSWERS)
        real.arc4random_buf(bytes, size);
    if (use == HAFT_IO_TAPE_ANSWERS)
        hafti_posix_tape_answer("arc4random_buf", -1, false, &out, 1);
    else if (use == HAFT_IO_TAPE_KEEPS)
        hafti_posix_tape_keep("arc4random_buf", -1, 0, false, &out, 1);
}
#    define OF_NEW_CHANCE(X) X(arc4random) X(arc4random_uniform) X(arc4random_buf)
#else
#    define OF_NEW_CHANCE(X)
#endif

/* ---- Names ---- */

typedef struct address_head {
    int32_t flags, family, type, protocol;
    uint32_t size;
} address_head_t;

static void keep_addresses(int code, const struct addrinfo *first) {
    size_t count = 0;
    for (const struct addrinfo *one = first; one != NULL; one = one->ai_next)
        count++;
    address_head_t *heads = calloc(count + 1, sizeof *heads);
    struct iovec *list = calloc(2 * count + 1, sizeof *list);
    size_t used = 0, at = 0;
    for (const struct addrinfo *one = first; one != NULL && heads != NULL && list != NULL;
         one = one->ai_next, at++) {
        heads[at] = (address_head_t){one->ai_flags, one->ai_family, one->ai_socktype,
                                     one->ai_protocol, one->ai_addrlen};
        list[used++] = (struct iovec){&heads[at], sizeof heads[at]};
        list[used++] = (struct iovec){one->ai_addr, one->ai_addrlen};
    }
    char *name = first != NULL ? first->ai_canonname : NULL;
    if (name != NULL && list != NULL)
        list[used++] = (struct iovec){name, strlen(name) + 1};
    haft_io_tape_keep("getaddrinfo", -1, code, list, used);
    free(heads);
    free(list);
}

/* Makes them as glibc does: each address lies behind its struct. */
static int give_addresses(struct addrinfo **result) {
    const unsigned char *at;
    size_t left;
    int code = (int)haft_io_tape_ask("getaddrinfo", -1, &at, &left);
    struct addrinfo *first = NULL, **last = &first;
    address_head_t head;
    while (code == 0 && left >= sizeof head) {
        memcpy(&head, at, sizeof head);
        if (head.size > left - sizeof head ||
            (*last = calloc(1, sizeof **last + head.size)) == NULL)
            break;
        **last = (struct addrinfo){.ai_flags = head.flags,
                                   .ai_family = head.family,
                                   .ai_socktype = head.type,
                                   .ai_protocol = head.protocol,
                                   .ai_addrlen = head.size,
                                   .ai_addr = (struct sockaddr *)(void *)(*last + 1)};
        memcpy(*last + 1, at + sizeof head, head.size);
        at += sizeof head + head.size;
        left -= sizeof head + head.size;
        last = &(*last)->ai_next;
    }
    if (first != NULL && left != 0 && at[left - 1] == '\0')
        first->ai_canonname = strdup((const char *)at);
    if (code == 0)
        *result = first;
    return code;
}

static int taped_getaddrinfo(const char *restrict name, const char *restrict service,
                             const struct addrinfo *restrict hints,
                             struct addrinfo **restrict result) {
    enum haft_io_tape_use use = haft_io_tape_use();
    if (use == HAFT_IO_TAPE_ANSWERS)
        return give_addresses(result);
    int code = real.getaddrinfo(name, service, hints, result);
    if (use == HAFT_IO_TAPE_KEEPS)
        keep_addresses(code, code == 0 ? *result : NULL);
    return code;
}
TAPED_PLAIN(getnameinfo, int,
            (const struct sockaddr *restrict a, socklen_t s, char *restrict host,
             socklen_t host_size, char *restrict service, socklen_t service_size, int flags),
            (a, s, host, host_size, service, service_size, flags), -1,
            {host != NULL ? HAFTI_POSIX_WHOLE : HAFTI_POSIX_NOTHING, host, host_size, NULL, 0},
            {service != NULL ? HAFTI_POSIX_WHOLE : HAFTI_POSIX_NOTHING, service, service_size, NULL,
             0})

/* ---- The table ---- */

/* clang-format off */
#define REPLACED(X) \
    X(read) X(pread) X(readv) X(preadv) X(preadv2) X(write) X(pwrite) X(writev) X(pwritev) \
    X(pwritev2) X(recv) X(recvfrom) X(recvmsg) X(send) X(sendto) X(sendmsg) X(socket) X(bind) \
    X(listen) X(accept) X(accept4) X(connect) X(shutdown) X(getsockname) X(getpeername) \
    X(getsockopt) X(setsockopt) X(socketpair) X(poll) X(fsync) X(fdatasync) X(dup) X(dup2) \
    X(dup3) X(close) X(fcntl) X(ioctl) X(openat) X(open) X(lseek) X(ftruncate) X(truncate) \
    X(fallocate) X(posix_fallocate) X(posix_fadvise) X(flock) X(lockf) X(statx) X(fstat) \
    X(fstatat) X(faccessat) X(euidaccess) X(fchmod) X(fchmodat) X(fchown) X(fchownat) \
    X(utimensat) X(futimens) X(mkdirat) X(unlinkat) X(remove) X(renameat2) X(linkat) \
    X(symlinkat) X(readlinkat) X(chdir) X(fchdir) X(realpath) X(getcwd) X(clock_gettime) \
    X(gettimeofday) X(time) X(timespec_get) X(getrandom) X(getentropy) X(getaddrinfo) \
    X(getnameinfo) X(sendfile) X(copy_file_range) X(splice) X(tee) X(fopen) X(fdopen) X(opendir) \
    X(fdopendir) X(readdir) X(closedir) X(dirfd) X(rewinddir) X(seekdir) X(telldir) \
    OF_NEW_CHANCE(X)
/* clang-format on */

static void replace(void) {
    find_interceptor();
    real = *hafti_posix_system();
#define REPLACE(name) haft_posix_functions.name = taped_##name;
    REPLACED(REPLACE)
}

/* Forgets what earlier runs have found out: it is not on the tape. */
static void begins(void) {
    static pthread_once_t is_replaced = PTHREAD_ONCE_INIT;
    pthread_once(&is_replaced, replace);
    hafti_posix_mode_has_changed();
    hafti_posix_count_anew();
}

__attribute__((constructor)) static void await_tapes(void) {
    haft_io_tape_set_beginning(begins);
}

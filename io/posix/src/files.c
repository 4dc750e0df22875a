/* SPDX-License-Identifier: MIT */
/* Opening files, where only FIFOs wait; descriptors of files; and their locks. The kernel does not
   notify when a lock is given back, so it is tried again after pauses that grow. */
#include "internal.h"

#include <stdarg.h>
#include <sys/stat.h>

/* ---- Opening ---- */

typedef struct open_call {
    int directory;
    const char *path;
    int flags;
    mode_t mode;
} open_call_t;

/* Only opening a FIFO for one of its two directions waits. */
static bool opens_fifo(const open_call_t *call) {
    struct stat status;
    return (call->flags & (O_NONBLOCK | O_PATH | O_DIRECTORY)) == 0 &&
           (call->flags & O_ACCMODE) != O_RDWR && hafti_posix_on_task() &&
           SYSTEM(fstatat)(call->directory, call->path, &status, 0) == 0 &&
           S_ISFIFO(status.st_mode);
}

static int open_fifo(const open_call_t *call) {
    bool before = haft_io_return_cancels(true);
    int fifo = haft_io_open_fifo(call->directory, call->path, call->flags, call->mode);
    haft_io_return_cancels(before);
    if (fifo >= 0 && (call->flags & O_CLOEXEC) == 0)
        SYSTEM(fcntl)(fifo, F_SETFD, 0);
    return fifo;
}

static bool needs_mode(int flags) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

#define MODE_AFTER(flags)                                                                          \
    __extension__({                                                                                \
        mode_t mode_ = 0;                                                                          \
        if (needs_mode(flags)) {                                                                   \
            va_list arguments_;                                                                    \
            va_start(arguments_, flags);                                                           \
            mode_ = va_arg(arguments_, mode_t);                                                    \
            va_end(arguments_);                                                                    \
        }                                                                                          \
        mode_;                                                                                     \
    })

static int open_any(int directory, const char *path, int flags, mode_t mode) {
    const hafti_posix_system_t *system = hafti_posix_opening_system(directory, path);
    int before = hafti_posix_error();
    open_call_t call = {directory, path, flags, mode};
    if (system != hafti_posix_system() || !opens_fifo(&call)) {
        hafti_posix_set_error(before);
        return system->openat(directory, path, flags, mode);
    }
    return (int)hafti_posix_answer(open_fifo(&call), before);
}

HAFT_POSIX_EXPORT int openat(int directory, const char *path, int flags, ...) {
    return open_any(directory, path, flags, MODE_AFTER(flags));
}

HAFT_POSIX_EXPORT int open(const char *path, int flags, ...) {
    return open_any(AT_FDCWD, path, flags, MODE_AFTER(flags));
}

HAFT_POSIX_EXPORT int creat(const char *path, mode_t mode) {
    return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* ---- Descriptors ---- */

/* The system that has the descriptor; a simulated one when others have gone on. */
static const hafti_posix_system_t *system_in_turn(int descriptor) {
    if (hafti_posix_may_be_simulated(descriptor)) {
        int before = hafti_posix_error();
        hafti_posix_take_turns(descriptor);
        hafti_posix_set_error(before);
    }
    return hafti_posix_system_of(descriptor);
}

HAFT_POSIX_EXPORT off_t lseek(int descriptor, off_t offset, int whence) {
    return SYSTEM_OF(descriptor, lseek)(descriptor, offset, whence);
}

HAFT_POSIX_EXPORT int ftruncate(int descriptor, off_t size) {
    return system_in_turn(descriptor)->ftruncate(descriptor, size);
}

HAFT_POSIX_EXPORT int fallocate(int descriptor, int mode, off_t offset, off_t size) {
    return system_in_turn(descriptor)->fallocate(descriptor, mode, offset, size);
}

HAFT_POSIX_EXPORT int posix_fallocate(int descriptor, off_t offset, off_t size) {
    return system_in_turn(descriptor)->posix_fallocate(descriptor, offset, size);
}

HAFT_POSIX_EXPORT int posix_fadvise(int descriptor, off_t offset, off_t size, int advice) {
    return SYSTEM_OF(descriptor, posix_fadvise)(descriptor, offset, size, advice);
}

/* ---- Locks ---- */

typedef struct lock_call {
    int descriptor;
    int command;          /* one that does not wait */
    struct flock *record; /* of fcntl */
    off_t size;           /* of lockf */
} lock_call_t;

static ssize_t try_flock(const lock_call_t *call) {
    return HAFT_POSIX_RESULT(SYSTEM_OF(call->descriptor, flock)(call->descriptor, call->command));
}
static ssize_t try_fcntl(const lock_call_t *call) {
    return HAFT_POSIX_RESULT(
        SYSTEM_OF(call->descriptor, fcntl)(call->descriptor, call->command, call->record));
}
static ssize_t try_lockf(const lock_call_t *call) {
    return HAFT_POSIX_RESULT(
        SYSTEM_OF(call->descriptor, lockf)(call->descriptor, call->command, call->size));
}

static int lock(ssize_t (*try_once)(const lock_call_t *), const lock_call_t *call) {
    int before = hafti_posix_error();
    int64_t pause = 0;
    ssize_t done;
    while ((done = try_once(call)) == -EAGAIN || done == -EACCES) {
        int code = hafti_posix_pause(&pause);
        if (code != 0) {
            done = code;
            break;
        }
    }
    return (int)hafti_posix_answer(done, before);
}

HAFT_POSIX_EXPORT int flock(int descriptor, int command) {
    if ((command & (LOCK_NB | LOCK_UN)) != 0 || !hafti_posix_on_task())
        return SYSTEM_OF(descriptor, flock)(descriptor, command);
    return lock(try_flock, &(lock_call_t){.descriptor = descriptor, .command = command | LOCK_NB});
}

HAFT_POSIX_EXPORT int lockf(int descriptor, int command, off_t size) {
    if (command != F_LOCK || !hafti_posix_on_task())
        return SYSTEM_OF(descriptor, lockf)(descriptor, command, size);
    return lock(try_lockf,
                &(lock_call_t){.descriptor = descriptor, .command = F_TLOCK, .size = size});
}

HAFT_POSIX_EXPORT int fcntl(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *); /* or an int, which the system takes from it */
    va_end(arguments);
    if ((command != F_SETLKW && command != F_OFD_SETLKW) || !hafti_posix_on_task()) {
        int result = SYSTEM_OF(descriptor, fcntl)(descriptor, command, argument);
        if (command == F_SETFL)
            hafti_posix_mode_has_changed();
        return result;
    }
    return lock(try_fcntl, &(lock_call_t){.descriptor = descriptor,
                                          .command = command == F_SETLKW ? F_SETLK : F_OFD_SETLK,
                                          .record = argument});
}

/* ---- Other names: of large files, of glibc, and of the fortified headers ---- */

HAFT_POSIX_ALSO(open64, open)
HAFT_POSIX_ALSO(openat64, openat)
HAFT_POSIX_ALSO(creat64, creat)
HAFT_POSIX_ALSO(lockf64, lockf)
HAFT_POSIX_ALSO(lseek64, lseek)
HAFT_POSIX_ALSO(ftruncate64, ftruncate)
HAFT_POSIX_ALSO(fallocate64, fallocate)
HAFT_POSIX_ALSO(posix_fallocate64, posix_fallocate)
HAFT_POSIX_ALSO(posix_fadvise64, posix_fadvise)
HAFT_POSIX_ALSO(fcntl64, fcntl)
HAFT_POSIX_ALSO(__fcntl, fcntl)
HAFT_POSIX_ALSO(__open, open)
HAFT_POSIX_ALSO(__open64, open)

off_t __lseek(int descriptor, off_t offset, int whence);
HAFT_POSIX_EXPORT off_t __lseek(int descriptor, off_t offset, int whence) {
    return lseek(descriptor, offset, whence);
}

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);

HAFT_POSIX_EXPORT int __openat_2(int directory, const char *path, int flags) {
    if (needs_mode(flags))
        __chk_fail();
    return openat(directory, path, flags);
}
HAFT_POSIX_ALSO(__openat64_2, __openat_2)

HAFT_POSIX_EXPORT int __open_2(const char *path, int flags) {
    return __openat_2(AT_FDCWD, path, flags);
}
HAFT_POSIX_ALSO(__open64_2, __open_2)

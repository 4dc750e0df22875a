/* SPDX-License-Identifier: MIT */
/*
 * Files and directories, by their names and at a place in them. Each function makes a call of the
 * run's table (calls.h): on the machine a thread of the pool makes it, and a close meanwhile is put
 * off, because that thread has the number; a tape keeps what comes back from there; in a simulation
 * the task makes it, after others have gone on.
 */
#include "objects.h"
#include "tape/addresses.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

typedef struct file_call file_call_t;
struct file_call {
    int64_t (*function)(file_call_t *call);
    enum hafti_io_taped kind;
    const haft_io_calls_t *calls;
    const char *path, *to; /* NULL: the call is on the descriptor */
    int descriptor;
    int flags;
    mode_t mode;
    void *buffer;
    size_t size;
    int64_t offset;
    struct dirent ***entries;
    bool is_fifo;
    int64_t done;
};

/* ---- The calls ---- */

/* A FIFO is not opened in the pool, because its other end may never be opened. */
static int64_t call_open(file_call_t *c) {
    c->is_fifo = c->calls->waits && hafti_io_waits_for_other_end(AT_FDCWD, c->path, c->flags);
    return c->is_fifo ? 0 : c->calls->openat(AT_FDCWD, c->path, c->flags | O_CLOEXEC, c->mode);
}
static int64_t call_read(file_call_t *c) {
    return c->calls->readv(c->descriptor, &(struct iovec){c->buffer, c->size}, 1, c->offset);
}
static int64_t call_write(file_call_t *c) {
    return c->calls->writev(c->descriptor, &(struct iovec){c->buffer, c->size}, 1, c->offset);
}
static int64_t call_sync(file_call_t *c) {
    return c->calls->fsync(c->descriptor);
}
static int64_t call_list(file_call_t *c) {
    return c->calls->scandir(c->path, c->entries);
}
static int64_t call_make(file_call_t *c) {
    return c->calls->mkdirat(AT_FDCWD, c->path, c->mode);
}
static int64_t call_remove(file_call_t *c) {
    return c->calls->remove(c->path);
}
static int64_t call_rename(file_call_t *c) {
    return c->calls->renameat2(AT_FDCWD, c->path, AT_FDCWD, c->to, 0);
}
static int64_t call_status(file_call_t *c) {
    return c->calls->fstatat(AT_FDCWD, c->path, c->buffer, 0);
}

/* ---- Where they are made ---- */

static void call_in_pool(void *argument) {
    file_call_t *call = argument;
    do
        call->done = call->function(call);
    while (call->done == -EINTR);
}

static int64_t make_in_pool(file_call_t *call) {
    HAFTI_IO_USING hafti_io_use_t use = {.descriptor = call->descriptor};
    int code = call->path == NULL ? hafti_io_use(&use) : 0;
    if (code == 0)
        code = hafti_io_call_in_pool(call_in_pool, call, NULL);
    if (code != 0)
        return code;
    return call->is_fifo ? haft_io_open_fifo(AT_FDCWD, call->path, call->flags, call->mode)
                         : call->done;
}

static int64_t answer(const file_call_t *call, const hafti_io_entry_t *entry) {
    if (call->kind == HAFTI_IO_TAPED_LIST)
        return hafti_io_taped_names(entry, call->entries);
    int64_t result = hafti_io_tape_result(
        entry, call->kind != HAFTI_IO_TAPED_PWRITE ? call->buffer : NULL, call->size);
    return call->kind == HAFTI_IO_TAPED_OPEN ? hafti_io_taped_descriptor((int)result) : result;
}

/* How many bytes of `buffer` the call has written. */
static size_t size_of_answer(const file_call_t *call, int64_t done) {
    return done < 0                              ? 0
           : call->kind == HAFTI_IO_TAPED_PREAD  ? (size_t)done
           : call->kind == HAFTI_IO_TAPED_PWRITE ? 0
                                                 : call->size;
}

static int64_t make(file_call_t *call) {
    call->calls = call->path != NULL ? hafti_io_file_calls() : hafti_io_calls_of(call->descriptor);
    if (!call->calls->waits) {
        int code = haft_io_yield();
        return code == 0 ? call->function(call) : code;
    }
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL taped =
        hafti_io_tape_begins(call->kind, call->path == NULL ? call->descriptor : -1, &entry);
    if (HAFTI_IO_UNLIKELY(entry != NULL))
        return answer(call, entry);
    int64_t done = make_in_pool(call);
    if (HAFTI_IO_UNLIKELY(taped.tape != NULL) && call->kind == HAFTI_IO_TAPED_LIST && done > 0)
        return hafti_io_tape_names(&taped, (int)done, *call->entries);
    return hafti_io_tape_ends(&taped, done, call->buffer, size_of_answer(call, done));
}
#define MAKE(what, kind_, ...)                                                                     \
    make(&(file_call_t){.function = what, .kind = HAFTI_IO_TAPED_##kind_, __VA_ARGS__})

/* ---- The functions of io.h ---- */

int haft_io_open(const char *path, int flags, mode_t mode) {
    if (path == NULL)
        return -EFAULT;
    return (int)MAKE(call_open, OPEN, .path = path, .flags = flags, .mode = mode);
}

ssize_t haft_io_pread(int descriptor, void *buffer, size_t size, int64_t offset) {
    if (offset < 0) /* which the table would take for none */
        return -EINVAL;
    return MAKE(call_read, PREAD, .descriptor = descriptor, .buffer = buffer, .size = size,
                .offset = offset);
}

ssize_t haft_io_pwrite(int descriptor, const void *buffer, size_t size, int64_t offset) {
    if (offset < 0)
        return -EINVAL;
    return MAKE(call_write, PWRITE, .descriptor = descriptor, .buffer = (void *)(uintptr_t)buffer,
                .size = size, .offset = offset);
}

int haft_io_fsync(int descriptor) {
    return (int)MAKE(call_sync, FSYNC, .descriptor = descriptor);
}

int haft_io_list_directory(const char *path, struct dirent ***entries) {
    if (path == NULL || entries == NULL) /* at which scandir(3) would look itself */
        return -EFAULT;
    return (int)MAKE(call_list, LIST, .path = path, .entries = entries);
}

int haft_io_mkdir(const char *path, mode_t mode) {
    return path != NULL ? (int)MAKE(call_make, MKDIR, .path = path, .mode = mode) : -EFAULT;
}

int haft_io_remove(const char *path) {
    return path != NULL ? (int)MAKE(call_remove, REMOVE, .path = path) : -EFAULT;
}

int haft_io_rename(const char *from, const char *to) {
    if (from == NULL || to == NULL)
        return -EFAULT;
    return (int)MAKE(call_rename, RENAME, .path = from, .to = to);
}

int haft_io_stat(const char *path, struct stat *status) {
    if (path == NULL || status == NULL)
        return -EFAULT;
    return (int)MAKE(call_status, STAT, .path = path, .buffer = status, .size = sizeof *status);
}

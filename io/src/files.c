/* SPDX-License-Identifier: MIT */
/* Files and directories, by their names and at a place in them: each is a call in the pool. */
#include "objects.h"
#include "system.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The system's, of files ---- */

typedef struct file_call {
    const char *path;
    int descriptor;
    int flags;
    mode_t mode;
    bool is_fifo;
    void *buffer;
    size_t size;
    int64_t offset;
    ssize_t done;
} file_call_t;

static ssize_t finish_file_call(void (*function)(void *), file_call_t *call) {
    int code = hafti_io_call_in_pool(function, call, NULL);
    return code == 0 ? call->done : code;
}

/* A close meanwhile is put off to the end of the call, because a thread of the pool has the
   number. */
static ssize_t finish_call_on_descriptor(void (*function)(void *), file_call_t *call) {
    HAFTI_IO_USING hafti_io_use_t use = {.descriptor = call->descriptor};
    int code = hafti_io_use(&use);
    return code == 0 ? finish_file_call(function, call) : code;
}

#define FILE_CALL(name, ...)                                                                       \
    static void name(void *argument) {                                                             \
        file_call_t *call = argument;                                                              \
        do                                                                                         \
            call->done = __VA_ARGS__;                                                              \
        while (call->done < 0 && errno == EINTR);                                                  \
        if (call->done < 0)                                                                        \
            call->done = -errno;                                                                   \
    }

/* A FIFO is not opened in the pool, because its other end may never be opened. */
static int open_at_once(file_call_t *call) {
    call->is_fifo = hafti_io_waits_for_other_end(AT_FDCWD, call->path, call->flags);
    return call->is_fifo ? 0 : open(call->path, call->flags | O_CLOEXEC, call->mode);
}

FILE_CALL(call_open, open_at_once(call))
FILE_CALL(call_read_at, pread(call->descriptor, call->buffer, call->size, call->offset))
FILE_CALL(call_write_at, pwrite(call->descriptor, call->buffer, call->size, call->offset))
FILE_CALL(call_sync, fsync(call->descriptor))

static int real_open(const char *path, int flags, mode_t mode) {
    if (path == NULL)
        return -EFAULT;
    file_call_t call = {.path = path, .flags = flags, .mode = mode};
    int file = (int)finish_file_call(call_open, &call);
    return call.is_fifo ? haft_io_open_fifo(AT_FDCWD, path, flags, mode) : file;
}

static ssize_t real_pread(int file, void *buffer, size_t size, int64_t offset) {
    return finish_call_on_descriptor(
        call_read_at,
        &(file_call_t){.descriptor = file, .buffer = buffer, .size = size, .offset = offset});
}

static ssize_t real_pwrite(int file, const void *buffer, size_t size, int64_t offset) {
    return finish_call_on_descriptor(call_write_at,
                                     &(file_call_t){.descriptor = file,
                                                    .buffer = (void *)(uintptr_t)buffer,
                                                    .size = size,
                                                    .offset = offset});
}

static int real_fsync(int file) {
    return (int)finish_call_on_descriptor(call_sync, &(file_call_t){.descriptor = file});
}

static int64_t real_seek(int file, int64_t by) {
    return HAFTI_IO_RESULT(lseek(file, by, SEEK_CUR));
}

/* ---- The system's, of names ---- */

typedef struct name_call {
    const char *path, *to;
    mode_t mode;
    struct stat *status;
    struct dirent ***entries;
    int done;
} name_call_t;

#define NAME_CALL(name, ...)                                                                       \
    static void name(void *argument) {                                                             \
        name_call_t *call = argument;                                                              \
        call->done = __VA_ARGS__;                                                                  \
        if (call->done < 0)                                                                        \
            call->done = -errno;                                                                   \
    }

NAME_CALL(call_list, scandir(call->path, call->entries, NULL, alphasort))
NAME_CALL(call_make, mkdir(call->path, call->mode))
NAME_CALL(call_remove, remove(call->path))
NAME_CALL(call_rename, rename(call->path, call->to))
NAME_CALL(call_status, stat(call->path, call->status))

static int finish_name_call(void (*function)(void *), name_call_t *call) {
    if (call->path == NULL || (function == call_rename && call->to == NULL))
        return -EFAULT;
    int code = hafti_io_call_in_pool(function, call, NULL);
    return code == 0 ? call->done : code;
}

static int real_list(const char *path, struct dirent ***entries) {
    return finish_name_call(call_list, &(name_call_t){.path = path, .entries = entries});
}

static int real_mkdir(const char *path, mode_t mode) {
    return finish_name_call(call_make, &(name_call_t){.path = path, .mode = mode});
}

static int real_remove(const char *path) {
    return finish_name_call(call_remove, &(name_call_t){.path = path});
}

static int real_rename(const char *from, const char *to) {
    return finish_name_call(call_rename, &(name_call_t){.path = from, .to = to});
}

static int real_stat(const char *path, struct stat *status) {
    return finish_name_call(call_status, &(name_call_t){.path = path, .status = status});
}

const hafti_io_files_t hafti_io_real_files = {.open = real_open,
                                              .pread = real_pread,
                                              .pwrite = real_pwrite,
                                              .fsync = real_fsync,
                                              .seek = real_seek,
                                              .list = real_list,
                                              .mkdir = real_mkdir,
                                              .remove = real_remove,
                                              .rename = real_rename,
                                              .stat = real_stat};

/* ---- The functions of io.h ---- */

int haft_io_open(const char *path, int flags, mode_t mode) {
    return hafti_io_files()->open(path, flags, mode);
}

ssize_t haft_io_pread(int descriptor, void *buffer, size_t size, int64_t offset) {
    return hafti_io_files_of(descriptor)->pread(descriptor, buffer, size, offset);
}

ssize_t haft_io_pwrite(int descriptor, const void *buffer, size_t size, int64_t offset) {
    return hafti_io_files_of(descriptor)->pwrite(descriptor, buffer, size, offset);
}

int haft_io_fsync(int descriptor) {
    return hafti_io_files_of(descriptor)->fsync(descriptor);
}

int haft_io_list_directory(const char *path, struct dirent ***entries) {
    if (path == NULL || entries == NULL) /* at which scandir(3) would look itself */
        return -EFAULT;
    return hafti_io_files()->list(path, entries);
}

int haft_io_mkdir(const char *path, mode_t mode) {
    return hafti_io_files()->mkdir(path, mode);
}

int haft_io_remove(const char *path) {
    return hafti_io_files()->remove(path);
}

int haft_io_rename(const char *from, const char *to) {
    return hafti_io_files()->rename(from, to);
}

int haft_io_stat(const char *path, struct stat *status) {
    return hafti_io_files()->stat(path, status);
}

/* SPDX-License-Identifier: MIT */
/* Directories and names of files, in the pool. */
#include "internal.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

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

static int finish(void (*function)(void *), name_call_t *call) {
    int code = haft_io_call_blocking(function, call);
    return code == 0 ? call->done : code;
}

int haft_io_list_directory(const char *path, struct dirent ***entries) {
    if (path == NULL || entries == NULL) /* at which scandir(3) would look itself */
        return -EFAULT;
    if (hafti_io_files_are_simulated())
        return hafti_io_files_list(path, entries);
    return finish(call_list, &(name_call_t){.path = path, .entries = entries});
}

int haft_io_mkdir(const char *path, mode_t mode) {
    if (hafti_io_files_are_simulated())
        return hafti_io_files_make_directory(path, mode);
    return finish(call_make, &(name_call_t){.path = path, .mode = mode});
}

int haft_io_remove(const char *path) {
    if (hafti_io_files_are_simulated())
        return hafti_io_files_remove(path);
    return finish(call_remove, &(name_call_t){.path = path});
}

int haft_io_rename(const char *from, const char *to) {
    if (hafti_io_files_are_simulated())
        return hafti_io_files_rename(from, to);
    return finish(call_rename, &(name_call_t){.path = from, .to = to});
}

int haft_io_stat(const char *path, struct stat *status) {
    if (hafti_io_files_are_simulated())
        return hafti_io_files_status(path, status);
    return finish(call_status, &(name_call_t){.path = path, .status = status});
}

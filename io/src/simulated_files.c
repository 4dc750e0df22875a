/* SPDX-License-Identifier: MIT */
/*
 * The files of a simulation: a list of paths, each of which names a file or a directory. A file lives as long as a
 * name or a descriptor uses it.
 */
#include "simulation.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* Those of open(2) that are heeded, or that change nothing here. */
enum {
    OPEN_FLAGS = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_CLOEXEC |
                 O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_SYNC | O_DSYNC | O_NOATIME
};

typedef haft_io_simulated_state_t state_t;
typedef haft_io_file_t file_t;
typedef haft_io_file_name_t name_t;

static state_t *state_here(void) {
    return haft_io_worker()->backend_state;
}

bool haft_io_files_are_simulated(void) {
    const haft_io_worker_t *worker = haft_io_worker();
    return worker != NULL && worker->simulated != NULL && worker->simulated->files;
}

/* ---- Names ---- */

/* By the names alone. */
static bool is_in(const char *path, const char *directory) {
    const char *slash = strrchr(path, '/'), *last = slash != NULL ? slash + 1 : path;
    if (last[0] == '\0' || strcmp(path, ".") == 0)
        return false;
    if (slash == NULL)
        return strcmp(directory, ".") == 0;
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    return strlen(directory) == length && memcmp(path, directory, length) == 0;
}

static name_t *name_of(const state_t *state, const char *path) {
    for (size_t i = 0; i < state->name_count; i++)
        if (strcmp(state->names[i].path, path) == 0)
            return &state->names[i];
    return NULL;
}

/* Why the path, which names nothing, cannot be given a name; 0: it can. */
static int check_directory_of(const state_t *state, const char *path) {
    for (size_t i = 0; i < state->name_count; i++)
        if (is_in(path, state->names[i].path))
            return S_ISDIR(state->names[i].file->mode) ? 0 : -ENOTDIR;
    return -ENOENT;
}

static void stop_using(file_t *file) {
    if (--file->uses != 0)
        return;
    free(file->bytes);
    free(file);
}

void haft_io_simulated_file_closes(file_t *file) {
    stop_using(file);
}

/* 0; -ENOMEM. */
static int add_name(state_t *state, const char *path, file_t *file) {
    name_t *grown = realloc(state->names, (state->name_count + 1) * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    state->names = grown;
    char *copy = strdup(path);
    if (copy == NULL)
        return -ENOMEM;
    grown[state->name_count++] = (name_t){copy, file};
    file->uses++;
    return 0;
}

static void remove_name(state_t *state, name_t *name) {
    free(name->path);
    stop_using(name->file);
    *name = state->names[--state->name_count];
}

/* 0, or why there is none. */
static int make(state_t *state, const char *path, mode_t mode) {
    file_t *file = calloc(1, sizeof *file);
    if (file == NULL)
        return -ENOMEM;
    file->mode = mode;
    file->number = ++state->last_file;
    file->changed = state->simulated->now;
    int code = add_name(state, path, file);
    if (code != 0)
        free(file);
    return code;
}

int haft_io_simulated_files_start(state_t *state) {
    int code = make(state, "/", S_IFDIR | 0755);
    return code == 0 ? make(state, ".", S_IFDIR | 0755) : code;
}

void haft_io_simulated_files_stop(state_t *state) {
    while (state->name_count != 0)
        remove_name(state, &state->names[state->name_count - 1]);
    free(state->names);
}

/* Lets others go on, and looks at the path: 0, and what it names, or NULL. With `fault` it may be made to fail. */
static int begin(const char *path, name_t **name, int fault) {
    int code = haft_io_yield();
    if (code != 0)
        return code;
    if (haft_io_fault_is_drawn(state_here()->simulated))
        return fault;
    if (path == NULL)
        return -EFAULT;
    *name = name_of(state_here(), path);
    return *name != NULL ? 0 : check_directory_of(state_here(), path);
}

/* The same for what has to be there. */
static int begin_with(const char *path, name_t **name) {
    int code = begin(path, name, -EIO);
    return code == 0 && *name == NULL ? -ENOENT : code;
}

static int by_name(const void *one, const void *other) {
    const struct dirent *const *first = one, *const *second = other;
    return strcoll((*first)->d_name, (*second)->d_name);
}

int haft_io_files_list(const char *path, struct dirent ***entries) {
    name_t *name;
    int code = begin_with(path, &name);
    if (code != 0)
        return code;
    if (!S_ISDIR(name->file->mode))
        return -ENOTDIR;
    const state_t *state = state_here();
    struct dirent **list = malloc((state->name_count + 2) * sizeof *list);
    int count = 0;
    for (size_t i = 0; list != NULL && i < state->name_count + 2; i++) {
        const name_t *other = i >= 2 ? &state->names[i - 2] : name;
        if (i >= 2 && !is_in(other->path, path))
            continue;
        const char *slash = strrchr(other->path, '/');
        const char *text = slash != NULL ? slash + 1 : other->path;
        if (i < 2)
            text = i == 0 ? "." : "..";
        struct dirent *entry = calloc(1, sizeof *entry);
        if (entry == NULL)
            goto no_memory;
        strncpy(entry->d_name, text, sizeof entry->d_name - 1);
        entry->d_ino = other->file->number;
        entry->d_type = IFTODT(other->file->mode);
        list[count++] = entry;
    }
    if (list != NULL) {
        qsort(list, (size_t)count, sizeof *list, by_name);
        *entries = list;
        return count;
    }
no_memory:
    while (count != 0)
        free(list[--count]);
    free(list);
    return -ENOMEM;
}

int haft_io_files_make_directory(const char *path, mode_t mode) {
    name_t *name;
    int code = begin(path, &name, -EIO);
    if (code == 0 && name != NULL)
        code = -EEXIST;
    return code == 0 ? make(state_here(), path, S_IFDIR | (mode & 07777)) : code;
}

int haft_io_files_remove(const char *path) {
    name_t *name;
    int code = begin_with(path, &name);
    if (code != 0)
        return code;
    state_t *state = state_here();
    if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
        return -EBUSY;
    for (size_t i = 0; i < state->name_count; i++)
        if (is_in(state->names[i].path, path))
            return -ENOTEMPTY;
    remove_name(state, name);
    return 0;
}

int haft_io_files_rename(const char *from, const char *to) {
    name_t *name, *target;
    int code = begin_with(from, &name);
    if (code != 0)
        return code;
    state_t *state = state_here();
    if (to == NULL)
        return -EFAULT;
    target = name_of(state, to);
    code = target != NULL ? 0 : check_directory_of(state, to);
    if (code != 0 || target == name)
        return code;
    if (S_ISDIR(name->file->mode))
        return -EOPNOTSUPP;
    if (target != NULL && S_ISDIR(target->file->mode))
        return -EISDIR;
    if (target == NULL) {
        char *path = strdup(to);
        if (path == NULL)
            return -ENOMEM;
        free(name->path);
        name->path = path;
        return 0;
    }
    stop_using(target->file);
    target->file = name->file;
    target->file->uses++;
    remove_name(state, name);
    return 0;
}

int haft_io_files_status(const char *path, struct stat *status) {
    name_t *name;
    int code = begin_with(path, &name);
    if (code != 0)
        return code;
    const file_t *file = name->file;
    struct timespec changed = {file->changed / HAFT_IO_SECOND, file->changed % HAFT_IO_SECOND};
    *status = (struct stat){.st_ino = file->number,
                            .st_mode = file->mode,
                            .st_nlink = 1,
                            .st_size = (off_t)file->size,
                            .st_blksize = 4096,
                            .st_atim = changed,
                            .st_mtim = changed,
                            .st_ctim = changed};
    return 0;
}

/* ---- Descriptors ---- */

/* What the names say of it: 0, or an error. */
static int check_open(const name_t *name, int flags) {
    if ((flags & ~OPEN_FLAGS) != 0)
        return -EOPNOTSUPP;
    if (name == NULL)
        return (flags & O_CREAT) != 0 ? 0 : -ENOENT;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if (!S_ISDIR(name->file->mode))
        return (flags & O_DIRECTORY) != 0 ? -ENOTDIR : 0;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0 ? -EISDIR : 0;
}

int haft_io_files_open(const char *path, int flags, mode_t mode) {
    state_t *state = state_here();
    name_t *name;
    int code = begin(path, &name, -EMFILE);
    if (code == 0)
        code = check_open(name, flags);
    if (code == 0 && name == NULL)
        code = make(state, path, S_IFREG | (mode & 07777));
    if (code != 0)
        return code;
    haft_io_object_t *object = haft_io_object_new(state, HAFT_IO_A_FILE);
    if (object == NULL)
        return -ENOMEM;
    object->file = name_of(state, path)->file;
    object->file->uses++;
    object->flags = flags;
    if ((flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY) {
        object->file->size = 0;
        object->file->changed = state->simulated->now;
    }
    return object->descriptor;
}

/* False: no memory. */
static bool grow(file_t *file, size_t size) {
    if (size <= file->size)
        return true;
    char *grown = realloc(file->bytes, size);
    if (grown == NULL)
        return false;
    memset(grown + file->size, 0, size - file->size);
    file->bytes = grown;
    file->size = size;
    return true;
}

ssize_t haft_io_simulated_file_transfers(haft_io_simulated_t *simulated, haft_io_object_t *object,
                                         const haft_io_memory_t *memory, int64_t *offset,
                                         bool writes) {
    file_t *file = object->file;
    if ((object->flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY))
        return -EBADF;
    if (S_ISDIR(file->mode))
        return -EISDIR;
    if (*offset < 0)
        return -EINVAL;
    if (writes && (object->flags & O_APPEND) != 0)
        *offset = (int64_t)file->size;
    size_t at = (size_t)*offset, left = at < file->size ? file->size - at : 0, end;
    size_t size = writes || memory->size < left ? memory->size : left;
    if (size == 0)
        return 0;
    size = haft_io_drawn_size(simulated, size);
    if (__builtin_add_overflow(at, size, &end) || end > INT64_MAX)
        return -EFBIG;
    if (writes && !grow(file, end))
        return -ENOSPC;
    haft_io_memory_copy(memory, file->bytes + at, size, 0, size, writes);
    if (writes)
        file->changed = simulated->now;
    *offset += (int64_t)size;
    return (ssize_t)size;
}

/* `otherwise`: what it is of another object than a file. */
static int begin_on(int descriptor, haft_io_object_t **object, bool writes, int otherwise) {
    int code = haft_io_yield();
    if (code != 0)
        return code;
    *object = haft_io_object_of(state_here(), descriptor);
    if (*object == NULL)
        return -EBADF;
    if ((*object)->kind != HAFT_IO_A_FILE)
        return otherwise;
    return haft_io_fault_of(state_here(), *object, writes);
}

ssize_t haft_io_files_transfer_at(int descriptor, void *buffer, size_t size, int64_t offset,
                                  bool writes) {
    haft_io_object_t *object;
    int code = begin_on(descriptor, &object, writes, -ESPIPE);
    if (code != 0)
        return code;
    struct iovec part = {buffer, size};
    haft_io_memory_t memory = haft_io_memory_of(&part, 1);
    return haft_io_simulated_file_transfers(haft_io_worker()->simulated, object, &memory, &offset,
                                            writes);
}

int haft_io_files_sync(int descriptor) {
    haft_io_object_t *object;
    return begin_on(descriptor, &object, false, -EINVAL);
}

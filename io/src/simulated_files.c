/* SPDX-License-Identifier: MIT */
/*
 * The files of a simulation: a tree of paths, each of which names a file or a directory, and for each directory a ring
 * of the names in it. A file lives as long as a name or a descriptor uses it.
 */
#include "simulation.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
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
typedef struct name {
    char *path;
    file_t *file;
    haft_io_link_t link; /* in its directory; "/" and "." are in none */
} name_t;

static state_t *state_here(void) {
    return haft_io_worker()->backend_state;
}

bool haft_io_files_are_simulated(void) {
    const haft_io_worker_t *worker = haft_io_worker();
    return worker != NULL && worker->simulated != NULL && worker->simulated->files;
}

/* ---- Names ---- */

static int by_path(const void *one, const void *other) {
    return strcmp(((const name_t *)one)->path, ((const name_t *)other)->path);
}

static name_t *name_of(const state_t *state, const char *path) {
    name_t key = {.path = (char *)(uintptr_t)path};
    name_t **found = tfind(&key, &state->names, by_path);
    return found != NULL ? *found : NULL;
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* 0, and the directory that the path, by its words alone, is in. */
static int directory_of(const state_t *state, const char *path, file_t **directory) {
    const char *last = last_part(path);
    if (last[0] == '\0' || strcmp(path, ".") == 0)
        return -ENOENT;
    if (strlen(last) > NAME_MAX || strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    size_t length = last - path > 1 ? (size_t)(last - path) - 1 : 1; /* "/" */
    char *above = last == path ? strdup(".") : strndup(path, length);
    if (above == NULL)
        return -ENOMEM;
    const name_t *name = name_of(state, above);
    free(above);
    if (name == NULL)
        return -ENOENT;
    *directory = name->file;
    return S_ISDIR(name->file->mode) ? 0 : -ENOTDIR;
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

/* NULL: no memory. `directory`: NULL for "/" and ".". */
static name_t *add_name(state_t *state, const char *path, file_t *directory, file_t *file) {
    name_t *name = calloc(1, sizeof *name);
    char *copy = strdup(path);
    if (name != NULL && copy != NULL) {
        name->path = copy;
        name->file = file;
        if (tsearch(name, &state->names, by_path) != NULL) {
            if (directory != NULL)
                haft_io_append(&directory->names, &name->link);
            file->uses++;
            return name;
        }
    }
    free(copy);
    free(name);
    return NULL;
}

static void free_name(void *given) {
    name_t *name = given;
    stop_using(name->file);
    free(name->path);
    free(name);
}
static void remove_name(state_t *state, name_t *name) {
    tdelete(name, &state->names, by_path);
    haft_io_unlink(&name->link);
    free_name(name);
}

/* A new file, or directory. NULL: no memory. */
static name_t *make(state_t *state, const char *path, file_t *directory, mode_t mode) {
    file_t *file = calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->mode = mode;
    file->number = ++state->last_file;
    file->changed = state->simulated->now;
    haft_io_ring(&file->names);
    name_t *name = add_name(state, path, directory, file);
    if (name == NULL)
        free(file);
    return name;
}

int haft_io_simulated_files_start(state_t *state) {
    return make(state, "/", NULL, S_IFDIR | 0755) != NULL &&
                   make(state, ".", NULL, S_IFDIR | 0755) != NULL
               ? 0
               : -ENOMEM;
}

void haft_io_simulated_files_stop(state_t *state) {
    tdestroy(state->names, free_name);
}

/* What a path is of. */
typedef struct place {
    name_t *name;      /* NULL: it names nothing, */
    file_t *directory; /* but could, here. */
} place_t;

static int look_at(const state_t *state, const char *path, place_t *place) {
    if (path == NULL)
        return -EFAULT;
    place->name = name_of(state, path);
    return place->name != NULL ? 0 : directory_of(state, path, &place->directory);
}

/* Lets others go on, and looks at the path. With `fault` it may be made to fail. */
static int begin(const char *path, place_t *place, int fault) {
    int code = haft_io_yield();
    if (code != 0)
        return code;
    if (haft_io_fault_is_drawn(state_here()->simulated))
        return fault;
    return look_at(state_here(), path, place);
}

/* The same for what has to be there. */
static int begin_with(const char *path, name_t **name) {
    place_t place;
    int code = begin(path, &place, -EIO);
    if (code != 0)
        return code;
    *name = place.name;
    return place.name != NULL ? 0 : -ENOENT;
}

static int by_name(const void *one, const void *other) {
    const struct dirent *const *first = one, *const *second = other;
    return strcoll((*first)->d_name, (*second)->d_name);
}

/* One more; false: no memory. */
static bool add_entry(struct dirent **list, int *count, const char *text, const file_t *file) {
    struct dirent *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return false;
    strncpy(entry->d_name, text, sizeof entry->d_name - 1);
    entry->d_ino = file->number;
    entry->d_type = IFTODT(file->mode);
    list[(*count)++] = entry;
    return true;
}

int haft_io_files_list(const char *path, struct dirent ***entries) {
    name_t *name;
    int code = begin_with(path, &name);
    if (code != 0)
        return code;
    if (!S_ISDIR(name->file->mode))
        return -ENOTDIR;
    const haft_io_link_t *names = &name->file->names;
    size_t most = 2;
    for (const haft_io_link_t *link = names->next; link != names; link = link->next)
        most++;
    struct dirent **list = malloc(most * sizeof *list);
    int count = 0;
    bool whole = list != NULL && add_entry(list, &count, ".", name->file) &&
                 add_entry(list, &count, "..", name->file);
    for (const haft_io_link_t *link = names->next; whole && link != names; link = link->next) {
        const name_t *other = HAFT_IO_OWNER(link, name_t, link);
        whole = add_entry(list, &count, last_part(other->path), other->file);
    }
    if (whole) {
        qsort(list, (size_t)count, sizeof *list, by_name);
        *entries = list;
        return count;
    }
    while (count != 0)
        free(list[--count]);
    free(list);
    return -ENOMEM;
}

int haft_io_files_make_directory(const char *path, mode_t mode) {
    place_t place;
    int code = begin(path, &place, -EIO);
    if (code != 0)
        return code;
    if (place.name != NULL)
        return -EEXIST;
    mode = S_IFDIR | (mode & 07777);
    return make(state_here(), path, place.directory, mode) != NULL ? 0 : -ENOMEM;
}

int haft_io_files_remove(const char *path) {
    name_t *name;
    int code = begin_with(path, &name);
    if (code != 0)
        return code;
    if (!haft_io_linked(&name->link))
        return -EBUSY;
    if (!haft_io_ring_empty(&name->file->names))
        return -ENOTEMPTY;
    remove_name(state_here(), name);
    return 0;
}

int haft_io_files_rename(const char *from, const char *to) {
    name_t *name;
    int code = begin_with(from, &name);
    if (code != 0)
        return code;
    state_t *state = state_here();
    place_t place;
    code = look_at(state, to, &place);
    if (code != 0 || place.name == name)
        return code;
    if (S_ISDIR(name->file->mode))
        return -EOPNOTSUPP;
    if (place.name == NULL) {
        if (add_name(state, to, place.directory, name->file) == NULL)
            return -ENOMEM;
    } else {
        if (S_ISDIR(place.name->file->mode))
            return -EISDIR;
        stop_using(place.name->file);
        place.name->file = name->file;
        name->file->uses++;
    }
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
    place_t place;
    int code = begin(path, &place, -EMFILE);
    if (code == 0)
        code = check_open(place.name, flags);
    if (code != 0)
        return code;
    if (place.name == NULL)
        place.name = make(state, path, place.directory, S_IFREG | (mode & 07777));
    if (place.name == NULL)
        return -ENOMEM;
    haft_io_object_t *object = haft_io_object_new(state, HAFT_IO_A_FILE);
    if (object == NULL)
        return -ENOMEM;
    object->file = place.name->file;
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
    if (size > file->room) {
        size_t room = size < 2 * file->room ? 2 * file->room : size;
        char *grown = realloc(file->bytes, room);
        if (grown == NULL)
            return false;
        file->bytes = grown;
        file->room = room;
    }
    if (size > file->size) {
        memset(file->bytes + file->size, 0, size - file->size);
        file->size = size;
    }
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

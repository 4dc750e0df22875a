/* SPDX-License-Identifier: MIT */
/*
 * Streams of directories. A simulation's stream reads all names at once when it is asked for the
 * first, in an order that the seed decides. DIR is the C library's own: a stream of a simulation is
 * an object of this file, known by its odd address. When its run has ended it fails with EBADF.
 */
#include "internal.h"

#include <string.h>

typedef struct stream {
    int descriptor; /* of `run` */
    uint64_t run;
    bool is_read;
    struct dirent **entries; /* of `count` */
    int count, next;
} stream_t;

static DIR *of_stream(stream_t *stream) {
    return (DIR *)(void *)((char *)stream + 1);
}
static stream_t *stream_of(DIR *directory) {
    return (stream_t *)(void *)((char *)directory - 1);
}

static void forget(stream_t *stream) {
    while (stream->count != 0)
        free(stream->entries[--stream->count]);
    free(stream->entries);
    *stream = (stream_t){.descriptor = stream->descriptor, .run = stream->run};
}

/* (Its number may be another file's in the caller's run.) */
static bool is_of_run(const stream_t *stream) {
    return hafti_posix_on_task() && haft_io_run_number() == stream->run;
}

static struct dirent *read_stream(stream_t *stream) {
    if (!stream->is_read) {
        int before = hafti_posix_error();
        int count = -EBADF;
        if (is_of_run(stream)) {
            hafti_posix_take_turns(stream->descriptor);
            count = haft_io_simulated_calls()->list(stream->descriptor, &stream->entries);
        }
        hafti_posix_set_error(count >= 0 ? before : -count);
        if (count < 0)
            return NULL;
        stream->count = count;
        stream->is_read = true;
    }
    if (stream->next == stream->count)
        return NULL;
    struct dirent *entry = stream->entries[stream->next++];
    entry->d_off = stream->next;
    return entry;
}

/* ---- Opening and closing ---- */

static DIR *open_stream(int descriptor) {
    stream_t *stream = malloc(sizeof *stream);
    if (stream == NULL)
        return NULL;
    *stream = (stream_t){.descriptor = descriptor, .run = haft_io_run_number()};
    return of_stream(stream);
}

HAFT_POSIX_EXPORT DIR *opendir(const char *path) {
    const hafti_posix_system_t *system = hafti_posix_path_system(AT_FDCWD, path);
    if (system == hafti_posix_system())
        return system->opendir(path);
    int descriptor = system->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor >= 0 ? open_stream(descriptor) : NULL;
    if (directory == NULL && descriptor >= 0)
        close(descriptor);
    return directory;
}

HAFT_POSIX_EXPORT DIR *fdopendir(int descriptor) {
    if (!hafti_posix_may_be_simulated(descriptor))
        return SYSTEM(fdopendir)(descriptor);
    struct stat status;
    if (SYSTEM_OF(descriptor, fstat)(descriptor, &status) != 0)
        return NULL;
    if (S_ISDIR(status.st_mode))
        return open_stream(descriptor);
    hafti_posix_set_error(ENOTDIR);
    return NULL;
}

static int close_simulated(DIR *directory) {
    stream_t *stream = stream_of(directory);
    int descriptor = is_of_run(stream) ? stream->descriptor : -1;
    forget(stream);
    free(stream);
    return close(descriptor);
}

static int call_closedir(void *directory) {
    return (int)HAFT_POSIX_RESULT(SYSTEM(closedir)(directory));
}
/* (Compilers assume that the parameter of closedir is not NULL; the C library does not.) */
static int number_of(DIR *directory) {
    __asm__("" : "+r"(directory));
    return directory != NULL ? SYSTEM(dirfd)(directory) : -1;
}
HAFT_POSIX_EXPORT int closedir(DIR *directory) {
    if (hafti_posix_is_simulated_stream(directory))
        return close_simulated(directory);
    return hafti_posix_close_by(number_of(directory), call_closedir, directory);
}

/* ---- Reading ---- */

HAFT_POSIX_EXPORT struct dirent *readdir(DIR *directory) {
    return hafti_posix_is_simulated_stream(directory) ? read_stream(stream_of(directory))
                                                      : SYSTEM(readdir)(directory);
}

HAFT_POSIX_EXPORT int dirfd(DIR *directory) {
    return hafti_posix_is_simulated_stream(directory) ? stream_of(directory)->descriptor
                                                      : SYSTEM(dirfd)(directory);
}

HAFT_POSIX_EXPORT void rewinddir(DIR *directory) {
    if (hafti_posix_is_simulated_stream(directory))
        forget(stream_of(directory));
    else
        SYSTEM(rewinddir)(directory);
}

HAFT_POSIX_EXPORT long telldir(DIR *directory) {
    return hafti_posix_is_simulated_stream(directory) ? stream_of(directory)->next
                                                      : SYSTEM(telldir)(directory);
}

HAFT_POSIX_EXPORT void seekdir(DIR *directory, long place) {
    if (!hafti_posix_is_simulated_stream(directory)) {
        SYSTEM(seekdir)(directory, place);
        return;
    }
    stream_t *stream = stream_of(directory);
    if (place >= 0 && place <= stream->count)
        stream->next = (int)place;
}

/* glibc warns of readdir_r, because names may be longer elsewhere. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

HAFT_POSIX_EXPORT int readdir_r(DIR *restrict directory, struct dirent *restrict entry,
                                struct dirent **restrict result) {
    int before = hafti_posix_error();
    hafti_posix_set_error(0);
    const struct dirent *next = readdir(directory);
    int code = next == NULL ? hafti_posix_error() : 0;
    hafti_posix_set_error(before);
    *result = next != NULL ? entry : NULL;
    if (next != NULL)
        memcpy(entry, next, next->d_reclen);
    return code;
}

/* ---- A list of all ---- */

/* Moves the entries that the filter takes to the front, frees the others, and returns how many. */
static int choose(struct dirent **entries, int count, int (*filter)(const struct dirent *)) {
    int chosen = 0;
    for (int i = 0; i < count; i++) {
        if (filter == NULL || filter(entries[i]) != 0)
            entries[chosen++] = entries[i];
        else
            free(entries[i]);
    }
    return chosen;
}

HAFT_POSIX_EXPORT int scandir(const char *restrict path, struct dirent ***restrict entries,
                              int (*filter)(const struct dirent *),
                              int (*compare)(const struct dirent **, const struct dirent **)) {
    if (hafti_posix_path_system(AT_FDCWD, path) == hafti_posix_system())
        return SYSTEM(scandir)(path, entries, filter, compare);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return -1;
    stream_t *stream = stream_of(directory);
    const struct dirent *first = read_stream(stream);
    int count = -1;
    if (first != NULL || stream->is_read) {
        count = choose(stream->entries, stream->count, filter);
        *entries = stream->entries;
        stream->entries = NULL;
        stream->count = 0;
        if (compare != NULL && count > 1)
            qsort(*entries, (size_t)count, sizeof **entries,
                  (int (*)(const void *, const void *))(void (*)(void))compare);
    }
    int before = hafti_posix_error();
    closedir(directory);
    hafti_posix_set_error(before);
    return count;
}

/* ---- Other names: of large files ---- */

HAFT_POSIX_ALSO_64(readdir)
HAFT_POSIX_EXPORT extern __typeof__(readdir_r) hafti_posix_readdir64_r __asm__("readdir64_r")
    __attribute__((alias("readdir_r")));
HAFT_POSIX_ALSO_64(scandir)

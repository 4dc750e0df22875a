/* SPDX-License-Identifier: MIT */
/*
 * The files of a simulation: what they contain now, and what they contained when they were synced
 * last. Where the two may differ is known, so that a sync copies no more than was written since.
 *
 * A crash leaves the synced content of a file. Each block that was overwritten since has its old or
 * its new content, or zeros if there was no old one. Data appended since is cut somewhere. A
 * truncation is either lost with all that came after it, or done: then nothing old is left behind
 * the size that it made, of O_TRUNC nothing at all.
 */
#include "simulation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* The flags of open(2) that are heeded, or that change nothing here. */
enum {
    OPEN_FLAGS = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_CLOEXEC |
                 O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_SYNC | O_DSYNC | O_NOATIME | O_LARGEFILE |
                 O_PATH
};
enum { BLOCK = 512 };       /* which disks write whole */
enum { LARGEST = 1 << 30 }; /* that a file may be: holes take memory, too */

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_file_t file_t;

/* ---- Content ---- */

/* False: no memory. New bytes are zeros. */
static bool grow(hafti_io_content_t *content, size_t size) {
    if (size > content->room) {
        size_t room = size < 2 * content->room ? 2 * content->room : size;
        char *grown = realloc(content->bytes, room);
        if (grown == NULL)
            return false;
        content->bytes = grown;
        content->room = room;
    }
    if (size > content->size) {
        memset(content->bytes + content->size, 0, size - content->size);
        content->size = size;
    }
    return true;
}

static void has_changed(file_t *file, size_t from, size_t to) {
    bool first = file->changed_from == file->changed_to;
    file->changed_from = first || from < file->changed_from ? from : file->changed_from;
    file->changed_to = first || to > file->changed_to ? to : file->changed_to;
}

static void truncate_file(file_t *file, size_t size) {
    file->now.size = size;
    file->least = size < file->least ? size : file->least;
    file->changed_to = size < file->changed_to ? size : file->changed_to;
    if (file->changed_from >= file->changed_to)
        file->changed_from = file->changed_to = 0;
}

/* False: no memory, and not synced. */
static bool sync_file(file_t *file) {
    size_t size = file->now.size;
    size_t from = file->changed_from, to = file->changed_to < size ? file->changed_to : size;
    if (!grow(&file->synced, size))
        return false;
    if (from < to)
        memcpy(file->synced.bytes + from, file->now.bytes + from, to - from);
    file->synced.size = file->least = size;
    file->changed_from = file->changed_to = 0;
    return true;
}

/* ---- A crash ---- */

/* The block, or the part of it that was written, is what it was before. */
static void lose(file_t *file, size_t from, size_t to) {
    size_t old = file->least < from ? from : file->least < to ? file->least : to;
    if (from < old)
        memcpy(file->now.bytes + from, file->synced.bytes + from, old - from);
    memset(file->now.bytes + old, 0, to - old);
}

static void crash_file(state_t *state, file_t *file) {
    hafti_io_simulated_t *simulated = state->simulated;
    hafti_io_content_t *now = &file->now;
    bool truncated = file->least < file->synced.size;
    if (truncated && hafti_io_random(simulated, 2) == 0) {
        /* There is room, since that was its size when it was synced. */
        memcpy(now->bytes, file->synced.bytes, file->synced.size);
        now->size = file->synced.size;
    } else {
        for (size_t at = file->changed_from, next; at < file->changed_to; at = next) {
            next = (at / BLOCK + 1) * BLOCK;
            next = next < file->changed_to ? next : file->changed_to;
            if (hafti_io_random(simulated, 2) == 0)
                lose(file, at, next);
        }
        if (now->size > file->least && hafti_io_random(simulated, 2) == 0)
            now->size = file->least + hafti_io_random(simulated, now->size - file->least);
    }
    sync_file(file); /* without memory it is lost once more by the next crash */
}

void hafti_io_simulated_files_crash(state_t *state) {
    for (hafti_io_link_t *link = state->objects.next; link != &state->objects; link = link->next)
        hafti_io_object_at_link(link)->stale = true;
    hafti_io_directories_crash(state, crash_file);
}

int hafti_io_file_resize(state_t *state, file_t *file, int64_t size) {
    size_t before = file->now.size;
    if (size > LARGEST)
        return -EFBIG;
    if ((size_t)size <= before)
        truncate_file(file, (size_t)size);
    else if (!grow(&file->now, (size_t)size))
        return -ENOSPC;
    else
        has_changed(file, before, (size_t)size);
    file->changed = file->status_changed = hafti_io_simulated_date(state->simulated);
    return 0;
}

/* ---- Descriptors ---- */

/* Checks the path of an open: 0, or an error. */
static int check_open(const hafti_io_path_t *place, int flags) {
    if ((flags & ~OPEN_FLAGS) != 0)
        return -EOPNOTSUPP;
    if ((flags & O_CREAT) != 0 && place->slash && place->directory != NULL)
        return -EISDIR;
    if (place->file == NULL)
        return (flags & O_CREAT) == 0 ? -ENOENT : 0;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if (!S_ISDIR(place->file->mode))
        return (flags & O_DIRECTORY) != 0 || place->slash ? -ENOTDIR : 0;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0 ? -EISDIR : 0;
}

static int open_file(state_t *state, file_t *file, int flags) {
    hafti_io_object_t *object = hafti_io_object_new(state, HAFTI_IO_A_FILE);
    if (object == NULL)
        return -ENOMEM;
    object->file = file;
    file->uses++;
    object->flags = flags;
    return object->descriptor;
}

/* /dev/urandom, which is there without a folder, and has no faults. */
static int open_chance(int flags) {
    state_t *state = hafti_io_state_here();
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if ((flags & O_DIRECTORY) != 0)
        return -ENOTDIR;
    file_t *file = hafti_io_file_new(state, S_IFCHR | 0666);
    int descriptor = file != NULL ? open_file(state, file, flags) : -ENOMEM;
    if (descriptor < 0)
        free(file);
    return descriptor;
}

int hafti_io_path_open(file_t *from, const char *path, int flags, mode_t mode) {
    hafti_io_path_t place;
    if (hafti_io_is_chance(path))
        return open_chance(flags);
    if ((flags & O_PATH) != 0) /* which heeds few others */
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int code = hafti_io_path_begin(from, path, &place, -EMFILE);
    if (code == 0)
        code = check_open(&place, flags);
    state_t *state = hafti_io_state_here();
    bool makes = code == 0 && place.file == NULL;
    if (makes)
        code = hafti_io_path_make(state, &place, S_IFREG | (mode & 07777));
    if (code != 0)
        return code;
    int descriptor = open_file(state, place.file, flags);
    if (descriptor >= 0 && (flags & O_TRUNC) != 0 &&
        !makes) /* also of one only to be read, as Linux
                                                                has it */
        hafti_io_file_resize(state, place.file, 0);
    return descriptor;
}

static ssize_t write_file(file_t *file, const hafti_io_memory_t *memory, size_t at, size_t size,
                          bool synced) {
    size_t end, before = file->now.size;
    if (__builtin_add_overflow(at, size, &end) || end > LARGEST)
        return -EFBIG;
    if (!grow(&file->now, end))
        return -ENOSPC;
    if (!hafti_io_memory_copy(memory, file->now.bytes + at, size, 0, size, true)) {
        file->now.size = before;
        return -EFAULT;
    }
    has_changed(file, at < before ? at : before, end);
    return synced && !sync_file(file) ? -EIO : (ssize_t)size;
}

/* Bytes that are written to the source of random bytes are dropped. */
static ssize_t transfer_chance(hafti_io_simulated_t *simulated, const hafti_io_memory_t *memory,
                               bool writes) {
    enum { MOST = 1 << 25 }; /* at once, as Linux has it */
    for (size_t i = 0, left = MOST; i < memory->count && left != 0 && !writes; i++) {
        const struct iovec *part = &memory->parts[i];
        size_t size = part->iov_len < left ? part->iov_len : left;
        if (part->iov_base == NULL && size != 0)
            return -EFAULT;
        hafti_io_random_bytes(simulated, part->iov_base, size);
        left -= size;
    }
    return (ssize_t)(memory->size < MOST ? memory->size : MOST);
}

ssize_t hafti_io_simulated_file_transfers(hafti_io_simulated_t *simulated,
                                          hafti_io_object_t *object,
                                          const hafti_io_memory_t *memory, int64_t *offset,
                                          bool writes) {
    file_t *file = object->file;
    if (*offset < 0)
        return -EINVAL;
    if (object->stale)
        return -EIO;
    if ((object->flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY) ||
        (object->flags & O_PATH) != 0)
        return -EBADF;
    if (S_ISDIR(file->mode))
        return -EISDIR;
    if (S_ISCHR(file->mode))
        return transfer_chance(simulated, memory, writes);
    if (writes && memory->size != 0 && (object->flags & O_APPEND) != 0)
        *offset = (int64_t)file->now.size;
    size_t at = (size_t)*offset, left = at < file->now.size ? file->now.size - at : 0;
    size_t size = writes || memory->size < left ? memory->size : left;
    if (size == 0)
        return 0;
    size = hafti_io_drawn_size(simulated, size);
    ssize_t done = (ssize_t)size;
    if (writes)
        done = write_file(file, memory, at, size, (object->flags & O_DSYNC) != 0); /* and O_SYNC */
    else if (!hafti_io_memory_copy(memory, file->now.bytes + at, size, 0, size, false))
        done = -EFAULT;
    if (done < 0)
        return done;
    if (writes)
        file->changed = file->status_changed = hafti_io_simulated_date(simulated);
    *offset += (int64_t)size;
    return done;
}

static int sync_object(hafti_io_object_t *object) {
    if (object->stale)
        return -EIO;
    if (S_ISCHR(object->file->mode))
        return -EINVAL;
    if (!S_ISDIR(object->file->mode))
        return sync_file(object->file) ? 0 : -EIO;
    hafti_io_directory_sync(hafti_io_state_here(), object->file);
    return 0;
}

int hafti_io_calls_fsync(int descriptor) {
    state_t *state = hafti_io_state_here();
    hafti_io_object_t *object = hafti_io_object_of(state, descriptor);
    if (object == NULL)
        return -EBADF;
    if (object->kind != HAFTI_IO_A_FILE)
        return -EINVAL;
    int code = hafti_io_fault_of(state, object, false);
    return code != 0 ? code : sync_object(object);
}

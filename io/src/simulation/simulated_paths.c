/* SPDX-License-Identifier: MIT */
/*
 * The system calls of a simulation on files and directories, by path and by descriptor, for code
 * that knows nothing of it: calls.h. A path begins in a directory's descriptor, which is
 * simulated, or in the current directory (AT_FDCWD).
 */
#include "simulation.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;
typedef hafti_io_file_t file_t;

/* ---- What is meant ---- */

/* 0, and the object of a file or directory. */
static int file_object(int descriptor, object_t **object, int of_others) {
    *object = hafti_io_object_of(hafti_io_state_here(), descriptor);
    if (*object == NULL)
        return -EBADF;
    if ((*object)->kind != HAFTI_IO_A_FILE)
        return of_others;
    return (*object)->stale ? -EIO : 0;
}

/* 0, and the directory in which the path begins; NULL: the current one, or the path is absolute. */
static int base_of(int descriptor, const char *path, file_t **base) {
    object_t *object;
    *base = NULL;
    if (descriptor == AT_FDCWD || path == NULL || path[0] == '/' || path[0] == '\0')
        return 0;
    int code = file_object(descriptor, &object, -ENOTDIR);
    if (code != 0)
        return code;
    *base = object->file;
    return S_ISDIR(object->file->mode) ? 0 : -ENOTDIR;
}

static bool is_empty(const char *path, int flags) {
    return (flags & AT_EMPTY_PATH) != 0 && (path == NULL || path[0] == '\0');
}

/* The file of the path; or, if that is empty and may be, of the descriptor. */
static int find(int descriptor, const char *path, int flags, file_t **file) {
    if (!is_empty(path, flags)) {
        file_t *base;
        int code = base_of(descriptor, path, &base);
        return code == 0 ? hafti_io_path_find(base, path, file) : code;
    }
    if (descriptor == AT_FDCWD) {
        *file = hafti_io_state_here()->here;
        return 0;
    }
    object_t *object;
    int code = file_object(descriptor, &object, -EINVAL);
    if (code == 0)
        *file = object->file;
    return code;
}

/* ---- What a file is ---- */

/* The status of a descriptor that is of no file. */
static int other_status(const object_t *object, struct stat *status) {
    if (object->kind == HAFTI_IO_A_REAL_END)
        return HAFTI_IO_RESULT(fstat(object->real, status));
    mode_t mode = hafti_io_object_is_socket(object) ? S_IFSOCK | 0777 : S_IFIFO | 0600;
    *status = (struct stat){.st_ino = (ino_t)object->descriptor,
                            .st_mode = mode,
                            .st_nlink = 1,
                            .st_uid = geteuid(),
                            .st_gid = getegid(),
                            .st_blksize = 4096};
    return 0;
}

int hafti_io_calls_fstatat(int directory, const char *path, struct stat *status, int flags) {
    if ((flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) != 0)
        return -EINVAL;
    const object_t *object = hafti_io_object_of(hafti_io_state_here(), directory);
    if (is_empty(path, flags) && object != NULL && object->kind != HAFTI_IO_A_FILE)
        return other_status(object, status);
    file_t *file;
    int code = find(directory, path, flags, &file);
    if (code == 0)
        hafti_io_file_status(file, status);
    return code;
}

static struct timespec date_here(void) {
    return hafti_io_simulated_date(hafti_io_state_here()->simulated);
}

/* Permissions are not checked. */
int hafti_io_calls_faccessat(int directory, const char *path, int mode, int flags) {
    file_t *file;
    if ((mode & ~(R_OK | W_OK | X_OK)) != 0)
        return -EINVAL;
    return find(directory, path, flags, &file);
}

int hafti_io_calls_fchmodat(int directory, const char *path, mode_t mode, int flags) {
    file_t *file;
    int code = find(directory, path, flags, &file);
    if (code != 0)
        return code;
    file->mode = (file->mode & S_IFMT) | (mode & 07777);
    file->status_changed = date_here();
    return 0;
}

static bool is_stamp(const struct timespec *time) {
    return time->tv_nsec == UTIME_NOW || time->tv_nsec == UTIME_OMIT ||
           (time->tv_nsec >= 0 && time->tv_nsec < HAFT_IO_SECOND);
}
static void set_stamp(struct timespec *stamp, const struct timespec *time) {
    if (time->tv_nsec == UTIME_NOW)
        *stamp = date_here();
    else if (time->tv_nsec != UTIME_OMIT)
        *stamp = *time;
}

int hafti_io_calls_utimensat(int directory, const char *path, const struct timespec times[2],
                             int flags) {
    static const struct timespec both_now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    file_t *file;
    int code = find(directory, path, flags, &file);
    if (code != 0)
        return code;
    if (times == NULL)
        times = both_now;
    if (!is_stamp(&times[0]) || !is_stamp(&times[1]))
        return -EINVAL;
    set_stamp(&file->read, &times[0]);
    set_stamp(&file->changed, &times[1]);
    file->status_changed = date_here();
    return 0;
}

/* ---- Descriptors ---- */

int hafti_io_calls_openat(int directory, const char *path, int flags, mode_t mode) {
    file_t *base;
    int code = base_of(directory, path, &base);
    if (code == 0)
        code = hafti_io_path_open(base, path, flags, mode);
    if (code >= 0)
        hafti_io_number_of(hafti_io_state_here(), code)->closes_at_exec = (flags & O_CLOEXEC) != 0;
    return code;
}

/* Where the offset is counted from, or an error. */
static int64_t begin_of(const object_t *object, int64_t offset, int whence) {
    int64_t size = (int64_t)object->file->now.size;
    switch (whence) {
    case SEEK_SET:
        return 0;
    case SEEK_CUR:
        return object->position;
    case SEEK_END:
        return size;
    case SEEK_DATA: /* a file has no holes but the one behind it */
        return offset >= 0 && offset < size ? 0 : -ENXIO;
    case SEEK_HOLE:
        return offset >= 0 && offset < size ? size - offset : -ENXIO;
    default:
        return -EINVAL;
    }
}

int64_t hafti_io_calls_lseek(int descriptor, int64_t offset, int whence) {
    object_t *object;
    int code = file_object(descriptor, &object, -ESPIPE);
    if (code == 0 && (object->flags & O_PATH) != 0)
        code = -EBADF;
    if (code != 0 || S_ISCHR(object->file->mode))
        return code;
    int64_t begin = begin_of(object, offset, whence), position;
    if (begin < 0)
        return begin;
    if (__builtin_add_overflow(begin, offset, &position) || position < 0)
        return -EINVAL;
    return object->position = position;
}

static bool is_written_to(const object_t *object) {
    return (object->flags & O_ACCMODE) != O_RDONLY && (object->flags & O_PATH) == 0;
}

static int truncate_object(int descriptor, int64_t size) {
    object_t *object;
    int code = file_object(descriptor, &object, -EINVAL);
    if (code != 0)
        return code;
    if (!is_written_to(object) || S_ISCHR(object->file->mode))
        return (object->flags & O_PATH) != 0 ? -EBADF : -EINVAL;
    code = hafti_io_fault_of(hafti_io_state_here(), object, true);
    return code == 0 ? hafti_io_file_resize(hafti_io_state_here(), object->file, size) : code;
}

int hafti_io_calls_truncate(int directory, const char *path, int64_t size, int flags) {
    if (size < 0)
        return -EINVAL;
    if (is_empty(path, flags))
        return truncate_object(directory, size);
    file_t *file;
    int code = find(directory, path, 0, &file);
    if (code != 0)
        return code;
    return S_ISDIR(file->mode) ? -EISDIR : hafti_io_file_resize(hafti_io_state_here(), file, size);
}

int hafti_io_calls_fallocate(int descriptor, int mode, int64_t offset, int64_t size) {
    object_t *object;
    int64_t end;
    int code = file_object(descriptor, &object, -ESPIPE);
    if (code != 0)
        return code;
    if (offset < 0 || size <= 0)
        return -EINVAL;
    if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0)
        return -EOPNOTSUPP;
    if (!is_written_to(object))
        return -EBADF;
    if (S_ISCHR(object->file->mode))
        return -ENODEV;
    if (__builtin_add_overflow(offset, size, &end))
        return -EFBIG;
    code = hafti_io_fault_of(hafti_io_state_here(), object, true);
    if (code != 0 || (mode & FALLOC_FL_KEEP_SIZE) != 0 || (size_t)end <= object->file->now.size)
        return code;
    return hafti_io_file_resize(hafti_io_state_here(), object->file, end);
}

/* ---- Locks ---- */

static bool excludes(const object_t *held, const object_t *object, int lock) {
    return held != object && held->open && held->kind == HAFTI_IO_A_FILE &&
           held->file == object->file && held->lock != 0 &&
           (held->lock == LOCK_EX || lock == LOCK_EX);
}

/* Another lock that the object has had is lost in any case, as on Linux. */
int hafti_io_calls_flock(int descriptor, int command) {
    state_t *state = hafti_io_state_here();
    object_t *object;
    int lock = command & ~LOCK_NB;
    if (lock != LOCK_SH && lock != LOCK_EX && lock != LOCK_UN)
        return hafti_io_object_of(state, descriptor) != NULL ? -EINVAL : -EBADF;
    int code = file_object(descriptor, &object, -EINVAL);
    if (code == 0 && (object->flags & O_PATH) != 0)
        code = -EBADF;
    if (code != 0 || object->lock == lock)
        return code;
    object->lock = 0;
    if (lock == LOCK_UN)
        return 0;
    for (hafti_io_link_t *link = state->objects.next; link != &state->objects; link = link->next)
        if (excludes(hafti_io_object_at_link(link), object, lock))
            return -EWOULDBLOCK;
    object->lock = lock;
    return 0;
}

/* ---- Directories ---- */

int hafti_io_calls_list(int descriptor, struct dirent ***entries) {
    state_t *state = hafti_io_state_here();
    object_t *object;
    int code = file_object(descriptor, &object, -ENOTDIR);
    if (code == 0 && !S_ISDIR(object->file->mode))
        code = -ENOTDIR;
    if (code == 0 && (object->flags & O_PATH) != 0)
        code = -EBADF;
    if (code == 0)
        code = hafti_io_fault_of(state, object, false);
    if (code != 0)
        return code;
    int count = object->file->named ? hafti_io_directory_list(object->file, entries) : 0;
    for (int i = count - 1; i > 0; i--) {
        int other = (int)hafti_io_random(state->simulated, (uint64_t)i + 1);
        struct dirent *entry = (*entries)[i];
        (*entries)[i] = (*entries)[other];
        (*entries)[other] = entry;
    }
    return count;
}

int hafti_io_calls_mkdirat(int directory, const char *path, mode_t mode) {
    file_t *base;
    int code = base_of(directory, path, &base);
    return code == 0 ? hafti_io_path_mkdir(base, path, mode) : code;
}

int hafti_io_calls_unlinkat(int directory, const char *path, int flags) {
    file_t *base;
    if ((flags & ~AT_REMOVEDIR) != 0)
        return -EINVAL;
    int code = base_of(directory, path, &base);
    return code == 0
               ? hafti_io_path_remove(
                     base, path, flags != 0 ? HAFTI_IO_REMOVES_DIRECTORIES : HAFTI_IO_REMOVES_FILES)
               : code;
}

int hafti_io_calls_renameat2(int from_directory, const char *from, int to_directory, const char *to,
                             unsigned flags) {
    file_t *base;
    hafti_io_path_t old, new;
    if ((flags & ~RENAME_NOREPLACE) != 0)
        return -EINVAL;
    int code = base_of(from_directory, from, &base);
    if (code == 0)
        code = hafti_io_path_begin(base, from, &old, -EIO);
    if (code == 0)
        code = base_of(to_directory, to, &base);
    if (code == 0)
        code = hafti_io_path_look_at(hafti_io_state_here(), base, to, &new);
    return code == 0 ? hafti_io_path_rename(&old, &new, flags) : code;
}

/* Fails as on a file system without links. */
int hafti_io_calls_link(int directory, const char *path) {
    file_t *base;
    hafti_io_path_t place;
    int code = base_of(directory, path, &base);
    if (code == 0)
        code = hafti_io_path_begin(base, path, &place, -EIO);
    if (code != 0)
        return code;
    return place.file != NULL ? -EEXIST : place.slash ? -ENOENT : -EPERM;
}

int hafti_io_calls_chdir(int directory, const char *path, int flags) {
    file_t *file;
    int code = find(directory, path, flags, &file);
    if (code == 0 && !S_ISDIR(file->mode))
        code = -ENOTDIR;
    if (code == 0)
        hafti_io_go_to(hafti_io_state_here(), file);
    return code;
}

int hafti_io_calls_realpath(const char *path, char *into, size_t size) {
    hafti_io_path_t place;
    int code = hafti_io_path_begin(NULL, path, &place, -EIO);
    if (code != 0)
        return code;
    if (place.file == NULL)
        return -ENOENT;
    if (place.slash && !S_ISDIR(place.file->mode))
        return -ENOTDIR;
    return hafti_io_path_tell(hafti_io_state_here(), &place, into, size);
}

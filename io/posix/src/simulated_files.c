/* SPDX-License-Identifier: MIT */
/* The files of a simulation, as functions of the C library: see simulated.c. */
#include "simulations.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysmacros.h>

HAFTI_IO_FILE_CALLS(SIMULATED_ALIKE)
HAFTI_IO_FURTHER_FILE_CALLS(SIMULATED_ALIKE)

/* ---- Descriptors ---- */

static int simulated_openat(int directory, const char *path, int flags, ...) {
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return (int)SIMULATED(openat, directory, path, flags, mode);
}

static int simulated_ftruncate(int descriptor, off_t size) {
    return (int)SIMULATED(truncate, descriptor, "", size, AT_EMPTY_PATH);
}
static int simulated_truncate(const char *path, off_t size) {
    return (int)SIMULATED(truncate, AT_FDCWD, path, size, 0);
}
static int simulated_posix_fallocate(int descriptor, off_t offset, off_t size) {
    return -haft_io_simulated_calls()->fallocate(descriptor, 0, offset, size);
}
static int simulated_posix_fadvise(int descriptor, off_t offset, off_t size, int advice) {
    (void)offset, (void)size, (void)advice;
    return haft_io_simulated_calls()->fcntl(descriptor, F_GETFD, NULL) < 0 ? EBADF : 0;
}
/* Succeeds: a record lock excludes other processes only. */
static int simulated_lockf(int descriptor, int command, off_t size) {
    (void)size;
    if (command != F_LOCK && command != F_TLOCK && command != F_ULOCK && command != F_TEST)
        return (int)hafti_posix_result(-EINVAL);
    return (int)SIMULATED(fcntl, descriptor, F_SETLK, NULL);
}

/* ---- What a file is ---- */

static int simulated_fstatat(int directory, const char *restrict path, struct stat *restrict status,
                             int flags) {
    return status != NULL ? (int)SIMULATED(fstatat, directory, path, status, flags)
                          : (int)hafti_posix_result(-EFAULT);
}
static int simulated_fstat(int descriptor, struct stat *status) {
    return simulated_fstatat(descriptor, "", status, AT_EMPTY_PATH);
}

static struct statx_timestamp stamp_of(struct timespec time) {
    return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = (uint32_t)time.tv_nsec};
}
static int simulated_statx(int directory, const char *restrict path, int flags, unsigned mask,
                           struct statx *restrict status) {
    struct stat plain;
    (void)mask;
    if (status == NULL)
        return (int)hafti_posix_result(-EFAULT);
    int code = simulated_fstatat(directory, path, &plain, flags & ~AT_STATX_SYNC_TYPE);
    if (code == 0)
        *status = (struct statx){.stx_mask = STATX_BASIC_STATS,
                                 .stx_blksize = (uint32_t)plain.st_blksize,
                                 .stx_nlink = (uint32_t)plain.st_nlink,
                                 .stx_uid = plain.st_uid,
                                 .stx_gid = plain.st_gid,
                                 .stx_mode = (uint16_t)plain.st_mode,
                                 .stx_ino = plain.st_ino,
                                 .stx_size = (uint64_t)plain.st_size,
                                 .stx_blocks = (uint64_t)plain.st_blocks,
                                 .stx_atime = stamp_of(plain.st_atim),
                                 .stx_mtime = stamp_of(plain.st_mtim),
                                 .stx_ctime = stamp_of(plain.st_ctim),
                                 .stx_dev_major = major(plain.st_dev),
                                 .stx_dev_minor = minor(plain.st_dev)};
    return code;
}

static int simulated_euidaccess(const char *path, int mode) {
    return simulated_faccessat(AT_FDCWD, path, mode, 0);
}

static int simulated_fchmod(int descriptor, mode_t mode) {
    return simulated_fchmodat(descriptor, "", mode, AT_EMPTY_PATH);
}
/* Ignores the owner: all files belong to the caller. */
static int simulated_fchownat(int directory, const char *path, uid_t owner, gid_t group,
                              int flags) {
    (void)owner, (void)group;
    return simulated_faccessat(directory, path, F_OK, flags);
}
static int simulated_fchown(int descriptor, uid_t owner, gid_t group) {
    return simulated_fchownat(descriptor, "", owner, group, AT_EMPTY_PATH);
}

static int simulated_utimensat(int directory, const char *path, const struct timespec times[2],
                               int flags) {
    return path != NULL ? (int)SIMULATED(utimensat, directory, path, times, flags)
                        : (int)hafti_posix_result(-EINVAL);
}
static int simulated_futimens(int descriptor, const struct timespec times[2]) {
    return (int)SIMULATED(utimensat, descriptor, "", times, AT_EMPTY_PATH);
}

/* ---- Names ---- */

static int simulated_mknodat(int directory, const char *path, mode_t mode, dev_t device) {
    (void)mode, (void)device;
    return (int)SIMULATED(link, directory, path);
}
static int simulated_linkat(int from_directory, const char *from, int to_directory, const char *to,
                            int flags) {
    int code = simulated_faccessat(from_directory, from, F_OK, flags & AT_EMPTY_PATH);
    return code == 0 ? (int)SIMULATED(link, to_directory, to) : code;
}
static int simulated_symlinkat(const char *target, int directory, const char *path) {
    (void)target;
    return (int)SIMULATED(link, directory, path);
}
static ssize_t simulated_readlinkat(int directory, const char *restrict path, char *restrict into,
                                    size_t size) {
    (void)into, (void)size;
    int code = simulated_faccessat(directory, path, F_OK, 0);
    return code == 0 ? (int)hafti_posix_result(-EINVAL) : code;
}

/* Stores the path, where the caller has no memory in memory of malloc, of `size` if that is not
   0. */
static char *tell_path(const char *path, char *into, size_t size) {
    char whole[PATH_MAX];
    size_t room = size == 0 || size > sizeof whole ? sizeof whole : size;
    if (SIMULATED(realpath, path, whole, room) < 0)
        return NULL;
    if (into == NULL)
        into = malloc(size != 0 ? size : strlen(whole) + 1);
    return into != NULL ? strcpy(into, whole) : NULL;
}
static char *simulated_realpath(const char *restrict path, char *restrict into) {
    if (path != NULL)
        return tell_path(path, into, 0);
    hafti_posix_set_error(EINVAL);
    return NULL;
}
static char *simulated_getcwd(char *into, size_t size) {
    if (into == NULL || size != 0)
        return tell_path(".", into, size);
    hafti_posix_set_error(EINVAL);
    return NULL;
}
static int simulated_chdir(const char *path) {
    return (int)SIMULATED(chdir, AT_FDCWD, path, 0);
}
static int simulated_fchdir(int descriptor) {
    return (int)SIMULATED(chdir, descriptor, "", AT_EMPTY_PATH);
}

/* ---- The table ---- */

void hafti_posix_find_simulated_files(hafti_posix_system_t *simulated) {
#define IS_SIMULATED(name) simulated->name = simulated_##name;
    HAFT_POSIX_OF_FILES(IS_SIMULATED)
    HAFT_POSIX_CALLED_FUNCTIONS(IS_SIMULATED)
#undef IS_SIMULATED
    simulated->fdatasync = simulated_fsync;
}

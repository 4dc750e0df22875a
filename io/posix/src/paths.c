/* SPDX-License-Identifier: MIT */
/* Files by their names, and their status: a simulation with files serves these calls, or else the
   machine does. The machine's calls block the thread, for as long as a directory takes. */
#include "internal.h"

#include <limits.h>
#include <string.h>
#include <sys/time.h>
#include <utime.h>

/* ---- Which system ---- */

/* Libraries read these to learn of the machine and of the process. (Except for chance, below.) */
static bool is_of_machine(const char *path) {
    static const char *const folders[] = {"dev", "proc", "sys"};
    path += strspn(path, "/");
    size_t length = strcspn(path, "/");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strlen(folders[i]) == length && strncmp(path, folders[i], length) == 0)
            return true;
    return false;
}

static const hafti_posix_system_t *system_for(int directory, const char *path) {
    bool is_absolute = path != NULL && path[0] == '/';
    if (!is_absolute && directory >= 0)
        return hafti_posix_system_of(directory);
    const hafti_posix_system_t *system = hafti_posix_file_system();
    return system != hafti_posix_system() && is_absolute && is_of_machine(path)
               ? hafti_posix_system()
               : system;
}

const hafti_posix_system_t *hafti_posix_path_system_asked(int directory, const char *path) {
    const hafti_posix_system_t *system = system_for(directory, path);
    if (system == hafti_posix_system())
        return system;
    int before = hafti_posix_error();
    HAFT_PERFORM(haft_io_yield); /* A cancelled task does what can be done at once. */
    hafti_posix_set_error(before);
    return system;
}

const hafti_posix_system_t *hafti_posix_opening_system(int directory, const char *path) {
    if (hafti_posix_may_simulate() && hafti_io_is_chance(path))
        return hafti_posix_simulated_system();
    return hafti_posix_path_system(directory, path);
}

/* ---- What a file is ---- */

HAFT_POSIX_EXPORT int fstatat(int directory, const char *restrict path,
                              struct stat *restrict status, int flags) {
    return PATH_SYSTEM(directory, path, fstatat)(directory, path, status, flags);
}
HAFT_POSIX_EXPORT int stat(const char *restrict path, struct stat *restrict status) {
    return fstatat(AT_FDCWD, path, status, 0);
}
HAFT_POSIX_EXPORT int lstat(const char *restrict path, struct stat *restrict status) {
    return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
HAFT_POSIX_EXPORT int fstat(int descriptor, struct stat *status) {
    return SYSTEM_OF(descriptor, fstat)(descriptor, status);
}

HAFT_POSIX_EXPORT int statx(int directory, const char *restrict path, int flags, unsigned mask,
                            struct statx *restrict status) {
    return PATH_SYSTEM(directory, path, statx)(directory, path, flags, mask, status);
}

HAFT_POSIX_EXPORT int faccessat(int directory, const char *path, int mode, int flags) {
    return PATH_SYSTEM(directory, path, faccessat)(directory, path, mode, flags);
}
HAFT_POSIX_EXPORT int access(const char *path, int mode) {
    return faccessat(AT_FDCWD, path, mode, 0);
}
HAFT_POSIX_EXPORT int euidaccess(const char *path, int mode) {
    return PATH_SYSTEM(AT_FDCWD, path, euidaccess)(path, mode);
}
HAFT_POSIX_ALSO(eaccess, euidaccess)

/* ---- Changing the status ---- */

HAFT_POSIX_EXPORT int fchmodat(int directory, const char *path, mode_t mode, int flags) {
    return PATH_SYSTEM(directory, path, fchmodat)(directory, path, mode, flags);
}
HAFT_POSIX_EXPORT int chmod(const char *path, mode_t mode) {
    return fchmodat(AT_FDCWD, path, mode, 0);
}
HAFT_POSIX_EXPORT int lchmod(const char *path, mode_t mode) {
    return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}
HAFT_POSIX_EXPORT int fchmod(int descriptor, mode_t mode) {
    return SYSTEM_OF(descriptor, fchmod)(descriptor, mode);
}

HAFT_POSIX_EXPORT int fchownat(int directory, const char *path, uid_t owner, gid_t group,
                               int flags) {
    return PATH_SYSTEM(directory, path, fchownat)(directory, path, owner, group, flags);
}
HAFT_POSIX_EXPORT int chown(const char *path, uid_t owner, gid_t group) {
    return fchownat(AT_FDCWD, path, owner, group, 0);
}
HAFT_POSIX_EXPORT int lchown(const char *path, uid_t owner, gid_t group) {
    return fchownat(AT_FDCWD, path, owner, group, AT_SYMLINK_NOFOLLOW);
}
HAFT_POSIX_EXPORT int fchown(int descriptor, uid_t owner, gid_t group) {
    return SYSTEM_OF(descriptor, fchown)(descriptor, owner, group);
}

HAFT_POSIX_EXPORT int utimensat(int directory, const char *path, const struct timespec times[2],
                                int flags) {
    return PATH_SYSTEM(directory, path, utimensat)(directory, path, times, flags);
}
HAFT_POSIX_EXPORT int futimens(int descriptor, const struct timespec times[2]) {
    return SYSTEM_OF(descriptor, futimens)(descriptor, times);
}
/* Converts the times of a call without nanoseconds; NULL: now. */
static const struct timespec *exact_of(const struct timeval times[2], struct timespec exact[2]) {
    for (int i = 0; times != NULL && i < 2; i++) {
        bool is_time = times[i].tv_usec >= 0 && times[i].tv_usec < 1000000;
        exact[i] = (struct timespec){times[i].tv_sec, is_time ? times[i].tv_usec * 1000 : -1};
    }
    return times != NULL ? exact : NULL;
}
HAFT_POSIX_EXPORT int utimes(const char *path, const struct timeval times[2]) {
    struct timespec exact[2];
    return utimensat(AT_FDCWD, path, exact_of(times, exact), 0);
}
HAFT_POSIX_EXPORT int lutimes(const char *path, const struct timeval times[2]) {
    struct timespec exact[2];
    return utimensat(AT_FDCWD, path, exact_of(times, exact), AT_SYMLINK_NOFOLLOW);
}
HAFT_POSIX_EXPORT int futimes(int descriptor, const struct timeval times[2]) {
    struct timespec exact[2];
    return futimens(descriptor, exact_of(times, exact));
}
HAFT_POSIX_EXPORT int futimesat(int directory, const char *path, const struct timeval times[2]) {
    struct timespec exact[2];
    return path == NULL ? futimens(directory, exact_of(times, exact))
                        : utimensat(directory, path, exact_of(times, exact), 0);
}
HAFT_POSIX_EXPORT int utime(const char *path, const struct utimbuf *times) {
    return utimensat(
        AT_FDCWD, path,
        times != NULL ? (struct timespec[]){{times->actime, 0}, {times->modtime, 0}} : NULL, 0);
}

HAFT_POSIX_EXPORT int truncate(const char *path, off_t size) {
    return PATH_SYSTEM(AT_FDCWD, path, truncate)(path, size);
}

/* ---- Names ---- */

HAFT_POSIX_EXPORT int mkdirat(int directory, const char *path, mode_t mode) {
    return PATH_SYSTEM(directory, path, mkdirat)(directory, path, mode);
}
HAFT_POSIX_EXPORT int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

HAFT_POSIX_EXPORT int mknodat(int directory, const char *path, mode_t mode, dev_t device) {
    return PATH_SYSTEM(directory, path, mknodat)(directory, path, mode, device);
}
HAFT_POSIX_EXPORT int mknod(const char *path, mode_t mode, dev_t device) {
    return mknodat(AT_FDCWD, path, mode, device);
}
HAFT_POSIX_EXPORT int mkfifoat(int directory, const char *path, mode_t mode) {
    return mknodat(directory, path, mode | S_IFIFO, 0);
}
HAFT_POSIX_EXPORT int mkfifo(const char *path, mode_t mode) {
    return mkfifoat(AT_FDCWD, path, mode);
}

HAFT_POSIX_EXPORT int unlinkat(int directory, const char *path, int flags) {
    return PATH_SYSTEM(directory, path, unlinkat)(directory, path, flags);
}
HAFT_POSIX_EXPORT int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}
HAFT_POSIX_EXPORT int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
HAFT_POSIX_EXPORT int remove(const char *path) {
    return PATH_SYSTEM(AT_FDCWD, path, remove)(path);
}

/* NULL, and errno: the two names are of different systems. */
static const hafti_posix_system_t *system_of_both(int directory, const char *path, int other,
                                                  const char *other_path) {
    if (system_for(directory, path) == system_for(other, other_path))
        return hafti_posix_path_system(directory, path);
    hafti_posix_set_error(EXDEV);
    return NULL;
}

HAFT_POSIX_EXPORT int renameat2(int from_directory, const char *from, int to_directory,
                                const char *to, unsigned flags) {
    const hafti_posix_system_t *system = system_of_both(from_directory, from, to_directory, to);
    return system != NULL ? system->renameat2(from_directory, from, to_directory, to, flags) : -1;
}
HAFT_POSIX_EXPORT int renameat(int from_directory, const char *from, int to_directory,
                               const char *to) {
    return renameat2(from_directory, from, to_directory, to, 0);
}
HAFT_POSIX_EXPORT int rename(const char *from, const char *to) {
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

HAFT_POSIX_EXPORT int linkat(int from_directory, const char *from, int to_directory, const char *to,
                             int flags) {
    const hafti_posix_system_t *system = system_of_both(from_directory, from, to_directory, to);
    return system != NULL ? system->linkat(from_directory, from, to_directory, to, flags) : -1;
}
HAFT_POSIX_EXPORT int link(const char *from, const char *to) {
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

HAFT_POSIX_EXPORT int symlinkat(const char *target, int directory, const char *path) {
    return PATH_SYSTEM(directory, path, symlinkat)(target, directory, path);
}
HAFT_POSIX_EXPORT int symlink(const char *target, const char *path) {
    return symlinkat(target, AT_FDCWD, path);
}

HAFT_POSIX_EXPORT ssize_t readlinkat(int directory, const char *restrict path, char *restrict into,
                                     size_t size) {
    return PATH_SYSTEM(directory, path, readlinkat)(directory, path, into, size);
}
HAFT_POSIX_EXPORT ssize_t readlink(const char *restrict path, char *restrict into, size_t size) {
    return readlinkat(AT_FDCWD, path, into, size);
}

HAFT_POSIX_EXPORT char *realpath(const char *restrict path, char *restrict into) {
    return PATH_SYSTEM(AT_FDCWD, path, realpath)(path, into);
}
HAFT_POSIX_EXPORT char *canonicalize_file_name(const char *path) {
    return realpath(path, NULL);
}

/* ---- The current directory ---- */

HAFT_POSIX_EXPORT char *getcwd(char *into, size_t size) {
    return PATH_SYSTEM(AT_FDCWD, ".", getcwd)(into, size);
}
HAFT_POSIX_EXPORT int chdir(const char *path) {
    return PATH_SYSTEM(AT_FDCWD, path, chdir)(path);
}
HAFT_POSIX_EXPORT int fchdir(int descriptor) {
    return SYSTEM_OF(descriptor, fchdir)(descriptor);
}

/* ---- Other names: of large files, of older glibc, and of the fortified headers ---- */

HAFT_POSIX_ALSO_64(fstatat)
HAFT_POSIX_ALSO_64(stat)
HAFT_POSIX_ALSO_64(lstat)
HAFT_POSIX_ALSO_64(fstat)
HAFT_POSIX_ALSO(truncate64, truncate)

/* Each has the version of the structure, of which there is one. */
int __xstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int descriptor, struct stat *status);
int __fxstatat(int version, int directory, const char *path, struct stat *status, int flags);
HAFT_POSIX_EXPORT int __xstat(int version, const char *path, struct stat *status) {
    (void)version;
    return stat(path, status);
}
HAFT_POSIX_EXPORT int __lxstat(int version, const char *path, struct stat *status) {
    (void)version;
    return lstat(path, status);
}
HAFT_POSIX_EXPORT int __fxstat(int version, int descriptor, struct stat *status) {
    (void)version;
    return fstat(descriptor, status);
}
HAFT_POSIX_EXPORT int __fxstatat(int version, int directory, const char *path, struct stat *status,
                                 int flags) {
    (void)version;
    return fstatat(directory, path, status, flags);
}
/* These have the device, too. */
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);
int __xmknodat(int version, int directory, const char *path, mode_t mode, dev_t *device);
HAFT_POSIX_EXPORT int __xmknod(int version, const char *path, mode_t mode, dev_t *device) {
    (void)version;
    return mknod(path, mode, *device);
}
HAFT_POSIX_EXPORT int __xmknodat(int version, int directory, const char *path, mode_t mode,
                                 dev_t *device) {
    (void)version;
    return mknodat(directory, path, mode, *device);
}
HAFT_POSIX_ALSO_64(__xstat)
HAFT_POSIX_ALSO_64(__lxstat)
HAFT_POSIX_ALSO_64(__fxstat)
HAFT_POSIX_ALSO_64(__fxstatat)

char *__realpath_chk(const char *path, char *into, size_t room);
char *__getcwd_chk(char *into, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *into, size_t size, size_t room);
ssize_t __readlinkat_chk(int directory, const char *path, char *into, size_t size, size_t room);
HAFT_POSIX_EXPORT char *__realpath_chk(const char *path, char *into, size_t room) {
    if (room < PATH_MAX)
        __chk_fail();
    return realpath(path, into);
}
HAFT_POSIX_EXPORT char *__getcwd_chk(char *into, size_t size, size_t room) {
    if (size > room)
        __chk_fail();
    return getcwd(into, size);
}
HAFT_POSIX_EXPORT ssize_t __readlinkat_chk(int directory, const char *path, char *into, size_t size,
                                           size_t room) {
    if (size > room)
        __chk_fail();
    return readlinkat(directory, path, into, size);
}
HAFT_POSIX_EXPORT ssize_t __readlink_chk(const char *path, char *into, size_t size, size_t room) {
    return __readlinkat_chk(AT_FDCWD, path, into, size, room);
}

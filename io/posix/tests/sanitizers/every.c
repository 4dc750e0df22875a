/* SPDX-License-Identifier: MIT */
/*
 * Calls every function that libhaft-posix replaces, once on a thread without tasks and once on a
 * task, and prints the names. run.sh builds it with each sanitizer, whose own replacements stand
 * before those of libhaft-posix and call these, and compares the names with the library's.
 */
#include <haft/io.h>
#include <haft/posix.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <resolv.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#ifdef __has_feature /* of clang */
#    if __has_feature(thread_sanitizer)
#        define OF_THREADS
#    endif
#endif
#ifdef __SANITIZE_THREAD__ /* of gcc */
#    define OF_THREADS
#endif

/* Functions that headers declare only where their compiler asks for them, or no longer. */
#define ALSO(name, of) extern __typeof__(of) name
ALSO(__close, close);
ALSO(__connect, connect);
ALSO(__dup2, dup2);
ALSO(__fcntl, fcntl);
ALSO(__lseek, lseek);
ALSO(__nanosleep, nanosleep);
ALSO(__open, open);
ALSO(__open64, open);
ALSO(__poll, poll);
ALSO(__pread64, pread);
ALSO(__pwrite64, pwrite);
ALSO(__read, read);
ALSO(__select, select);
ALSO(__send, send);
ALSO(__sigsuspend, sigsuspend);
ALSO(__wait, wait);
ALSO(__waitpid, waitpid);
ALSO(__write, write);
ssize_t __pread_chk(int file, void *into, size_t size, off_t offset, size_t room);
ALSO(__pread64_chk, __pread_chk);
ssize_t __read_chk(int file, void *into, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *into, size_t size, size_t room);
ssize_t __readlinkat_chk(int folder, const char *path, char *into, size_t size, size_t room);
ssize_t __recv_chk(int socket, void *into, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int socket, void *into, size_t size, size_t room, int flags,
                       struct sockaddr *address, socklen_t *address_size);
char *__realpath_chk(const char *path, char *into, size_t room);
char *__getcwd_chk(char *into, size_t size, size_t room);
int __poll_chk(struct pollfd *entries, nfds_t count, int limit, size_t room);
int __ppoll_chk(struct pollfd *entries, nfds_t count, const struct timespec *limit,
                const sigset_t *mask, size_t room);
int __open_2(const char *path, int flags);
ALSO(__open64_2, __open_2);
int __openat_2(int folder, const char *path, int flags);
ALSO(__openat64_2, __openat_2);
int __xstat(int version, const char *path, struct stat *status);
ALSO(__lxstat, __xstat);
int __fxstat(int version, int file, struct stat *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __xstat64(int version, const char *path, struct stat64 *status);
ALSO(__lxstat64, __xstat64);
int __fxstat64(int version, int file, struct stat64 *status);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);
int __xmknodat(int version, int folder, const char *path, mode_t mode, dev_t *device);
int __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
void __cxa_guard_abort(uint64_t *guard);

static bool prints;

static void named(const char *name) {
    if (prints)
        printf("%s\n", name);
}
static void expect(bool holds, const char *name) {
    if (holds)
        return;
    fprintf(stderr, "%s %s: %s\n", name, haft_io_self() != NULL ? "on a task" : "on the thread",
            strerror(errno));
    exit(1);
}
/* The call's result is this number; it is kept, and neither NULL nor -1; it does not matter. */
#define IS(result, name, ...)                                                                      \
    (named(#name), expect((long)(name)__VA_ARGS__ == (long)(result), #name))
#define GIVES(place, name, ...)                                                                    \
    (named(#name), (place) = (name)__VA_ARGS__, expect((intptr_t)(place) > 0, #name))
#define DOES(name, ...) (named(#name), (void)(name)__VA_ARGS__)

static char text[4096] = "text"; /* of whatever is read and written */
static struct iovec part = {text, 4};
static const struct timespec no_time;
static int pipe_ends[2];

/* ---- Descriptors ---- */

static void read_and_write(void) {
    int *ends = pipe_ends;
    expect(pipe(ends) == 0, "pipe");
    IS(4, write, (ends[1], text, 4));
    IS(4, read, (ends[0], text, 4));
    IS(4, __write, (ends[1], text, 4));
    IS(4, __read, (ends[0], text, 4));
    IS(4, writev, (ends[1], &part, 1));
    IS(4, readv, (ends[0], &part, 1));
    IS(4, write, (ends[1], text, 4));
    IS(4, __read_chk, (ends[0], text, 4, sizeof text));
    int file = open("bytes", O_RDWR | O_CREAT | O_TRUNC, 0600);
    IS(4, pwrite, (file, text, 4, 0));
    IS(4, pwrite64, (file, text, 4, 0));
    IS(4, __pwrite64, (file, text, 4, 0));
    IS(4, pwritev, (file, &part, 1, 0));
    IS(4, pwritev64, (file, &part, 1, 0));
    IS(4, pwritev2, (file, &part, 1, 0, 0));
    IS(4, pwritev64v2, (file, &part, 1, 0, 0));
    IS(4, pread, (file, text, 4, 0));
    IS(4, pread64, (file, text, 4, 0));
    IS(4, __pread64, (file, text, 4, 0));
    IS(4, __pread_chk, (file, text, 4, 0, sizeof text));
    IS(4, __pread64_chk, (file, text, 4, 0, sizeof text));
    IS(4, preadv, (file, &part, 1, 0));
    IS(4, preadv64, (file, &part, 1, 0));
    IS(4, preadv2, (file, &part, 1, 0, 0));
    IS(4, preadv64v2, (file, &part, 1, 0, 0));
    IS(0, fsync, (file));
    IS(0, fdatasync, (file));
    IS(4, lseek, (file, 0, SEEK_END));
    IS(4, lseek64, (file, 0, SEEK_END));
    IS(0, __lseek, (file, 0, SEEK_SET));
    int copy = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
    off_t from = 0;
    off64_t from64 = 0;
    IS(4, sendfile, (copy, file, &from, 4));
    from64 = 0;
    IS(4, sendfile64, (copy, file, &from64, 4));
    from64 = 0;
    DOES(copy_file_range, (file, &from64, copy, NULL, 4, 0)); /* Not every file system has it. */
    from64 = 0;
    IS(4, splice, (file, &from64, ends[1], NULL, 4, 0));
    int other[2];
    expect(pipe(other) == 0, "pipe");
    IS(4, tee, (ends[0], other[1], 4, 0));
    close(other[0]);
    close(other[1]);
    close(copy);
    close(file);
}

static void change_descriptors(void) {
    int *ends = pipe_ends;
    int more;
    GIVES(more, dup, (ends[0]));
    IS(more, dup2, (ends[0], more));
    IS(more, __dup2, (ends[0], more));
    IS(more, dup3, (ends[1], more, O_CLOEXEC));
    IS(FD_CLOEXEC, fcntl, (more, F_GETFD));
    IS(FD_CLOEXEC, fcntl64, (more, F_GETFD));
    IS(FD_CLOEXEC, __fcntl, (more, F_GETFD));
    int count = 0;
    IS(0, ioctl, (ends[0], FIONREAD, &count));
    IS(0, close, (more));
    IS(-1, __close, (more));
    IS(0, close_range, (100000, 100001, 0));
    DOES(closefrom, (100000));
    close(ends[0]);
    close(ends[1]);
}

static void wait_for_descriptors(void) {
    int *ends = pipe_ends;
    expect(pipe(ends) == 0 && write(ends[1], text, 1) == 1, "pipe");
    struct pollfd entry = {ends[0], POLLIN, 0};
    IS(1, poll, (&entry, 1, -1));
    IS(1, __poll, (&entry, 1, -1));
    IS(1, __poll_chk, (&entry, 1, -1, sizeof entry));
    IS(1, ppoll, (&entry, 1, NULL, NULL));
    IS(1, __ppoll_chk, (&entry, 1, NULL, NULL, sizeof entry));
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(ends[0], &readable);
    IS(1, select, (ends[0] + 1, &readable, NULL, NULL, NULL));
    IS(1, __select, (ends[0] + 1, &readable, NULL, NULL, NULL));
    IS(1, pselect, (ends[0] + 1, &readable, NULL, NULL, NULL, NULL));
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    expect(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll_ctl");
    IS(1, epoll_wait, (epoll, &event, 1, -1));
    IS(1, epoll_pwait, (epoll, &event, 1, -1, NULL));
    close(epoll);
    close(ends[0]);
    close(ends[1]);
}

/* ---- Sockets ---- */

static void use_sockets(void) {
    int pair[2];
    IS(0, socketpair, (AF_UNIX, SOCK_STREAM, 0, pair));
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr messages = {.msg_hdr = message};
    IS(4, send, (pair[0], text, 4, 0));
    IS(4, recv, (pair[1], text, 4, 0));
    IS(4, __send, (pair[0], text, 4, 0));
    IS(4, __recv_chk, (pair[1], text, 4, sizeof text, 0));
    IS(4, sendto, (pair[0], text, 4, 0, NULL, 0));
    IS(4, recvfrom, (pair[1], text, 4, 0, NULL, NULL));
    IS(4, sendmsg, (pair[0], &message, 0));
    IS(4, recvmsg, (pair[1], &message, 0));
    IS(1, sendmmsg, (pair[0], &messages, 1, 0));
    IS(1, recvmmsg, (pair[1], &messages, 1, 0, NULL));
    IS(4, send, (pair[0], text, 4, 0));
    IS(4, __recvfrom_chk, (pair[1], text, 4, sizeof text, 0, NULL, NULL));
    IS(0, shutdown, (pair[0], SHUT_WR));
    close(pair[0]);
    close(pair[1]);

    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = (struct sockaddr *)(void *)&at;
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    IS(0, bind, (listener, address, size));
    IS(0, listen, (listener, 4));
    IS(0, getsockname, (listener, address, &size));
    for (int i = 0; i < 2; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0), server;
        if (i == 0) {
            IS(0, connect, (client, address, size));
            GIVES(server, accept, (listener, NULL, NULL));
        } else {
            IS(0, __connect, (client, address, size));
            GIVES(server, accept4, (listener, NULL, NULL, SOCK_CLOEXEC));
        }
        int value = 1;
        socklen_t room = sizeof value;
        IS(0, setsockopt, (client, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value));
        IS(0, getsockopt, (client, SOL_SOCKET, SO_KEEPALIVE, &value, &room));
        IS(0, getpeername, (client, address, &size));
        close(client);
        close(server);
    }
    close(listener);
    int last;
    GIVES(last, socket, (AF_INET, SOCK_STREAM, 0));
    close(last);
}

/* ---- Files ---- */

static void open_files(void) {
    const int make = O_RDWR | O_CREAT;
    int opened;
#define OPENS(name, ...)                                                                           \
    do {                                                                                           \
        GIVES(opened, name, __VA_ARGS__);                                                          \
        close(opened);                                                                             \
    } while (0)
    OPENS(open, ("file", make, 0600));
    OPENS(open64, ("file", make, 0600));
    OPENS(__open, ("file", make, 0600));
    OPENS(__open64, ("file", make, 0600));
    OPENS(openat, (AT_FDCWD, "file", make, 0600));
    OPENS(openat64, (AT_FDCWD, "file", make, 0600));
    OPENS(creat, ("file", 0600));
    OPENS(creat64, ("file", 0600));
    OPENS(__open_2, ("file", O_RDONLY));
    OPENS(__open64_2, ("file", O_RDONLY));
    OPENS(__openat_2, (AT_FDCWD, "file", O_RDONLY));
    OPENS(__openat64_2, (AT_FDCWD, "file", O_RDONLY));
#define TEMPORARY(name, ending, ...)                                                               \
    do {                                                                                           \
        char path[] = "XXXXXX" ending;                                                             \
        OPENS(name, __VA_ARGS__);                                                                  \
        unlink(path);                                                                              \
    } while (0)
    TEMPORARY(mkstemp, "", (path));
    TEMPORARY(mkstemp64, "", (path));
    TEMPORARY(mkostemp, "", (path, O_CLOEXEC));
    TEMPORARY(mkostemp64, "", (path, O_CLOEXEC));
    TEMPORARY(mkstemps, ".c", (path, 2));
    TEMPORARY(mkstemps64, ".c", (path, 2));
    TEMPORARY(mkostemps, ".c", (path, 2, O_CLOEXEC));
    TEMPORARY(mkostemps64, ".c", (path, 2, O_CLOEXEC));
    char folder[] = "XXXXXX";
    IS((intptr_t)folder, mkdtemp, (folder));
    rmdir(folder);
}

static void use_a_file(void) {
    struct stat status;
    struct stat64 status64;
    struct statx statusx;
    int file = open("file", O_RDWR | O_CREAT, 0600);
    IS(0, stat, ("file", &status));
    IS(0, stat64, ("file", &status64));
    IS(0, lstat, ("file", &status));
    IS(0, lstat64, ("file", &status64));
    IS(0, fstat, (file, &status));
    IS(0, fstat64, (file, &status64));
    IS(0, fstatat, (AT_FDCWD, "file", &status, 0));
    IS(0, fstatat64, (AT_FDCWD, "file", &status64, 0));
    IS(0, __xstat, (1, "file", &status));
    IS(0, __xstat64, (1, "file", &status64));
    IS(0, __lxstat, (1, "file", &status));
    IS(0, __lxstat64, (1, "file", &status64));
    IS(0, __fxstat, (1, file, &status));
    IS(0, __fxstat64, (1, file, &status64));
    IS(0, __fxstatat, (1, AT_FDCWD, "file", &status, 0));
    IS(0, __fxstatat64, (1, AT_FDCWD, "file", &status64, 0));
    IS(0, statx, (AT_FDCWD, "file", 0, STATX_SIZE, &statusx));
    IS(0, access, ("file", R_OK));
    IS(0, faccessat, (AT_FDCWD, "file", R_OK, 0));
    IS(0, euidaccess, ("file", R_OK));
    IS(0, eaccess, ("file", R_OK));
    IS(0, chmod, ("file", 0600));
    DOES(lchmod, ("file", 0600)); /* Not every system has it. */
    IS(0, fchmod, (file, 0600));
    IS(0, fchmodat, (AT_FDCWD, "file", 0600, 0));
    const uid_t same = (uid_t)-1;
    IS(0, chown, ("file", same, same));
    IS(0, lchown, ("file", same, same));
    IS(0, fchown, (file, same, same));
    IS(0, fchownat, (AT_FDCWD, "file", same, same, 0));
    IS(0, utime, ("file", NULL));
    IS(0, utimes, ("file", NULL));
    IS(0, lutimes, ("file", NULL));
    IS(0, futimes, (file, NULL));
    IS(0, futimesat, (AT_FDCWD, "file", NULL));
    IS(0, utimensat, (AT_FDCWD, "file", NULL, 0));
    IS(0, futimens, (file, NULL));
    IS(0, truncate, ("file", 8));
    IS(0, truncate64, ("file", 8));
    IS(0, ftruncate, (file, 8));
    IS(0, ftruncate64, (file, 8));
    DOES(fallocate, (file, 0, 0, 8)); /* Not every file system has it. */
    DOES(fallocate64, (file, 0, 0, 8));
    IS(0, posix_fallocate, (file, 0, 8));
    IS(0, posix_fallocate64, (file, 0, 8));
    IS(0, posix_fadvise, (file, 0, 8, POSIX_FADV_NORMAL));
    IS(0, posix_fadvise64, (file, 0, 8, POSIX_FADV_NORMAL));
    IS(0, flock, (file, LOCK_EX));
    IS(0, lockf, (file, F_LOCK, 0));
    IS(0, lockf64, (file, F_LOCK, 0));
    close(file);
}

static void name_files(void) {
    dev_t none = 0;
    IS(0, mkdir, ("folder", 0700));
    IS(0, rmdir, ("folder"));
    IS(0, mkdirat, (AT_FDCWD, "folder", 0700));
    IS(0, remove, ("folder"));
    IS(0, mkfifo, ("fifo", 0600));
    IS(0, unlink, ("fifo"));
    IS(0, mkfifoat, (AT_FDCWD, "fifo", 0600));
    IS(0, unlinkat, (AT_FDCWD, "fifo", 0));
    IS(0, mknod, ("fifo", S_IFIFO | 0600, none));
    unlink("fifo");
    IS(0, mknodat, (AT_FDCWD, "fifo", S_IFIFO | 0600, none));
    unlink("fifo");
    IS(0, __xmknod, (0, "fifo", S_IFIFO | 0600, &none));
    unlink("fifo");
    IS(0, __xmknodat, (0, AT_FDCWD, "fifo", S_IFIFO | 0600, &none));
    IS(0, rename, ("fifo", "other"));
    IS(0, renameat, (AT_FDCWD, "other", AT_FDCWD, "fifo"));
    IS(0, renameat2, (AT_FDCWD, "fifo", AT_FDCWD, "other", 0));
    unlink("other");
    IS(0, link, ("file", "other"));
    unlink("other");
    IS(0, linkat, (AT_FDCWD, "file", AT_FDCWD, "other", 0));
    unlink("other");
    IS(0, symlink, ("file", "other"));
    IS(4, readlink, ("other", text, sizeof text));
    IS(4, __readlink_chk, ("other", text, 100, sizeof text));
    unlink("other");
    IS(0, symlinkat, ("file", AT_FDCWD, "other"));
    IS(4, readlinkat, (AT_FDCWD, "other", text, sizeof text));
    IS(4, __readlinkat_chk, (AT_FDCWD, "other", text, 100, sizeof text));
    unlink("other");
    static char path[PATH_MAX];
    IS((intptr_t)path, realpath, ("file", path));
    IS((intptr_t)path, __realpath_chk, ("file", path, sizeof path));
    char *made;
    GIVES(made, canonicalize_file_name, ("file"));
    free(made);
    IS((intptr_t)path, getcwd, (path, sizeof path));
    IS((intptr_t)path, __getcwd_chk, (path, sizeof path, sizeof path));
    IS(0, chdir, ("."));
    int here = open(".", O_RDONLY | O_DIRECTORY);
    IS(0, fchdir, (here));
    close(here);
}

static void read_folders(void) {
    DIR *folder;
    GIVES(folder, opendir, ("."));
    struct dirent entry, *next;
    struct dirent64 entry64, *next64;
    GIVES(next, readdir, (folder));
    GIVES(next64, readdir64, (folder));
    IS(0, readdir_r, (folder, &entry, &next));
    IS(0, readdir64_r, (folder, &entry64, &next64));
    long place;
    GIVES(place, telldir, (folder));
    DOES(seekdir, (folder, place));
    DOES(rewinddir, (folder));
    int again;
    GIVES(again, dirfd, (folder));
    again = dup(again);
    IS(0, closedir, (folder));
    GIVES(folder, fdopendir, (again));
    closedir(folder);
    struct dirent **entries;
    struct dirent64 **entries64;
    int count;
    GIVES(count, scandir, (".", &entries, NULL, NULL));
    while (count > 0)
        free(entries[--count]);
    free(entries);
    GIVES(count, scandir64, (".", &entries64, NULL, NULL));
    while (count > 0)
        free(entries64[--count]);
    free(entries64);
}

static void use_streams(void) {
    FILE *stream;
    GIVES(stream, fopen, ("file", "r"));
    GIVES(stream, freopen, ("file", "r", stream));
    GIVES(stream, freopen64, ("file", "r", stream));
    IS(0, fclose, (stream));
    GIVES(stream, fopen64, ("file", "r"));
    fclose(stream);
    GIVES(stream, fdopen, (open("file", O_RDONLY), "r"));
    fclose(stream);
    GIVES(stream, popen, ("exit 0", "r"));
    IS(0, pclose, (stream));
}

/* ---- Time, chance, names ---- */

static void ask_clocks(void) {
    struct timespec now;
    struct timeval date;
    IS(0, clock_gettime, (CLOCK_MONOTONIC, &now));
    IS(0, gettimeofday, (&date, NULL));
    time_t seconds;
    GIVES(seconds, time, (NULL));
    IS(TIME_UTC, timespec_get, (&now, TIME_UTC));
    IS(0, sleep, (0));
    IS(0, usleep, (1));
    IS(0, nanosleep, (&no_time, NULL));
    IS(0, __nanosleep, (&no_time, NULL));
    IS(0, clock_nanosleep, (CLOCK_MONOTONIC, 0, &no_time, NULL));
    IS(0, thrd_sleep, (&no_time, NULL));
    IS(0, sched_yield, ());
    IS(4, getrandom, (text, 4, 0));
    IS(0, getentropy, (text, 4));
#if __GLIBC_PREREQ(2, 36)
    IS(0, arc4random_uniform, (1));
    DOES(arc4random, ());
    DOES(arc4random_buf, (text, 4));
#endif
}

/* (No name is resolved elsewhere: these are in the machine's files, or too long for a question.) */
static void resolve_names(void) {
    struct addrinfo *addresses;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    IS(0, getaddrinfo, ("127.0.0.1", NULL, &hints, &addresses));
    IS(0, getnameinfo,
       (addresses->ai_addr, addresses->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST));
    freeaddrinfo(addresses);
    struct hostent host, *found;
    int error;
    static char room[4096];
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    GIVES(found, gethostbyname, ("127.0.0.1"));
    GIVES(found, gethostbyname2, ("127.0.0.1", AF_INET));
    IS(0, gethostbyname_r, ("127.0.0.1", &host, room, sizeof room, &found, &error));
    IS(0, gethostbyname2_r, ("127.0.0.1", AF_INET, &host, room, sizeof room, &found, &error));
    DOES(gethostbyaddr, (&loopback, sizeof loopback, AF_INET));
    DOES(gethostbyaddr_r,
         (&loopback, sizeof loopback, AF_INET, &host, room, sizeof room, &found, &error));
    static char name[2000];
    memset(name, 'a', sizeof name - 1);
    unsigned char answer[512];
    struct __res_state state = {0};
    res_ninit(&state);
    IS(-1, res_query, (name, ns_c_in, ns_t_a, answer, sizeof answer));
    IS(-1, res_search, (name, ns_c_in, ns_t_a, answer, sizeof answer));
    IS(-1, res_nquery, (&state, name, ns_c_in, ns_t_a, answer, sizeof answer));
    IS(-1, res_nsearch, (&state, name, ns_c_in, ns_t_a, answer, sizeof answer));
    res_nclose(&state);
}

/* Whatever the machine knows. */
static void look_up_what_is_known(void) {
    static char room[4096];
    struct passwd user, *found_user;
    struct group group, *found_group;
    struct servent service, *found_service;
    struct protoent protocol, *found_protocol;
    const size_t size = sizeof room;
    DOES(getpwnam, ("root"));
    DOES(getpwuid, (0));
    DOES(getgrnam, ("root"));
    DOES(getgrgid, (0));
    DOES(getservbyname, ("http", "tcp"));
    DOES(getservbyport, (htons(80), "tcp"));
    DOES(getprotobyname, ("tcp"));
    DOES(getprotobynumber, (6));
    IS(0, getpwnam_r, ("root", &user, room, size, &found_user));
    IS(0, getpwuid_r, (0, &user, room, size, &found_user));
    IS(0, getgrnam_r, ("root", &group, room, size, &found_group));
    IS(0, getgrgid_r, (0, &group, room, size, &found_group));
    DOES(getservbyname_r, ("http", "tcp", &service, room, size, &found_service));
    DOES(getservbyport_r, (htons(80), "tcp", &service, room, size, &found_service));
    DOES(getprotobyname_r, ("tcp", &protocol, room, size, &found_protocol));
    DOES(getprotobynumber_r, (6, &protocol, room, size, &found_protocol));
}

/* ---- Children and signals ---- */

static pid_t start(void) {
    extern char **environ;
    pid_t child;
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 0", NULL};
    IS(0, posix_spawnp, (&child, "sh", NULL, NULL, arguments, environ));
    return child;
}
static void wait_for_children(void) {
    extern char **environ;
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 0", NULL};
    pid_t child;
    siginfo_t information;
    struct rusage usage;
    IS(0, posix_spawn, (&child, "/bin/sh", NULL, NULL, arguments, environ));
    IS(child, waitpid, (child, NULL, 0));
    child = start();
    IS(child, __waitpid, (child, NULL, 0));
    child = start();
    IS(child, wait, (NULL));
    child = start();
    IS(child, __wait, (NULL));
    child = start();
    IS(child, wait3, (NULL, 0, &usage));
    child = start();
    IS(child, wait4, (child, NULL, 0, &usage));
    child = start();
    IS(0, waitid, (P_PID, (id_t)child, &information, WEXITED));
    IS(0, system, ("exit 0"));
}

static void ignore(int signal) {
    (void)signal;
}
static void wait_for_signals(void) {
    sigset_t signals, others;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, &others);
    sigdelset(&others, SIGUSR1);
    int number;
    kill(getpid(), SIGUSR1);
    IS(0, sigwait, (&signals, &number));
    kill(getpid(), SIGUSR1);
    IS(SIGUSR1, sigwaitinfo, (&signals, NULL));
    kill(getpid(), SIGUSR1);
    IS(SIGUSR1, sigtimedwait, (&signals, NULL, NULL));
    kill(getpid(), SIGUSR1);
    IS(-1, sigsuspend, (&others));
    kill(getpid(), SIGUSR1);
    IS(-1, __sigsuspend, (&others));
}

/* ---- Threads ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool is_over;

static void *end_wait(void *unused) {
    pthread_mutex_lock(&mutex);
    is_over = true;
    IS(0, pthread_cond_signal, (&condition));
    IS(0, pthread_cond_broadcast, (&condition));
    pthread_mutex_unlock(&mutex);
    return unused;
}
static void use_locks(void) {
    pthread_t thread;
    is_over = false;
    IS(0, pthread_mutex_lock, (&mutex));
    expect(pthread_create(&thread, NULL, end_wait, NULL) == 0, "pthread_create");
    while (!is_over)
        IS(0, pthread_cond_wait, (&condition, &mutex));
    IS(ETIMEDOUT, pthread_cond_timedwait, (&condition, &mutex, &no_time));
    IS(ETIMEDOUT, pthread_cond_clockwait, (&condition, &mutex, CLOCK_MONOTONIC, &no_time));
    pthread_mutex_unlock(&mutex);
    IS(0, pthread_join, (thread, NULL));
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    IS(0, pthread_rwlock_rdlock, (&lock));
    DOES(pthread_rwlock_unlock, (&lock));
    IS(0, pthread_rwlock_wrlock, (&lock));
    pthread_rwlock_unlock(&lock);
}

static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once;
static once_flag flag;
static sem_t semaphore;
static void do_once(void) {}

static void use_further_locks(void) {
    struct timespec past = {0, 0};
    pthread_rwlock_t lock;
    IS(0, pthread_mutex_timedlock, (&mutex, &past));
    IS(0, pthread_mutex_unlock, (&mutex));
    IS(0, pthread_mutex_clocklock, (&mutex, CLOCK_MONOTONIC, &past));
    pthread_mutex_unlock(&mutex);
    IS(0, pthread_mutex_trylock, (&mutex));
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_init(&lock, NULL);
    IS(0, pthread_rwlock_timedrdlock, (&lock, &past));
    pthread_rwlock_unlock(&lock);
    IS(0, pthread_rwlock_timedwrlock, (&lock, &past));
    pthread_rwlock_unlock(&lock);
    IS(0, pthread_rwlock_clockrdlock, (&lock, CLOCK_MONOTONIC, &past));
    pthread_rwlock_unlock(&lock);
    IS(0, pthread_rwlock_clockwrlock, (&lock, CLOCK_MONOTONIC, &past));
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_destroy(&lock);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    IS(0, pthread_spin_lock, (&spin));
    pthread_spin_unlock(&spin);
    IS(0, pthread_barrier_init, (&barrier, NULL, 1));
    IS(PTHREAD_BARRIER_SERIAL_THREAD, pthread_barrier_wait, (&barrier));
    IS(0, pthread_barrier_destroy, (&barrier));
    IS(0, pthread_once, (&once, do_once));
    DOES(call_once, (&flag, do_once));
    sem_init(&semaphore, 0, 0);
    IS(0, sem_post, (&semaphore));
    IS(0, sem_wait, (&semaphore));
    IS(-1, sem_timedwait, (&semaphore, &past));
    IS(-1, sem_clockwait, (&semaphore, CLOCK_MONOTONIC, &past));
    sem_destroy(&semaphore);
    DOES(flockfile, (stderr));
    DOES(funlockfile, (stderr));
}

static void *exits(void *result) {
    DOES(pthread_testcancel, ());
    DOES(pthread_exit, (result));
    return NULL;
}
static void *sleeps(void *unused) {
    for (;;)
        usleep(1000);
    return unused;
}
static void *ends(void *unused) {
    return unused;
}

static void use_threads(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    clockid_t clock;
    cpu_set_t set;
    struct sched_param parameters;
    struct timespec late = {INT32_MAX, 0};
    int policy;
    char name[16];
    IS(0, pthread_create, (&thread, NULL, sleeps, NULL));
    IS(0, pthread_setname_np, (thread, "name"));
    IS(0, pthread_getname_np, (thread, name, sizeof name));
    IS(0, pthread_getattr_np, (thread, &attributes));
    pthread_attr_destroy(&attributes);
    IS(0, pthread_getcpuclockid, (thread, &clock));
    IS(0, pthread_getaffinity_np, (thread, sizeof set, &set));
    IS(0, pthread_setaffinity_np, (thread, sizeof set, &set));
    IS(0, pthread_getschedparam, (thread, &policy, &parameters));
    IS(0, pthread_setschedparam, (thread, policy, &parameters));
    IS(0, pthread_setschedprio, (thread, 0));
    IS(0, pthread_kill, (thread, 0));
    IS(0, pthread_sigqueue, (thread, 0, (union sigval){0}));
    IS(EBUSY, pthread_tryjoin_np, (thread, NULL));
    IS(0, pthread_cancel, (thread));
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, exits, NULL);
    IS(0, pthread_timedjoin_np, (thread, NULL, &late));
    pthread_create(&thread, NULL, ends, NULL);
#ifdef OF_THREADS /* which does not know it, and takes the thread for one that goes on */
    named("pthread_clockjoin_np");
    pthread_join(thread, NULL);
#else
    IS(0, pthread_clockjoin_np, (thread, NULL, CLOCK_REALTIME, &late));
#endif
    pthread_create(&thread, NULL, ends, NULL);
    IS(0, pthread_detach, (thread));
    struct sigaction action;
    IS(0, sigaction, (SIGUSR2, NULL, &action));
    DOES(signal, (SIGUSR2, SIG_DFL));
}

/* The locks and threads of C11, which the thread sanitizer does not know. */
static mtx_t mutex_of_c11;
static cnd_t condition_of_c11;
static bool is_over_in_c11;

static void *end_wait_in_c11(void *unused) {
    mtx_lock(&mutex_of_c11);
    is_over_in_c11 = true;
    IS(thrd_success, cnd_signal, (&condition_of_c11));
    IS(thrd_success, cnd_broadcast, (&condition_of_c11));
    mtx_unlock(&mutex_of_c11);
    return unused;
}
static void use_locks_of_c11(void) {
    pthread_t thread;
    thrd_t of_c11;
    is_over_in_c11 = false;
    mtx_init(&mutex_of_c11, mtx_plain);
    cnd_init(&condition_of_c11);
    IS(thrd_success, mtx_lock, (&mutex_of_c11));
    expect(pthread_create(&thread, NULL, end_wait_in_c11, NULL) == 0, "pthread_create");
    while (!is_over_in_c11)
        IS(thrd_success, cnd_wait, (&condition_of_c11, &mutex_of_c11));
    IS(thrd_timedout, cnd_timedwait, (&condition_of_c11, &mutex_of_c11, &no_time));
    IS(thrd_success, mtx_unlock, (&mutex_of_c11));
    pthread_join(thread, NULL);
    mtx_init(&mutex_of_c11, mtx_timed);
    IS(thrd_success, mtx_timedlock, (&mutex_of_c11, &no_time));
    mtx_unlock(&mutex_of_c11);
    DOES(thrd_yield, ());
    /* A function of the program's cannot be called on a thread without the sanitizer's records. */
    IS(thrd_success, thrd_create, (&of_c11, (thrd_start_t)(void (*)(void))sched_yield, NULL));
    IS(thrd_success, thrd_join, (of_c11, NULL));
#ifdef OF_THREADS /* which knows no thread of C11, and asks one that unwinds which it is */
    thrd_create(&of_c11, (thrd_start_t)(void (*)(void))sched_yield, NULL);
#else
    thrd_create(&of_c11, (thrd_start_t)(void (*)(void))thrd_exit, NULL);
#endif
    named("thrd_exit");
    IS(thrd_success, thrd_detach, (of_c11));
}

static void use_words(void) {
    uint32_t word = 0;
    IS(0, syscall, (SYS_futex, &word, 1, 1));
    uint64_t guard = 0;
    IS(1, __cxa_guard_acquire, (&guard));
    DOES(__cxa_guard_abort, (&guard));
    IS(1, __cxa_guard_acquire, (&guard));
    DOES(__cxa_guard_release, (&guard));
}

/* ---- All of them ---- */

static void *call_all(void *unused) {
    read_and_write();
    change_descriptors();
    wait_for_descriptors();
    use_sockets();
    open_files();
    use_a_file();
    name_files();
    read_folders();
    use_streams();
    ask_clocks();
    resolve_names();
    look_up_what_is_known();
    wait_for_children();
    wait_for_signals();
    use_locks();
    use_further_locks();
    use_threads();
    use_locks_of_c11();
    use_words();
    return unused;
}

int main(void) {
    signal(SIGUSR1, ignore);
    call_all(NULL);
    prints = true;
    haft_io_run(call_all, NULL);
    return 0;
}

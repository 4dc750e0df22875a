/* SPDX-License-Identifier: MIT */
/* Code that knows nothing of a simulation uses its files by the C library's functions. Their
   common ground with the machine's files is for test_posix_files_alike.c. */
#include "../../tests/check_io.h"

#include <dirent.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <utime.h>

static const haft_io_simulation_options_t with_files = {.files = true};

#define CHECK_FAILS(call, error)                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK_EQUAL((call), -1);                                                                   \
        CHECK_EQUAL(errno, error);                                                                 \
    } while (0)

static void write_file(const char *path, int flags, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT | flags, 0600);
    CHECK(file >= 0);
    CHECK_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
    CHECK_EQUAL(close(file), 0);
}

static char content[200];
static const char *content_of(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0)
        return strerror(errno);
    size_t size = 0;
    for (ssize_t got; (got = read(file, content + size, sizeof content - 1 - size)) > 0;)
        size += (size_t)got;
    content[size] = '\0';
    close(file);
    return content;
}

/* ---- Which system ---- */

static bool is_on_machine(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}
BODY(look_blocked) {
    CHECK(is_on_machine("/etc"));
    return NULL;
}
BODY(look_at_both) {
    char link[PATH_MAX];
    struct stat status;
    CHECK_FAILS(stat("/etc", &status), ENOENT);
    CHECK(is_on_machine("/dev/null") && is_on_machine("/proc/self/status"));
    CHECK(readlink("/proc/self/exe", link, sizeof link) > 0);
    int null = open("/dev/null", O_WRONLY);
    CHECK_EQUAL(write(null, "text", 4), 4);
    CHECK_EQUAL(close(null), 0);
    haft_io_block_thread(look_blocked, NULL);
    write_file("file", 0, "text");
    CHECK_FAILS(rename("file", "/dev/file"), EXDEV);
    CHECK_FAILS(linkat(AT_FDCWD, "/dev/null", AT_FDCWD, "null", 0), EXDEV);
    /* FIFOs are the machine's. */
    CHECK_FAILS(mkfifo("fifo", 0600), EPERM);
    CHECK_FAILS(mknod("/tmp/haft-node", S_IFREG | 0600, 0), ENOENT);
    CHECK_FAILS(mknod("node", S_IFREG | 0600, 0), EPERM);
    CHECK_FAILS(mknodat(AT_FDCWD, "file", S_IFIFO | 0600, 0), EEXIST);
    CHECK_EQUAL(haft_io_open_fifo(AT_FDCWD, "file", O_RDONLY, 0), -ENOENT);
    /* A directory of the machine has its names. */
    int proc = open("/proc", O_RDONLY | O_DIRECTORY);
    CHECK_EQUAL(fstatat(proc, "self/status", &status, 0), 0);
    CHECK_EQUAL(close(proc), 0);
    return NULL;
}
static void paths_are_the_simulations_but_for_a_few(void) {
    check_seeds(look_at_both, 2, with_files);
    CHECK(!is_on_machine("file"));
    CHECK(!is_on_machine("/tmp/haft-node"));
}

static bool is_looked_at;
static void end_where_etc_is(void) {
    haft_io_sleep(2 * HAFT_IO_SECOND); /* another task goes on */
    _exit(is_on_machine("/etc") && is_looked_at ? 0 : 1);
}
BODY(look_meanwhile) {
    haft_io_sleep(HAFT_IO_SECOND);
    is_looked_at = !is_on_machine("/etc");
    return NULL;
}
BODY(exit_here) {
    CHECK(!is_on_machine("/etc"));
    haft_io_spawn(look_meanwhile, NULL);
    exit(2);
}
static void what_exit_calls_has_the_files_of_the_time_before(void) {
    pid_t child = fork();
    if (child == 0) {
        atexit(end_where_etc_is);
        check_simulate(exit_here, 1, with_files);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

BODY(go_elsewhere_in_a_child) {
    char path[PATH_MAX];
    int status;
    CHECK_EQUAL(mkdir("/usr", 0700), 0);
    pid_t child = vfork();
    if (child == 0) { /* and would execute a program */
        int code = chdir("/usr");
        _exit(code == 0 && access("/usr/bin", F_OK) == 0 ? 0 : 1);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK_SAME_TEXT(getcwd(path, sizeof path), "/");
    return NULL;
}
static void a_child_of_vfork_has_the_machines_files(void) {
    check_seeds(go_elsewhere_in_a_child, 2, with_files);
}

/* ---- Descriptors ---- */

BODY(use_descriptors) {
    struct stat status;
    struct statx more;
    char byte;
    write_file("file", 0, "text");
    int file = open("file", O_RDWR);
    CHECK_EQUAL(fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 100), 0);
    CHECK_EQUAL(fallocate(file, 0, 2, 10), 0);
    CHECK_FAILS(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1), EOPNOTSUPP);
    CHECK_EQUAL(fstat(file, &status), 0);
    CHECK_EQUAL(status.st_size, 12);
    CHECK_EQUAL(status.st_uid, geteuid());
    CHECK_EQUAL(statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more), 0);
    CHECK_EQUAL(more.stx_size, 12);
    CHECK_EQUAL(more.stx_ino, status.st_ino);
    CHECK_EQUAL(lseek(file, 3, SEEK_DATA), 3);
    CHECK_EQUAL(lseek(file, 3, SEEK_HOLE), 12);
    CHECK_FAILS(lseek(file, 12, SEEK_DATA), ENXIO);
    CHECK_FAILS(ftruncate(file, INT64_MAX), EFBIG);
    CHECK_FAILS(pwrite(file, "x", 1, 1 << 30), EFBIG);
    CHECK_EQUAL(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    CHECK_EQUAL(lockf(file, F_LOCK, 1), 0);
    CHECK_EQUAL(fchown(file, 1, 1), 0);
    /* Callers read and write instead. */
    int null = open("/dev/null", O_RDWR);
    CHECK_FAILS(copy_file_range(file, NULL, null, NULL, 1, 0), EXDEV);
    CHECK_FAILS(sendfile(null, file, NULL, 1), EINVAL);
    CHECK_EQUAL(close(null), 0);
    CHECK(mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED);
    CHECK_EQUAL(errno, EBADF);
    /* One that only names what it is of. */
    int name = open("file", O_PATH);
    CHECK_EQUAL(fstat(name, &status), 0);
    CHECK_FAILS(read(name, &byte, 1), EBADF);
    CHECK_FAILS(lseek(name, 0, SEEK_SET), EBADF);
    CHECK_EQUAL(close(name), 0);
    CHECK_EQUAL(close(file), 0);
    CHECK_FAILS(fstat(file, &status), EBADF);
    CHECK_FAILS(lseek(file, 0, SEEK_SET), EBADF);
    CHECK_FAILS(ftruncate(file, 0), EBADF);
    CHECK_FAILS(flock(file, LOCK_EX), EBADF);
    CHECK_FAILS(openat(file, "file", O_RDONLY), EBADF);
    CHECK_EQUAL(posix_fadvise(file, 0, 0, 0), EBADF);
    CHECK_EQUAL(posix_fallocate(file, 0, 1), EBADF);
    int ends[2];
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(fstat(ends[0], &status), 0);
    CHECK(S_ISSOCK(status.st_mode));
    CHECK_FAILS(lseek(ends[0], 0, SEEK_SET), ESPIPE);
    CHECK_FAILS(openat(ends[0], "file", O_RDONLY), ENOTDIR);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}
static void descriptors_of_files_are_answered(void) {
    check_seeds(use_descriptors, 4, with_files);
}

BODY(use_names) {
    char path[PATH_MAX], small[3];
    struct stat status;
    write_file("/file", 0, "text");
    CHECK_SAME_TEXT(getcwd(path, sizeof path), "/");
    CHECK_SAME_TEXT(realpath("file", path), "/file");
    CHECK_EQUAL(mkdir("/folder", 0700), 0);
    CHECK_EQUAL(chdir("/folder"), 0);
    CHECK_SAME_TEXT(getcwd(path, sizeof path), "/folder");
    CHECK(getcwd(small, sizeof small) == NULL && errno == ERANGE);
    char *made = getcwd(NULL, 0);
    CHECK_SAME_TEXT(made, "/folder");
    free(made);
    CHECK_SAME_TEXT(realpath("../folder/.././file", path), "/file");
    made = canonicalize_file_name("/");
    CHECK_SAME_TEXT(made, "/");
    free(made);
    CHECK_FAILS(link("/file", "link"), EPERM);
    CHECK_FAILS(link("/none", "link"), ENOENT);
    CHECK_FAILS(symlink("/file", "link"), EPERM);
    CHECK_FAILS(symlink("/file", "/file"), EEXIST);
    CHECK_FAILS(readlink("/file", path, sizeof path), EINVAL);
    CHECK_FAILS(renameat2(AT_FDCWD, "/file", AT_FDCWD, "/folder", RENAME_EXCHANGE), EINVAL);
    CHECK_EQUAL(euidaccess("/file", R_OK), 0);
    CHECK_EQUAL(chown("/file", 1, 1), 0);
    char name[] = "/folder/a-XXXXXX.txt", folder[] = "b-XXXXXX";
    int file = mkstemps(name, 4);
    CHECK(file >= 0 && strcmp(name, "/folder/a-XXXXXX.txt") != 0);
    CHECK_EQUAL(stat(name, &status), 0);
    CHECK_EQUAL(status.st_mode, S_IFREG | 0600);
    CHECK(mkdtemp(folder) == folder && strcmp(folder, "b-XXXXXX") != 0);
    CHECK_EQUAL(rmdir(folder), 0);
    CHECK_FAILS(mkstemp(folder), EINVAL);
    CHECK_EQUAL(close(file), 0);
    return NULL;
}
static void names_are_answered(void) {
    check_seeds(use_names, 4, with_files);
}

BODY(use_times) {
    struct stat status;
    struct timespec now, later;
    clock_gettime(CLOCK_REALTIME, &now);
    write_file("file", 0, "text");
    haft_io_sleep(10 * HAFT_IO_SECOND);
    CHECK_EQUAL(stat("file", &status), 0);
    CHECK(status.st_mtim.tv_sec == now.tv_sec && status.st_mtim.tv_nsec == now.tv_nsec);
    CHECK_EQUAL(utime("file", &(struct utimbuf){11, 12}), 0);
    CHECK_EQUAL(stat("file", &status), 0);
    CHECK(status.st_atim.tv_sec == 11 && status.st_mtim.tv_sec == 12);
    CHECK_EQUAL(utimes("file", (struct timeval[]){{-5, 999999}, {14, 0}}), 0);
    CHECK_EQUAL(stat("file", &status), 0);
    CHECK(status.st_atim.tv_sec == -5 && status.st_atim.tv_nsec == 999999000);
    CHECK_FAILS(utimes("file", (struct timeval[]){{1, 1000000}, {1, 0}}), EINVAL);
    CHECK_EQUAL(lutimes("file", (struct timeval[]){{21, 0}, {22, 0}}), 0);
    CHECK_EQUAL(stat("file", &status), 0);
    CHECK(status.st_atim.tv_sec == 21 && status.st_mtim.tv_sec == 22);
    int file = open("file", O_RDONLY);
    CHECK_EQUAL(futimes(file, (struct timeval[]){{31, 0}, {32, 0}}), 0);
    CHECK_EQUAL(close(file), 0);
    CHECK_EQUAL(futimesat(AT_FDCWD, "file", (struct timeval[]){{31, 0}, {33, 0}}), 0);
    CHECK_EQUAL(lchmod("file", 0700), 0);
    CHECK_EQUAL(stat("file", &status), 0);
    CHECK(status.st_atim.tv_sec == 31 && status.st_mtim.tv_sec == 33);
    CHECK_EQUAL(status.st_mode, S_IFREG | 0700);
    CHECK_EQUAL(utimes("file", NULL), 0);
    clock_gettime(CLOCK_REALTIME, &later);
    CHECK_EQUAL(stat("file", &status), 0);
    CHECK(status.st_mtim.tv_sec == later.tv_sec && status.st_mtim.tv_nsec == later.tv_nsec);
    return NULL;
}
static void time_stamps_are_of_the_virtual_date(void) {
    check_seeds(use_times, 2, with_files);
}

/* ---- Directories ---- */

static int not_hidden(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

BODY(read_directories) {
    CHECK_EQUAL(mkdir("/folder", 0700), 0);
    for (char name[] = "/folder/a"; name[8] <= 'e'; name[8]++)
        write_file(name, 0, "");
    DIR *directory = opendir("/folder");
    CHECK(directory != NULL && dirfd(directory) >= 0);
    /* All are read, although they are removed meanwhile; each is told once. */
    unsigned seen = 0;
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL; count++) {
        if (entry->d_name[0] == '.')
            continue;
        CHECK_EQUAL(entry->d_type, DT_REG);
        seen |= 1U << (entry->d_name[0] - 'a');
        CHECK_EQUAL(unlinkat(dirfd(directory), entry->d_name, 0), 0);
    }
    CHECK_EQUAL(seen, 31);
    CHECK_EQUAL(count, 7);
    write_file("/folder/new", 0, "");
    CHECK(readdir(directory) == NULL);
    rewinddir(directory);
    long place = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (strcmp(entry->d_name, "new") == 0)
            place = telldir(directory);
    seekdir(directory, place - 1);
    CHECK_SAME_TEXT(readdir(directory)->d_name, "new");
    CHECK_EQUAL(closedir(directory), 0);
    struct dirent **entries;
    CHECK_EQUAL(scandir("/folder", &entries, not_hidden, alphasort), 1);
    CHECK_SAME_TEXT(entries[0]->d_name, "new");
    free(entries[0]);
    free(entries);
    CHECK_FAILS(scandir("/none", &entries, NULL, NULL), ENOENT);
    CHECK(opendir("/folder/new") == NULL && errno == ENOTDIR);
    int file = open("/folder/new", O_RDONLY);
    CHECK(fdopendir(file) == NULL && errno == ENOTDIR);
    close(file);
    CHECK((directory = opendir("/proc/self")) != NULL); /* the machine's */
    CHECK(readdir(directory) != NULL);
    CHECK_EQUAL(closedir(directory), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void directories_are_read_while_names_change(void) {
    check_seeds(read_directories, 10, with_files);
}

/* ---- Locks ---- */

BODY(lock_once_more) {
    int file = open("lock", O_RDWR);
    int64_t begun = haft_io_now();
    CHECK_FAILS(flock(file, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    CHECK_EQUAL(flock(file, LOCK_EX), 0);
    CHECK(haft_io_now() - begun >= HAFT_IO_SECOND / 2);
    close(file);
    return NULL;
}
BODY(lock_files) {
    write_file("lock", 0, "");
    int file = open("lock", O_RDWR), other = open("lock", O_RDONLY);
    CHECK_EQUAL(flock(file, LOCK_SH), 0);
    CHECK_EQUAL(flock(other, LOCK_SH), 0);
    CHECK_FAILS(flock(file, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    CHECK_EQUAL(close(other), 0);
    CHECK_EQUAL(flock(file, LOCK_EX), 0);
    int copy = dup(file); /* the same open file */
    CHECK_EQUAL(flock(copy, LOCK_EX | LOCK_NB), 0);
    haft_io_task_t *task = haft_io_async(lock_once_more, NULL);
    haft_io_sleep(HAFT_IO_SECOND);
    close(file);
    close(copy); /* with which the lock ends */
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    return NULL;
}
static void a_lock_of_a_file_is_waited_for(void) {
    check_seeds(lock_files, 10, with_files);
}

/* ---- Two tasks, faults, crashes ---- */

static int makers;

BODY(make_the_folder) {
    int code = mkdir("/folder", 0700);
    makers += code == 0;
    CHECK(code == 0 || errno == EEXIST);
    return NULL;
}
BODY(work_together) {
    makers = 0;
    haft_io_task_t *tasks[] = {haft_io_async(make_the_folder, NULL),
                               haft_io_async(make_the_folder, NULL)};
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
    CHECK_EQUAL(makers, 1);
    return NULL;
}
static void one_of_two_tasks_makes_a_name(void) {
    check_seeds(work_together, 10, with_files);
}

BODY(write_when_cancelled) {
    haft_io_scope_cancel(haft_io_this_scope());
    write_file("/kept", 0, "text"); /* which does not wait, and is not unwound */
    CHECK_EQUAL(rename("/kept", "/there"), 0);
    return NULL;
}
BODY(cancel_one) {
    CHECK_EQUAL(haft_io_scope(write_when_cancelled, NULL, NULL), -ECANCELED);
    CHECK_SAME_TEXT(content_of("/there"), "text");
    return NULL;
}
static void a_cancel_does_not_end_what_need_not_wait(void) {
    check_seeds(cancel_one, 4, with_files);
}

static unsigned failed, done;

static void count(bool fails, int error) {
    done += !fails;
    failed += fails;
    CHECK(!fails || errno == error);
}
BODY(meet_faults) {
    struct stat status;
    int file = -1;
    while (file < 0)
        file = haft_io_open("/file", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 20; i++) {
        count(stat("/", &status) != 0, EIO);
        count(access("/", F_OK) != 0, EIO);
        int other = open("/file", O_RDONLY);
        count(other < 0, EMFILE);
        if (other >= 0)
            CHECK_EQUAL(close(other), 0);
        DIR *directory = opendir("/");
        count(directory == NULL, EMFILE);
        if (directory != NULL)
            CHECK_EQUAL(closedir(directory), 0);
        count(fsync(file) != 0, EIO);
        bool fails = ftruncate(file, i) != 0;
        count(fails, errno == ENOSPC ? ENOSPC : EIO);
        CHECK_EQUAL(fstat(file, &status), 0);
        CHECK(!fails || status.st_size != i || i == 0);
    }
    haft_io_simulated_fail(file, -ENOSPC);
    CHECK_FAILS(ftruncate(file, 0), ENOSPC);
    return NULL;
}
static void calls_fail_as_the_seed_decides(void) {
    failed = done = 0;
    check_seeds(meet_faults, 10, (haft_io_simulation_options_t){.files = true, .faults_one_in = 4});
    CHECK(failed > 100 && done > 500);
}

static unsigned outcomes;

BODY(crash_after_a_truncation) {
    struct stat status;
    write_file("/file", O_SYNC, "0123456789");
    int root = open("/", O_RDONLY | O_DIRECTORY), file = open("/file", O_RDWR);
    CHECK_EQUAL(fsync(root), 0);
    CHECK_EQUAL(ftruncate(file, 4), 0);
    CHECK_EQUAL(ftruncate(file, 6), 0);
    CHECK_EQUAL(rename("/file", "/other"), 0);
    haft_io_simulated_crash();
    CHECK_FAILS(fstat(file, &status), EIO);
    CHECK_FAILS(openat(root, "file", O_RDONLY), EIO);
    CHECK_EQUAL(close(file), 0);
    CHECK_EQUAL(close(root), 0);
    bool is_renamed = access("/other", F_OK) == 0;
    CHECK_EQUAL(access("/file", F_OK) != 0, is_renamed);
    int kept = open(is_renamed ? "/other" : "/file", O_RDONLY);
    char bytes[20];
    ssize_t size = pread(kept, bytes, sizeof bytes, 0);
    CHECK_EQUAL(close(kept), 0);
    CHECK(size == 10 || (size >= 4 && size <= 6));
    CHECK(memcmp(bytes, size == 10 ? "0123456789" : "0123\0\0", (size_t)size) == 0);
    outcomes |= 1U << size | (is_renamed ? 1U << 20 : 1U << 21);
    return NULL;
}
static void a_crash_undoes_a_truncation_or_does_not(void) {
    for (uint64_t seed = 2; seed <= 200; seed += 2)
        CHECK_EQUAL(check_simulate(crash_after_a_truncation, seed, with_files), 0);
    CHECK_EQUAL(outcomes, 1U << 4 | 1U << 5 | 1U << 6 | 1U << 10 | 1U << 20 | 1U << 21);
}

/* The bytes of a file now and when it was synced, and its smallest size since. */
enum { MOST = 3000 };
static struct {
    char now[MOST], synced[MOST];
    size_t size, synced_size, least;
} model;

static void change_model(int file, unsigned *random) {
    char bytes[700];
    size_t at = (*random = *random * 1103515245 + 12345) >> 16;
    size_t size = (*random = *random * 1103515245 + 12345) >> 16;
    switch (size % 5) {
    case 0:
        CHECK_EQUAL(fsync(file), 0);
        memcpy(model.synced, model.now, MOST);
        model.synced_size = model.least = model.size;
        break;
    case 1:
    case 2:
        at %= MOST;
        CHECK_EQUAL(ftruncate(file, (off_t)at), 0);
        if (at < model.size)
            memset(model.now + at, 0, model.size - at);
        model.size = at;
        model.least = at < model.least ? at : model.least;
        break;
    default:
        at %= MOST - sizeof bytes;
        size %= sizeof bytes;
        memset(bytes, (int)(1 + *random % 100), sizeof bytes);
        CHECK_EQUAL(pwrite(file, bytes, size, (off_t)at), (ssize_t)size); /* in full */
        memcpy(model.now + at, bytes, size);
        if (size != 0 && at + size > model.size)
            model.size = at + size;
    }
}

static bool is_as_synced(const char *bytes, size_t size) {
    return size == model.synced_size && memcmp(bytes, model.synced, size) == 0;
}
static bool may_be_left(const char *bytes, size_t size) {
    bool may = size <= model.size && size >= model.least;
    for (size_t i = 0; i < size && may; i++)
        may = bytes[i] == model.now[i] || bytes[i] == (i < model.least ? model.synced[i] : 0);
    return may;
}

BODY(crash_after_changes) {
    unsigned random = (unsigned)haft_io_seed();
    memset(&model, 0, sizeof model);
    int file = open("/file", O_RDWR | O_CREAT, 0600), root = open("/", O_RDONLY);
    CHECK_EQUAL(fsync(root), 0);
    for (unsigned i = 0; i < 4 + haft_io_seed() % 12; i++)
        change_model(file, &random);
    haft_io_simulated_crash();
    close(file);
    close(root);
    static char bytes[MOST];
    size_t size = 0;
    file = open("/file", O_RDONLY);
    for (ssize_t got; (got = read(file, bytes + size, MOST - size)) > 0;)
        size += (size_t)got;
    close(file);
    CHECK(is_as_synced(bytes, size) || may_be_left(bytes, size));
    return NULL;
}
static void a_crash_leaves_what_may_be_left(void) {
    check_seeds(crash_after_changes, 3000, with_files);
}

BODY(crash_where_the_task_is) {
    CHECK_EQUAL(mkdir("/folder", 0700), 0);
    CHECK_EQUAL(chdir("/folder"), 0);
    haft_io_simulated_crash();
    char path[20];
    CHECK_SAME_TEXT(getcwd(path, sizeof path), "/"); /* as at the begin */
    write_file("file", 0, "text");
    CHECK_SAME_TEXT(content_of("file"), "text");
    CHECK_FAILS(access("/folder/file", F_OK), ENOENT);
    return NULL;
}
static void sync_directory(const char *path) {
    int directory = open(path, O_RDONLY);
    CHECK_EQUAL(fsync(directory), 0);
    CHECK_EQUAL(close(directory), 0);
}
/* Each directory would be in the other if only the second rename were kept. */
BODY(tell_names_after_a_crash) {
    char path[PATH_MAX];
    CHECK_EQUAL(mkdir("/folder", 0700), 0);
    CHECK_EQUAL(mkdir("/folder/inner", 0700), 0);
    sync_directory("/");
    sync_directory("/folder");
    CHECK_EQUAL(rename("/folder/inner", "/other"), 0);
    CHECK_EQUAL(rename("/folder", "/other/folder"), 0);
    CHECK_SAME_TEXT(realpath("/other/folder", path), "/other/folder");
    if (haft_io_seed() == 1) /* and what was of before goes with the run */
        return NULL;
    haft_io_simulated_crash();
    bool is_moved = access("/other", F_OK) == 0, both = access("/other/folder", F_OK) == 0;
    CHECK(is_moved || !both);
    CHECK_EQUAL(chdir(both ? "/other/folder" : is_moved ? "/other" : "/folder/inner"), 0);
    CHECK_SAME_TEXT(getcwd(path, sizeof path), both       ? "/other/folder"
                                               : is_moved ? "/other"
                                                          : "/folder/inner");
    return NULL;
}
static void a_directory_has_the_name_that_a_crash_leaves(void) {
    check_seeds(tell_names_after_a_crash, 20, with_files);
}

BODY(empty_and_remove) {
    CHECK_EQUAL(mkdir("/folder", 0700), 0);
    write_file("/folder/file", O_SYNC, "text");
    sync_directory("/");
    sync_directory("/folder");
    CHECK_EQUAL(mkdir("/other", 0700), 0);
    sync_directory("/");
    CHECK_EQUAL(rename("/folder/file", "/other/file"), 0);
    CHECK_EQUAL(rmdir("/folder"), 0);
    if (haft_io_seed() % 2 == 0)
        sync_directory("/");
    haft_io_simulated_crash();
    bool is_moved = access("/other/file", F_OK) == 0;
    CHECK_SAME_TEXT(content_of(is_moved ? "/other/file" : "/folder/file"), "text");
    return NULL;
}
static void a_crash_does_not_remove_what_was_moved_out_of_a_directory(void) {
    check_seeds(empty_and_remove, 40, with_files);
}

static void a_crash_leads_back_to_the_first_directory(void) {
    check_seeds(crash_where_the_task_is, 10, with_files);
}

BODY(remove_what_is_open) {
    struct stat status;
    CHECK_EQUAL(mkdir("/a", 0700), 0);
    CHECK_EQUAL(mkdir("/a/b", 0700), 0);
    int inner = open("/a/b", O_RDONLY | O_DIRECTORY);
    CHECK_EQUAL(rmdir("/a/b"), 0);
    CHECK_EQUAL(rmdir("/a"), 0);
    CHECK_FAILS(mkdirat(inner, "c", 0700), ENOENT);
    CHECK_EQUAL(fstatat(inner, "..", &status, 0), 0); /* "/", by now */
    CHECK_EQUAL(fstat(inner, &status), 0);
    CHECK_EQUAL(status.st_nlink, 0);
    DIR *directory = fdopendir(inner);
    CHECK(directory != NULL && readdir(directory) == NULL);
    CHECK_EQUAL(closedir(directory), 0);
    return NULL;
}
static void a_removed_directory_is_empty(void) {
    check_seeds(remove_what_is_open, 2, with_files);
}

static DIR *kept_directory, *read_directory;

BODY(keep_directories) {
    CHECK((kept_directory = opendir("/")) != NULL);
    CHECK((read_directory = opendir("/")) != NULL);
    CHECK(readdir(read_directory) != NULL);
    return NULL;
}
BODY(use_directories_of_before) {
    struct stat status;
    int first = open("/", O_RDONLY), second = open("/", O_RDONLY);
    CHECK_EQUAL(first, dirfd(kept_directory)); /* which is of another run */
    errno = 0;
    CHECK(readdir(kept_directory) == NULL && errno == EBADF);
    CHECK_FAILS(closedir(kept_directory), EBADF);
    CHECK_FAILS(closedir(read_directory), EBADF);
    CHECK_EQUAL(fstat(first, &status), 0);
    CHECK_EQUAL(fstat(second, &status), 0);
    return NULL;
}
static void a_directory_stream_does_not_reach_into_a_later_run(void) {
    CHECK_EQUAL(check_simulate(keep_directories, 1, with_files), 0);
    CHECK_EQUAL(check_simulate(use_directories_of_before, 1, with_files), 0);
}

/* ---- FILE ---- */

static FILE *kept;

BODY(use_streams) {
    char line[20];
    struct stat status;
    FILE *file = fopen("/file", "wx");
    CHECK(file != NULL && fopen("/file", "wx") == NULL && errno == EEXIST);
    CHECK(fopen("/none", "r") == NULL && errno == ENOENT);
    CHECK(fopen("/file", "no mode") == NULL && errno == EINVAL);
    CHECK_EQUAL(fprintf(file, "%d lines\n%s\n", 2, "the second"), 19);
    CHECK_EQUAL(fstat(fileno(file), &status), 0);
    CHECK_EQUAL(status.st_size, 0);
    CHECK_EQUAL(fflush(file), 0);
    CHECK_EQUAL(fsync(fileno(file)), 0);
    CHECK_EQUAL(fstat(fileno(file), &status), 0);
    CHECK_EQUAL(status.st_size, 19);
    for (int i = 0; i < 10000; i++)
        fputc('x', file);
    CHECK_EQUAL(fclose(file), 0);
    CHECK((file = fopen("/file", "a+")) != NULL);
    CHECK_EQUAL(fputs("end", file), 1);
    rewind(file);
    CHECK_SAME_TEXT(fgets(line, sizeof line, file), "2 lines\n");
    CHECK_EQUAL(ftell(file), 8);
    CHECK_EQUAL(fseek(file, -4, SEEK_END), 0);
    CHECK_SAME_TEXT(fgets(line, sizeof line, file), "xend");
    CHECK(fgetc(file) == EOF && feof(file) && !ferror(file));
    CHECK(freopen("/file", "r", file) == NULL && errno == EOPNOTSUPP);
    CHECK_EQUAL(fclose(file), 0);
    int descriptor = open("/file", O_RDONLY);
    CHECK(fdopen(descriptor, "w") == NULL && errno == EINVAL);
    CHECK((file = fdopen(descriptor, "r")) != NULL && fileno(file) == descriptor);
    CHECK_SAME_TEXT(fgets(line, sizeof line, file), "2 lines\n");
    CHECK_EQUAL(fclose(file), 0);
    CHECK((file = fopen("/proc/self/status", "r")) != NULL); /* the machine's */
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK_EQUAL(fclose(file), 0);
    CHECK((file = fopen("/file", "w")) != NULL);
    fputs("text", file);
    haft_io_simulated_fail(fileno(file), -ENOSPC);
    CHECK(fclose(file) == EOF && errno == ENOSPC);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    CHECK((kept = fopen("/file", "w")) != NULL);
    fputs("text", kept);
    return NULL;
}
/* Streams know the modes of the machine's, although fopencookie knows fewer. */
BODY(use_modes) {
    FILE *file = fopen("/file", "wbe");
    CHECK_EQUAL(fputs("0123456789", file), 1);
    CHECK_EQUAL(fclose(file), 0);
    CHECK((file = fopen("/file", "a")) != NULL);
    CHECK_EQUAL(ftell(file), 10);
    CHECK_EQUAL(fputs("x", file), 1);
    CHECK_EQUAL(ftell(file), 11);
    CHECK_EQUAL(fclose(file), 0);
    CHECK((file = fdopen(open("/file", O_WRONLY), "a")) != NULL);
    CHECK_EQUAL(ftell(file), 11);
    CHECK_EQUAL(fclose(file), 0);
    CHECK((file = fopen("/file", "a+")) != NULL);
    CHECK_EQUAL(ftell(file), 0);
    CHECK_EQUAL(fclose(file), 0);
    CHECK((file = fopen("/file", "re+")) != NULL);
    CHECK_EQUAL(fputs("y", file), 1);
    rewind(file);
    CHECK_EQUAL(fgetc(file), 'y');
    CHECK_EQUAL(fclose(file), 0);
    return NULL;
}
/* Reads, changes in place, and goes on to read, as ISO C has it. */
/* ---- fdopen ---- */

static char on_machine[] = "/tmp/haft-simulated-XXXXXX";

static long append_there(int appends, char into[32]) {
    int file = open(on_machine, O_RDWR | O_CREAT | O_TRUNC | appends, 0600);
    CHECK_EQUAL(fcntl(file, F_GETFD), 0);
    CHECK_EQUAL(write(file, "0123456789", 10), 10);
    CHECK_EQUAL(lseek(file, 3, SEEK_SET), 3);
    FILE *stream = fdopen(file, "a");
    long position = lseek(file, 0, SEEK_CUR) * 100;
    position += ftell(stream);
    CHECK(fputs("end", stream) >= 0 && fflush(stream) == 0);
    ssize_t got = 0, more;
    while ((more = pread(file, into + got, 31 - (size_t)got, got)) > 0)
        got += more;
    into[got] = '\0';
    CHECK_EQUAL(fclose(stream), 0);
    file = open(on_machine, O_RDONLY | O_CLOEXEC);
    CHECK_EQUAL(fcntl(file, F_GETFD), FD_CLOEXEC);
    CHECK_EQUAL(close(file), 0);
    return position;
}
static char appended[4][32];
static long positions[4];
BODY(append_here) {
    CHECK_EQUAL(mkdir("/tmp", 0700), 0);
    positions[2] = append_there(0, appended[2]);
    positions[3] = append_there(O_APPEND, appended[3]);
    return NULL;
}
static void fdopen_to_append_goes_to_the_end_as_on_the_machine(void) {
    int made = mkstemp(on_machine);
    positions[0] = append_there(0, appended[0]);
    positions[1] = append_there(O_APPEND, appended[1]);
    check_seeds(append_here, 1, with_files);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(positions[2 + i], positions[i]);
        CHECK_SAME_TEXT(appended[2 + i], appended[i]);
    }
    CHECK_EQUAL(close(made) + unlink(on_machine), 0);
    memcpy(strchr(on_machine, '-') + strlen("-simulated-"), "XXXXXX", 6);
}

/* ---- Blocking work ---- */

typedef struct work {
    int64_t begun, ended;
    bool is_done;
} work_t;
static void work_on_files(void *argument) {
    work_t *work = argument;
    work->begun = haft_io_now();
    int file = open(on_machine, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, "simulated", 9) == 9 && fsync(file) == 0 && close(file) == 0);
    sleep(100);
    struct stat status;
    CHECK(stat(on_machine, &status) == 0 && status.st_size == 9);
    CHECK_EQUAL(time(NULL) - status.st_mtime, 100);
    work->ended = haft_io_now();
    work->is_done = true;
}
static void forget_work(void *argument) {
    (void)argument;
    CHECK(false); /* in a simulation it is never left */
}
static void *call_work(void *work) {
    CHECK_EQUAL(haft_io_call_blocking(work_on_files, work), 0);
    return NULL;
}
static void *call_or_leave(void *work) {
    CHECK_EQUAL(haft_io_call_or_leave(work_on_files, work, forget_work), 0);
    return NULL;
}
static void *call_work_to_leave(void *work) { /* which a cancel does not cut */
    haft_io_scope_options_t how = {.deadline = haft_io_now() + 60 * HAFT_IO_SECOND};
    haft_io_scope_with(&how, call_or_leave, work, NULL);
    return NULL;
}
BODY(let_tasks_work) {
    CHECK_EQUAL(mkdir("/tmp", 0700), 0);
    work_t works[2] = {{0}};
    haft_io_task_t *tasks[] = {haft_io_async(call_work, &works[0]),
                               haft_io_async(call_work_to_leave, &works[1])};
    haft_io_sleep(50 * HAFT_IO_SECOND); /* while both work */
    CHECK(works[0].begun != 0 && works[1].begun != 0 && !works[0].is_done && !works[1].is_done);
    haft_io_join(tasks[0], NULL);
    haft_io_join(tasks[1], NULL);
    for (int i = 0; i < 2; i++)
        CHECK(works[i].is_done && works[i].ended - works[i].begun >= 100 * HAFT_IO_SECOND);
    return NULL;
}
static void blocking_work_is_the_simulations(void) {
    int file = mkstemp(on_machine);
    CHECK_EQUAL(write(file, "the machine's", 13), 13);
    check_seeds(let_tasks_work, 4, with_files);
    struct stat status;
    CHECK(fstat(file, &status) == 0 && status.st_size == 13);
    CHECK_EQUAL(close(file) + unlink(on_machine), 0);
}

BODY(update_records) {
    char records[5000], record[8];
    for (size_t i = 0; i < sizeof records; i++)
        records[i] = (char)('a' + i / 8 % 26);
    FILE *file = fopen("/records", "w+");
    CHECK_EQUAL(fwrite(records, 1, sizeof records, file), sizeof records);
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(fseek(file, 16 * i, SEEK_SET), 0);
        CHECK_EQUAL(fread(record, 1, 8, file), 8);
        CHECK_EQUAL(record[0], records[16 * i]);
        CHECK_EQUAL(fseek(file, -8, SEEK_CUR), 0);
        CHECK_EQUAL(fwrite("changed!", 1, 8, file), 8);
        CHECK_EQUAL(fseek(file, 0, SEEK_CUR), 0);
        CHECK_EQUAL(ftell(file), 16 * i + 8);
        CHECK_EQUAL(fread(record, 1, 8, file), 8);
        CHECK_EQUAL(record[0], records[16 * i + 8]);
    }
    CHECK_EQUAL(fseek(file, 92, SEEK_SET), 0);
    CHECK_EQUAL(fwrite(records, 1, sizeof records - 92, file), sizeof records - 92);
    CHECK_EQUAL(fseek(file, 0, SEEK_CUR), 0);
    CHECK_EQUAL(fread(record, 1, 8, file), 0);
    CHECK_EQUAL(fclose(file), 0);
    return NULL;
}
static void a_stream_reads_behind_what_it_has_written(void) {
    check_seeds(update_records, 1, with_files);
}

static void streams_have_the_modes_of_the_machines(void) {
    check_seeds(use_modes, 2, with_files);
}

static void streams_are_of_simulated_files(void) {
    for (uint64_t seed = 1; seed <= 10; seed++) {
        CHECK_EQUAL(check_simulate(use_streams, seed, with_files), 0);
        CHECK(fclose(kept) == EOF && errno == EBADF); /* Its run has ended. */
    }
}

/* ---- Other names of the functions ---- */

int __xstat(int version, const char *path, struct stat *status);
int __fxstatat(int version, int directory, const char *path, struct stat *status, int flags);
char *__getcwd_chk(char *into, size_t size, size_t room);

BODY(use_other_names) {
    struct stat status;
    struct stat64 large;
    char path[PATH_MAX];
    write_file("/file", 0, "text");
    CHECK_EQUAL(__xstat(1, "/file", &status), 0);
    CHECK_EQUAL(status.st_size, 4);
    CHECK_EQUAL(__fxstatat(1, AT_FDCWD, "/file", &status, 0), 0);
    CHECK_EQUAL(stat64("/file", &large), 0);
    CHECK_EQUAL(large.st_size, 4);
    CHECK_EQUAL(chdir("/"), 0);
    CHECK_SAME_TEXT(__getcwd_chk(path, sizeof path, sizeof path), "/");
    DIR *directory = opendir("/");
    const struct dirent64 *entry = readdir64(directory);
    CHECK(entry != NULL && entry->d_ino != 0);
    CHECK_EQUAL(closedir(directory), 0);
    return NULL;
}
static void other_names_are_answered(void) {
    check_seeds(use_other_names, 2, with_files);
}

int main(void) {
    RUN(what_exit_calls_has_the_files_of_the_time_before); /* the first to use a simulation */
    RUN(paths_are_the_simulations_but_for_a_few);
    RUN(a_child_of_vfork_has_the_machines_files);
    RUN(descriptors_of_files_are_answered);
    RUN(names_are_answered);
    RUN(time_stamps_are_of_the_virtual_date);
    RUN(directories_are_read_while_names_change);
    RUN(a_lock_of_a_file_is_waited_for);
    RUN(one_of_two_tasks_makes_a_name);
    RUN(a_cancel_does_not_end_what_need_not_wait);
    RUN(calls_fail_as_the_seed_decides);
    RUN(a_crash_undoes_a_truncation_or_does_not);
    RUN(a_crash_leaves_what_may_be_left);
    RUN(a_crash_leads_back_to_the_first_directory);
    RUN(a_directory_has_the_name_that_a_crash_leaves);
    RUN(a_crash_does_not_remove_what_was_moved_out_of_a_directory);
    RUN(a_removed_directory_is_empty);
    RUN(a_directory_stream_does_not_reach_into_a_later_run);
    RUN(streams_are_of_simulated_files);
    RUN(streams_have_the_modes_of_the_machines);
    RUN(a_stream_reads_behind_what_it_has_written);
    RUN(other_names_are_answered);
    RUN(fdopen_to_append_goes_to_the_end_as_on_the_machine);
    RUN(blocking_work_is_the_simulations);
    return check_end();
}

/* SPDX-License-Identifier: MIT */
/* Files of a simulation give the same results as the machine's: programs of random calls run in a
   temporary directory of the machine, and in one of a simulation, and tell what they have seen. */
#include "../../tests/check_io.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { CALLS = 150, SLOTS = 6, ROOM = 1 << 16 };

static char long_name[NAME_MAX + 2];
static const char *const paths[] = {
    "a",    "b",   "c",      "d",      "a/b",     "a/c",      "b/a",    "b/c", "a/b/c",
    "a/b/", "a/.", "a/..",   "a/../b", "./a",     "a/",       "c/",     "d/",  "b//a",
    "",     ".",   "a/b/..", "./",     "a/b/c/d", "a/b/../c", long_name};

typedef struct program {
    uint64_t random;
    char told[ROOM];
    size_t size;
    int slots[SLOTS]; /* -1: none is open */
    int base;
    char base_path[PATH_MAX];
} program_t;

static unsigned draw(program_t *program, unsigned bound) {
    program->random = program->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(program->random >> 33) % bound;
}

__attribute__((format(printf, 2, 3))) static void tell(program_t *program, const char *format,
                                                       ...) {
    va_list arguments;
    va_start(arguments, format);
    program->size +=
        (size_t)vsnprintf(program->told + program->size, ROOM - program->size, format, arguments);
    va_end(arguments);
    CHECK(program->size < ROOM);
}
static void tell_result(program_t *program, int64_t result) {
    tell(program, " = %lld %s", (long long)result, result < 0 ? strerror(errno) : "");
}

static const char *draw_path_of(program_t *program, size_t most) {
    const char *path = paths[draw(program, draw(program, 3) == 0 ? (unsigned)most : 9)];
    tell(program, " %.20s", path);
    return path;
}
/* More often one that is open. */
static int draw_slot(program_t *program) {
    int slot = (int)draw(program, SLOTS);
    for (int i = 0; i < SLOTS && program->slots[slot] < 0 && draw(program, 8) != 0; i++)
        slot = (slot + 1) % SLOTS;
    tell(program, " slot %d", slot);
    return slot;
}
/* (Of a rename it depends on the other name when one that is too long is found to be.) */
static const char *draw_path(program_t *program) {
    return draw_path_of(program, sizeof paths / sizeof *paths);
}
static const char *draw_short_path(program_t *program) {
    return draw_path_of(program, sizeof paths / sizeof *paths - 1);
}

/* A directory's descriptor, or that of a file, or none, or the current one. */
static int draw_directory(program_t *program) {
    return draw(program, 3) == 0 ? AT_FDCWD : program->slots[draw_slot(program)];
}

/* ---- What is told of files ---- */

static void tell_status(program_t *program, int code, const struct stat *status) {
    tell_result(program, code);
    if (code != 0)
        return;
    tell(program, " mode %o", (unsigned)status->st_mode);
    if (S_ISREG(status->st_mode))
        tell(program, " size %lld names %d", (long long)status->st_size, (int)status->st_nlink);
}

static void tell_bytes(program_t *program, const char *bytes, ssize_t count) {
    unsigned sum = 0;
    for (ssize_t i = 0; i < count; i++)
        sum = sum * 31 + (unsigned char)bytes[i];
    tell_result(program, count);
    tell(program, " sum %u", sum);
}

static int by_name(const void *one, const void *other) {
    return strcmp(one, other);
}
static void tell_names(program_t *program, DIR *directory) {
    enum { MOST = 16, LENGTH = 64 };
    char names[MOST][LENGTH];
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL && count < MOST;)
        snprintf(names[count++], LENGTH, "%.20s%s", entry->d_name,
                 entry->d_type == DT_DIR ? "/" : "");
    qsort(names, count, LENGTH, by_name);
    for (size_t i = 0; i < count; i++)
        tell(program, " %s", names[i]);
}
static void list(program_t *program, DIR *directory) {
    tell_result(program, directory != NULL ? 0 : -1);
    if (directory == NULL)
        return;
    rewinddir(
        directory); /* The machine keeps the place with the file, a simulation in the stream. */
    tell_names(program, directory);
    if (draw(program, 3) == 0) {
        rewinddir(directory);
        tell_names(program, directory);
    }
    CHECK_EQUAL(closedir(directory), 0);
}

/* Notes the part of the path below the directory in which the program runs. */
static void tell_path(program_t *program, const char *path) {
    size_t size = strlen(program->base_path);
    tell_result(program, path != NULL ? 0 : -1);
    if (path != NULL && strncmp(path, program->base_path, size) == 0)
        tell(program, " %.40s", path + size);
    else if (path != NULL)
        tell(program, " %s is elsewhere", path);
}

/* ---- Calls ---- */

static int draw_flags(program_t *program) {
    static const int more[] = {O_CREAT, O_CREAT | O_EXCL, O_CREAT | O_TRUNC,
                               O_TRUNC, O_APPEND,         O_NOFOLLOW};
    int flags = (const int[]){O_RDONLY, O_WRONLY, O_RDWR, O_RDWR}[draw(program, 4)];
    for (int i = 0; i < 2; i++)
        if (draw(program, 3) != 0)
            flags |= more[draw(program, sizeof more / sizeof *more)];
    if ((flags & O_CREAT) == 0 && draw(program, 3) == 0)
        flags = O_RDONLY | O_DIRECTORY;
    tell(program, " flags %o", (unsigned)flags);
    return flags;
}

static void open_one(program_t *program) {
    int slot = (int)draw(program, SLOTS);
    if (program->slots[slot] >= 0)
        close(program->slots[slot]);
    program->slots[slot] = -1;
    int flags = draw_flags(program);
    mode_t mode = 0600 | draw(program, 0100);
    int directory = draw(program, 3) != 0 ? AT_FDCWD : draw_directory(program);
    const char *path = draw_path(program);
    int file =
        directory == AT_FDCWD ? open(path, flags, mode) : openat(directory, path, flags, mode);
    tell_result(program, file < 0 ? -1 : 0);
    tell(program, " slot %d", slot);
    program->slots[slot] = file;
}

/* Systems of files differ in how they refuse to read one, and in its places. */
static bool is_directory(int file) {
    struct stat status;
    return fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
}

static void transfer(program_t *program, int file) {
    char bytes[1000];
    if (is_directory(file))
        return;
    size_t size = draw(program, draw(program, 2) == 0 ? 10 : sizeof bytes);
    off_t at = (off_t)draw(program, 2000) - 2;
    memset(bytes, (int)draw(program, 256), size);
    tell(program, " %zu at %lld", size, (long long)at);
    unsigned kind = draw(program, 4);
    tell(program, " by %u", kind);
    switch (kind) {
    case 0:
        tell_bytes(program, bytes, read(file, bytes, size));
        break;
    case 1:
        tell_bytes(program, bytes, pread(file, bytes, size, at));
        break;
    case 2:
        tell_result(program, write(file, bytes, size));
        break;
    default:
        tell_result(program, pwrite(file, bytes, size, at));
        break;
    }
}

static void resize(program_t *program, int file) {
    off_t size = (off_t)draw(program, 3000) - 3;
    tell(program, " %lld", (long long)size);
    switch (draw(program, 3)) {
    case 0:
        tell_result(program, ftruncate(file, size));
        break;
    case 1:
        tell_result(program, truncate(draw_path(program), size));
        break;
    default: {
        int error = posix_fallocate(file, draw(program, 3) == 0 ? -1 : 5, size);
        tell(program, " %s", strerror(error));
    }
    }
}

static void set_time(program_t *program, int file) {
    struct timespec times[2] = {{(time_t)draw(program, 1u << 31), (long)draw(program, 1u << 29)},
                                {(time_t)draw(program, 1u << 31), draw(program, 1u << 30)}};
    if (draw(program, 4) == 0)
        times[0].tv_nsec = UTIME_OMIT;
    bool of_file = draw(program, 2) == 0;
    const char *path = of_file ? NULL : draw_path(program);
    int code = of_file ? futimens(file, times) : utimensat(AT_FDCWD, path, times, 0);
    tell_result(program, code);
    struct stat status;
    if (code == 0 && (of_file ? fstat(file, &status) : stat(path, &status)) == 0)
        tell(program, " %lld.%09ld", (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

static void change_mode(program_t *program, int file) {
    mode_t mode = 0700 | draw(program, 0100);
    tell(program, " %o", (unsigned)mode);
    tell_result(program,
                draw(program, 2) == 0 ? fchmod(file, mode) : chmod(draw_path(program), mode));
}

static void look(program_t *program, int file) {
    struct stat status;
    struct statx more;
    int code;
    switch (draw(program, 5)) {
    case 0:
        code = stat(draw_path(program), &status);
        break;
    case 1:
        code = lstat(draw_path(program), &status);
        break;
    case 2:
        code = fstat(file, &status);
        break;
    case 3: {
        int directory = draw_directory(program), flags = draw(program, 2) ? AT_EMPTY_PATH : 0;
        code = fstatat(directory, draw_path(program), &status, flags);
        break;
    }
    default: {
        int directory = draw_directory(program), flags = draw(program, 2) ? AT_EMPTY_PATH : 0;
        code = statx(directory, draw_path(program), flags, STATX_BASIC_STATS, &more);
        status.st_mode = more.stx_mode;
        status.st_size = (off_t)more.stx_size;
        status.st_nlink = more.stx_nlink;
    }
    }
    tell_status(program, code, &status);
}

static void change_names(program_t *program) {
    int from, to;
    const char *path;
    switch (draw(program, 8)) {
    case 0:
        tell_result(program, unlink(draw_path(program)));
        break;
    case 1:
        tell_result(program, rmdir(draw_path(program)));
        break;
    case 2:
        tell_result(program, remove(draw_path(program)));
        break;
    case 3:
        from = draw_directory(program);
        path = draw_path(program);
        tell_result(program, unlinkat(from, path, draw(program, 2) ? AT_REMOVEDIR : 0));
        break;
    case 4:
        path = draw_short_path(program);
        tell_result(program, rename(path, draw_short_path(program)));
        break;
    case 5:
        from = draw_directory(program), to = draw_directory(program);
        path = draw_short_path(program);
        tell_result(program, renameat(from, path, to, draw_short_path(program)));
        break;
    case 6:
        path = draw_short_path(program);
        tell_result(program, renameat2(AT_FDCWD, path, AT_FDCWD, draw_short_path(program),
                                       RENAME_NOREPLACE));
        break;
    default:
        from = draw_directory(program);
        tell_result(program, mkdirat(from, draw_path(program), 0700 | draw(program, 0100)));
        break;
    }
}

static void ask_of_names(program_t *program) {
    char path[PATH_MAX];
    switch (draw(program, 6)) {
    case 0:
        tell_result(program, access(draw_path(program), F_OK));
        break;
    case 1:
        tell_result(program, readlink(draw_path(program), path, sizeof path));
        break;
    case 2:
        tell_path(program, realpath(draw_path(program), path));
        break;
    case 3:
        tell_path(program, getcwd(path, sizeof path));
        break;
    case 4:
        tell_result(program, chdir(draw_path(program)));
        break;
    default: {
        int file = program->slots[draw_slot(program)];
        tell_result(program, draw(program, 2) == 0 ? fchdir(file) : fchdir(program->base));
    }
    }
}

static void use_lock(program_t *program, int file) {
    static const int commands[] = {LOCK_SH, LOCK_EX, LOCK_UN, LOCK_EX, 0};
    int command = commands[draw(program, 5)];
    tell(program, " %d", command);
    tell_result(program, flock(file, command | LOCK_NB));
}

static void use_descriptor(program_t *program, int *slot) {
    unsigned kind = draw(program, 5);
    tell(program, " by %u", kind);
    switch (kind) {
    case 0: {
        int copy = draw_slot(program);
        if (program->slots[copy] >= 0)
            close(program->slots[copy]);
        program->slots[copy] = dup(*slot);
        tell_result(program, program->slots[copy] < 0 ? -1 : 0);
        break;
    }
    case 1: {
        int mode = fcntl(*slot, F_GETFL);
        tell_result(program, mode < 0 ? mode : mode & (O_ACCMODE | O_APPEND | O_NONBLOCK));
        break;
    }
    case 2:
        tell_result(program, fcntl(*slot, F_SETFL, draw(program, 2) ? O_APPEND : 0));
        break;
    case 3:
        tell_result(program, fsync(*slot));
        break;
    default:
        tell_result(program, close(*slot));
        *slot = -1;
    }
}

static void call_one(program_t *program) {
    static const char *const kinds[] = {"open",  "open", "transfer", "transfer", "seek",  "resize",
                                        "times", "mode", "look",     "look",     "names", "names",
                                        "mkdir", "ask",  "list",     "lock",     "use",   "mkdir"};
    unsigned kind = draw(program, sizeof kinds / sizeof *kinds);
    tell(program, "%s", kinds[kind]);
    if (kind < 2) {
        open_one(program);
        return;
    }
    int *slot = &program->slots[draw_slot(program)];
    switch (kind) {
    case 2:
    case 3:
        transfer(program, *slot);
        break;
    case 4: {
        off_t by = (off_t)draw(program, 2000) - 300;
        int whence = (int)draw(program, 3);
        tell(program, " %lld %d", (long long)by, whence);
        tell_result(program, is_directory(*slot) ? 0 : lseek(*slot, by, whence));
        break;
    }
    case 5:
        resize(program, *slot);
        break;
    case 6:
        set_time(program, *slot);
        break;
    case 7:
        change_mode(program, *slot);
        break;
    case 8:
    case 9:
        look(program, *slot);
        break;
    case 10:
    case 11:
        change_names(program);
        break;
    case 12:
    case 17:
        tell_result(program, mkdir(draw_path(program), 0700));
        break;
    case 13:
        ask_of_names(program);
        break;
    case 14: {
        int copy = draw(program, 2) == 0 ? dup(*slot) : -1;
        DIR *directory = copy >= 0 ? fdopendir(copy) : opendir(draw_path(program));
        list(program, directory);
        if (copy >= 0 && directory == NULL)
            close(copy);
        break;
    }
    case 15:
        use_lock(program, *slot);
        break;
    default:
        use_descriptor(program, slot);
    }
}

/* In a directory that is empty, and the current one. */
static void run(program_t *program, uint64_t seed) {
    program->random = seed;
    program->size = 0;
    CHECK((program->base = open(".", O_RDONLY | O_DIRECTORY)) >= 0);
    CHECK(getcwd(program->base_path, sizeof program->base_path) != NULL);
    for (int i = 0; i < SLOTS; i++)
        program->slots[i] = -1;
    for (int i = 0; i < CALLS; i++) {
        call_one(program);
        tell(program, "\n");
    }
    for (int i = 0; i < SLOTS; i++)
        if (program->slots[i] >= 0)
            close(program->slots[i]);
    CHECK_EQUAL(fchdir(program->base), 0);
    close(program->base);
}

/* ---- Both systems ---- */

static program_t on_machine, in_simulation;

static void remove_all(const char *path) {
    char command[PATH_MAX + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    CHECK_EQUAL(system(command), 0);
}

static void run_on_machine(uint64_t seed) {
    char directory[] = "/tmp/haft-alike-XXXXXX";
    HAFT_IO_SCOPED_DESCRIPTOR int before = open(".", O_RDONLY | O_DIRECTORY);
    CHECK(mkdtemp(directory) != NULL);
    CHECK_EQUAL(chdir(directory), 0);
    run(&on_machine, seed);
    CHECK_EQUAL(fchdir(before), 0);
    remove_all(directory);
}

BODY(run_here) {
    CHECK_EQUAL(mkdir("/base", 0700), 0);
    CHECK_EQUAL(chdir("/base"), 0);
    run(&in_simulation, haft_io_seed());
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}

/* The first line in which they differ, with those before it. */
static void compare(uint64_t seed) {
    const char *one = on_machine.told, *other = in_simulation.told;
    if (strcmp(one, other) == 0)
        return;
    size_t at = 0, line = 0;
    for (; one[at] == other[at]; at++)
        line = one[at] == '\n' ? at + 1 : line;
    fprintf(stderr, "seed %llu:\n%.*s", (unsigned long long)seed, (int)line, one);
    fprintf(stderr, "the machine:    %.*s\n", (int)strcspn(one + line, "\n"), one + line);
    fprintf(stderr, "the simulation: %.*s\n", (int)strcspn(other + line, "\n"), other + line);
    CHECK(false);
}

static void calls_have_the_machines_results(void) {
    uint64_t count = (uint64_t)check_campaign("HAFT_FILE_PROGRAMS", 200, 3000);
    int before = check_failures;
    memset(long_name, 'x', sizeof long_name - 1);
    umask(0);
    for (uint64_t seed = 1; seed <= count && check_failures == before; seed++) {
        run_on_machine(seed);
        CHECK_EQUAL(
            haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = seed, .files = true},
                                  run_here, NULL),
            0);
        compare(seed);
    }
}

int main(void) {
    RUN(calls_have_the_machines_results);
    return check_end();
}

/* SPDX-License-Identifier: MIT */
/* Files and directories that exist in a simulation only. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "check_io.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const haft_io_simulation_options_t with_files = {.files = true};

static void write_file(const char *path, int flags, const char *text) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open(path, O_WRONLY | flags, 0600);
    CHECK(file >= 0);
    CHECK_EQUAL(haft_io_write_all(file, text, strlen(text)), 0);
    CHECK_EQUAL(haft_io_fsync(file), 0);
}

static char content[200];
static const char *content_of(const char *path) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open(path, O_RDONLY, 0);
    if (file < 0)
        return strerror(-file);
    size_t size = 0;
    for (ssize_t got; (got = haft_io_read(file, content + size, sizeof content - 1 - size)) > 0;)
        size += (size_t)got;
    content[size] = '\0';
    return content;
}

BODY(write_and_read) {
    write_file("log", O_CREAT, "hello");
    CHECK_SAME_TEXT(content_of("log"), "hello");
    write_file("log", 0, "J");
    write_file("log", O_APPEND, " world");
    CHECK_SAME_TEXT(content_of("log"), "Jello world");
    HAFT_IO_SCOPED_DESCRIPTOR int log = haft_io_open("log", O_RDWR | O_APPEND, 0);
    char letter;
    CHECK_EQUAL(haft_io_write(log, "", 0), 0); /* appends nothing, and goes nowhere */
    CHECK_EQUAL(haft_io_read(log, &letter, 1), 1);
    CHECK_EQUAL(letter, 'J');
    write_file("log", O_CREAT | O_TRUNC, "new");
    CHECK_SAME_TEXT(content_of("log"), "new");

    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open("log", O_RDWR, 0);
    char bytes[8] = "";
    while (haft_io_pwrite(file, "x", 1, 6) != 1)
        continue;
    for (int i = 0; i < 7; i++)
        CHECK_EQUAL(haft_io_pread(file, &bytes[i], 1, i), 1);
    CHECK(memcmp(bytes, "new\0\0\0x", 7) == 0);
    CHECK_EQUAL(haft_io_pread(file, bytes, 1, 7), 0);
    struct iovec parts[] = {{bytes, 1}, {bytes + 1, 0}};
    CHECK_EQUAL(haft_io_readv(file, parts, 2), 1); /* at its own position still */
    CHECK_EQUAL(bytes[0], 'n');
    struct stat status;
    CHECK_EQUAL(haft_io_stat("log", &status), 0);
    CHECK(S_ISREG(status.st_mode) && (status.st_mode & 0777) == 0600 && status.st_size == 7);
    return NULL;
}
static void files_keep_what_is_written(void) {
    check_seeds(write_and_read, 20, with_files);
}

BODY(make_mistakes) {
    HAFT_IO_SCOPED_DESCRIPTOR int reading = -1, writing = -1, directory = -1;
    char byte;
    CHECK_EQUAL(haft_io_open("none", O_RDONLY, 0), -ENOENT);
    CHECK_EQUAL(haft_io_open("", O_RDWR | O_CREAT, 0), -ENOENT);
    CHECK_EQUAL(haft_io_open("/log/", O_RDWR | O_CREAT, 0), -EISDIR);
    CHECK_EQUAL(haft_io_open("none/log", O_RDWR | O_CREAT, 0), -ENOENT);
    char name[257] = {0};
    memset(name, 'x', 256);
    CHECK_EQUAL(haft_io_open(name, O_RDWR | O_CREAT, 0), -ENAMETOOLONG);
    write_file("log", O_CREAT | O_EXCL, "text");
    CHECK_EQUAL(haft_io_open("log", O_RDWR | O_CREAT | O_EXCL, 0), -EEXIST);
    CHECK_EQUAL(haft_io_open("log", O_RDONLY | O_DIRECTORY, 0), -ENOTDIR);
    CHECK_EQUAL(haft_io_open("log/log", O_RDWR | O_CREAT, 0), -ENOTDIR);
    CHECK_EQUAL(haft_io_open("/", O_RDWR, 0), -EISDIR);
    CHECK_EQUAL(haft_io_open(".", O_RDWR | O_TMPFILE, 0), -EOPNOTSUPP);
    CHECK((reading = haft_io_open("log", O_RDONLY, 0)) >= 0);
    CHECK_EQUAL(haft_io_write(reading, "x", 1), -EBADF);
    CHECK((writing = haft_io_open("log", O_WRONLY, 0)) >= 0);
    CHECK_EQUAL(haft_io_read(writing, &byte, 1), -EBADF);
    CHECK((directory = haft_io_open("/", O_RDONLY | O_DIRECTORY, 0)) >= 0);
    CHECK_EQUAL(haft_io_read(directory, &byte, 1), -EISDIR);
    CHECK_EQUAL(haft_io_fsync(directory), 0);
    CHECK_EQUAL(haft_io_pread(reading, &byte, 1, -1), -EINVAL);
    CHECK_EQUAL(haft_io_pwrite(writing, "x", 1, INT64_MAX), -EFBIG);
    CHECK_EQUAL(haft_io_receive(reading, &byte, 1, 0), -ENOTSOCK);
    CHECK_EQUAL(haft_io_accept(reading), -ENOTSOCK);
    CHECK_EQUAL(haft_io_port(reading), -ENOTSOCK);
    int ends[2];
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(haft_io_pread(ends[0], &byte, 1, 0), -ESPIPE);
    CHECK_EQUAL(haft_io_fsync(ends[0]), -EINVAL);
    haft_io_close(ends[0]);
    CHECK_EQUAL(haft_io_fsync(ends[0]), -EBADF);
    return NULL;
}
static void errors_are_the_systems(void) {
    check_seeds(make_mistakes, 20, with_files);
}

BODY(use_directories) {
    struct dirent **entries;
    struct stat status;
    CHECK_EQUAL(haft_io_mkdir("/data", 0700), 0);
    CHECK_EQUAL(haft_io_mkdir("/data", 0700), -EEXIST);
    CHECK_EQUAL(haft_io_mkdir("/none/data", 0700), -ENOENT);
    CHECK_EQUAL(haft_io_stat("/data", &status), 0);
    CHECK(S_ISDIR(status.st_mode));
    write_file("/data/b", O_CREAT, "b");
    write_file("/data/a", O_CREAT, "a");
    CHECK_EQUAL(haft_io_list_directory("/data", &entries), 4);
    for (int i = 0; i < 4; i++) {
        CHECK_SAME_TEXT(entries[i]->d_name, ((const char *const[]){".", "..", "a", "b"}[i]));
        free(entries[i]);
    }
    free(entries);
    CHECK_EQUAL(haft_io_list_directory("/data/a", &entries), -ENOTDIR);
    CHECK_EQUAL(haft_io_list_directory("/none", &entries), -ENOENT);
    CHECK_EQUAL(haft_io_remove("/data"), -ENOTEMPTY);
    CHECK_EQUAL(haft_io_remove("/"), -EBUSY);

    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open("/data/b", O_RDONLY, 0);
    CHECK_EQUAL(haft_io_rename("/data/a", "/data/b"), 0);
    CHECK_SAME_TEXT(content_of("/data/b"), "a");
    CHECK_EQUAL(haft_io_read(file, content, 1), 1); /* what was opened stays that */
    CHECK_EQUAL(content[0], 'b');
    CHECK_EQUAL(haft_io_rename("/data/a", "/data/b"), -ENOENT);
    CHECK_EQUAL(haft_io_rename("/data/b", "/data/b"), 0);
    CHECK_EQUAL(haft_io_rename("/data/b", "/data"), -ENOTEMPTY);
    CHECK_EQUAL(haft_io_mkdir("/other", 0700), 0);
    CHECK_EQUAL(haft_io_rename("/data/b", "/other"), -EISDIR);
    CHECK_EQUAL(haft_io_rename("/data/b", "/none/b"), -ENOENT);
    CHECK_EQUAL(haft_io_rename("/data/b", "/b"), 0);
    CHECK_EQUAL(haft_io_remove("/data"), 0);
    CHECK_EQUAL(haft_io_remove("/data"), -ENOENT);
    CHECK_EQUAL(haft_io_remove("/b"), 0);
    CHECK_EQUAL(haft_io_stat("/b", &status), -ENOENT);
    return NULL;
}
static void names_are_made_and_moved_and_removed(void) {
    check_seeds(use_directories, 20, with_files);
}

/* On the system's files, too. */
static const char *names_in(const char *path) {
    static char names[200];
    struct dirent **entries;
    int count = haft_io_list_directory(path, &entries);
    if (count < 0)
        return strerror(-count);
    names[0] = '\0';
    for (int i = 0; i < count; i++) {
        strcat(strcat(names, entries[i]->d_name), i + 1 < count ? " " : "");
        free(entries[i]);
    }
    free(entries);
    return names;
}
BODY(move_directories) {
    CHECK_EQUAL(haft_io_mkdir("one", 0700), 0);
    CHECK_EQUAL(haft_io_mkdir("one/two/", 0700), 0);
    CHECK_EQUAL(haft_io_mkdir("other", 0700), 0);
    write_file("one/two/text", O_CREAT, "text");
    CHECK_SAME_TEXT(content_of("./one//two/../two/text"), "text");
    CHECK_SAME_TEXT(names_in("one/two/.."), ". .. two");
    CHECK_EQUAL(haft_io_mkdir("one/..", 0700), -EEXIST);
    CHECK_EQUAL(haft_io_open("one/two/text/", O_RDONLY, 0), -ENOTDIR);
    CHECK_EQUAL(haft_io_open("one/two/none/", O_RDWR | O_CREAT, 0600), -EISDIR);
    CHECK_EQUAL(haft_io_rename("one", "one/two/three"), -EINVAL);
    CHECK_EQUAL(haft_io_rename("one/two", "one"), -ENOTEMPTY);
    CHECK_EQUAL(haft_io_rename("one/two/text", "other"), -EISDIR);
    CHECK_EQUAL(haft_io_rename("one/two/text", "other/text/"), -ENOTDIR);
    CHECK_EQUAL(haft_io_rename("other", "one/two/text"), -ENOTDIR);
    CHECK_EQUAL(haft_io_rename("one/.", "other"), -EBUSY);
    CHECK_EQUAL(haft_io_rename(".", "./."), -EBUSY);
    CHECK_EQUAL(haft_io_rename("one", "one/."), -EBUSY);
    CHECK_EQUAL(haft_io_rename("/", "/"), -EBUSY);
    CHECK_EQUAL(haft_io_open("one", O_RDONLY | O_TRUNC, 0), -EISDIR);
    CHECK_EQUAL(haft_io_open("one", O_RDONLY | O_TRUNC | O_DIRECTORY, 0), -EISDIR);
    CHECK_EQUAL(haft_io_rename("one", "one"), 0);
    CHECK_EQUAL(haft_io_rename("one/two", "other/"), 0); /* which was empty */
    CHECK_SAME_TEXT(names_in("one"), ". ..");
    CHECK_SAME_TEXT(names_in("other"), ". .. text");
    CHECK_SAME_TEXT(content_of("other/text"), "text");
    CHECK_EQUAL(haft_io_rename("other", "one/moved"), 0);
    CHECK_SAME_TEXT(names_in("one/moved/../moved"), ". .. text");
    CHECK_SAME_TEXT(content_of("one/moved/text"), "text");
    CHECK_EQUAL(haft_io_open("other/text", O_RDONLY, 0), -ENOENT);
    CHECK_EQUAL(haft_io_remove("one/moved/text"), 0);
    CHECK_EQUAL(haft_io_remove("one/moved/."), -EINVAL);
    CHECK_EQUAL(haft_io_remove("one/moved"), 0);
    CHECK_EQUAL(haft_io_remove("one"), 0);
    CHECK_SAME_TEXT(names_in("."), ". ..");
    return NULL;
}
static void directories_are_renamed_as_the_system_does_it(void) {
    check_seeds(move_directories, 20, with_files);
    char directory[] = "/tmp/haft-io-files-XXXXXX";
    CHECK(mkdtemp(directory) != NULL && chdir(directory) == 0);
    CHECK_RUNS(move_directories);
    CHECK(rmdir(directory) == 0 && chdir("/") == 0);
}

enum { DEEP = 3000 };
BODY(go_deep) {
    CHECK_EQUAL(haft_io_mkdir("/deep", 0700), 0);
    for (int i = 0; i < DEEP; i++) {
        CHECK_EQUAL(haft_io_mkdir("/new", 0700), 0);
        CHECK_EQUAL(haft_io_rename("/deep", "/new/deep"), 0);
        CHECK_EQUAL(haft_io_rename("/new", "/deep"), 0);
    }
    CHECK_SAME_TEXT(names_in("/deep/deep/deep"), ". .. deep");
    haft_io_simulated_crash();
    return NULL;
}
static void directories_in_directories_take_no_stack(void) {
    size_t before = haft_stack_size();
    haft_set_stack_size(65536);
    check_seeds(go_deep, 1, with_files);
    haft_set_stack_size(before);
}

static void *append_line(void *line) {
    write_file("log", O_CREAT | O_APPEND, line);
    return NULL;
}
BODY(append_both) {
    haft_io_call_t calls[] = {{append_line, "a", NULL}, {append_line, "b", NULL}};
    CHECK_EQUAL(haft_io_all(calls, 2), 0);
    content_of("log");
    return NULL;
}
static void tasks_meet_in_a_file_in_each_order(void) {
    int firsts[2] = {0, 0};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        CHECK_EQUAL(check_simulate(append_both, seed, with_files), 0);
        CHECK_EQUAL(strlen(content), 2);
        firsts[content[0] == 'b']++;
    }
    CHECK(firsts[0] != 0 && firsts[1] != 0);
}

BODY(leave_open) {
    CHECK(haft_io_open("log", O_RDWR | O_CREAT, 0) >= 0);
    CHECK_EQUAL(haft_io_remove("log"), 0);
    CHECK(haft_io_open("log", O_RDWR | O_CREAT, 0) >= 0);
    CHECK_EQUAL(haft_io_simulated_count(), 2);
    return NULL;
}
static void what_is_left_open_is_counted_and_goes_with_the_run(void) {
    check_seeds(leave_open, 20, with_files);
}

int main(void) {
    RUN(files_keep_what_is_written);
    RUN(errors_are_the_systems);
    RUN(names_are_made_and_moved_and_removed);
    RUN(directories_are_renamed_as_the_system_does_it);
    RUN(directories_in_directories_take_no_stack);
    RUN(tasks_meet_in_a_file_in_each_order);
    RUN(what_is_left_open_is_counted_and_goes_with_the_run);
    return check_end();
}

/* SPDX-License-Identifier: MIT */
/* The files of a simulation after a crash. */
#define _GNU_SOURCE /* O_DSYNC */
#include "check_io.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static const haft_io_simulation_options_t with_files = {.files = true};
enum { SEEDS = 200 };

/* ---- Steps ---- */

static int open_file(const char *path, int flags) {
    int file = haft_io_open(path, O_RDWR | flags, 0600);
    CHECK(file >= 0);
    return file;
}
static void write_text(int file, const char *text) {
    CHECK_EQUAL(haft_io_write_all(file, text, strlen(text)), 0);
}
static void sync_directory(const char *path) {
    HAFT_IO_SCOPED_DESCRIPTOR int directory = haft_io_open(path, O_RDONLY | O_DIRECTORY, 0);
    CHECK(directory >= 0);
    CHECK_EQUAL(haft_io_fsync(directory), 0);
}
static void write_synced(const char *path, const char *text) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file(path, O_CREAT | O_TRUNC);
    write_text(file, text);
    CHECK_EQUAL(haft_io_fsync(file), 0);
}
static bool exists(const char *path) {
    struct stat status;
    int code = haft_io_stat(path, &status);
    CHECK(code == 0 || code == -ENOENT);
    return code == 0;
}
static char content[8192];
static size_t size;
static const char *content_of(const char *path) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open(path, O_RDONLY, 0);
    if (file < 0)
        return strerror(-file);
    size = 0;
    for (ssize_t got; (got = haft_io_read(file, content + size, sizeof content - 1 - size)) > 0;)
        size += (size_t)got;
    content[size] = '\0';
    return content;
}
static bool has(const char *path, const char *text) {
    return strcmp(content_of(path), text) == 0;
}

/* Which of several things has happened in some run: all that can. */
static unsigned seen;
#define SEES(bit, condition) (seen |= (condition) ? 1U << (bit) : 0)
static void check_seen(void *(*body)(void *), unsigned all) {
    seen = 0;
    for (int seed = 1; seed <= SEEDS; seed++)
        CHECK_EQUAL(check_simulate(body, (uint64_t)seed, with_files), 0);
    CHECK_EQUAL(seen, all);
}

/* ---- Files ---- */

BODY(crash_when_all_is_synced) {
    CHECK_EQUAL(haft_io_mkdir("data", 0700), 0);
    write_synced("data/text", "the whole text");
    sync_directory(".");
    sync_directory("data");
    haft_io_simulated_crash();
    CHECK(has("data/text", "the whole text"));
    haft_io_simulated_crash();
    CHECK(has("data/text", "the whole text"));
    return NULL;
}
static void what_was_synced_stays(void) {
    check_seeds(crash_when_all_is_synced, SEEDS, with_files);
}

BODY(crash_before_a_sync) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file("text", O_CREAT);
    sync_directory(".");
    write_text(file, "abc");
    haft_io_simulated_crash();
    content_of("text");
    SEES(0, size == 0);
    SEES(1, size == 3 && memcmp(content, "abc", 3) == 0);
    SEES(2, size == 3 && memcmp(content, "\0\0\0", 3) == 0);
    SEES(3, size == 1 || size == 2);
    CHECK(size <= 3 && (content[0] == 'a' || content[0] == '\0'));
    return NULL;
}
static void what_was_not_synced_is_there_or_lost_or_cut(void) {
    check_seen(crash_before_a_sync, 15);
}

enum { BLOCK = 512, BLOCKS = 6 };
BODY(crash_while_blocks_are_new) {
    static char bytes[BLOCK * BLOCKS];
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file("text", O_CREAT);
    memset(bytes, 'a', sizeof bytes);
    CHECK_EQUAL(haft_io_write_all(file, bytes, sizeof bytes), 0);
    CHECK_EQUAL(haft_io_fsync(file), 0);
    sync_directory(".");
    memset(bytes, 'b', sizeof bytes);
    for (size_t at = 100; at < sizeof bytes - 100;) { /* all but the ends */
        ssize_t done = haft_io_pwrite(file, bytes, sizeof bytes - 100 - at, (int64_t)at);
        at += (size_t)done;
    }
    haft_io_simulated_crash();
    content_of("text");
    CHECK_EQUAL(size, sizeof bytes);
    int news = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        const char *block = content + i * BLOCK;
        size_t from = i == 0 ? 100 : 0, to = i == BLOCKS - 1 ? BLOCK - 100 : BLOCK;
        for (size_t k = 0; k < BLOCK; k++)
            CHECK_EQUAL(block[k], k < from || k >= to ? 'a' : block[from]);
        news += block[from] == 'b';
    }
    SEES(0, news == 0 || news == BLOCKS);
    SEES(1, news > 0 && news < BLOCKS);
    return NULL;
}
static void a_block_is_old_or_new(void) {
    check_seen(crash_while_blocks_are_new, 3);
}

BODY(crash_while_a_file_is_truncated) {
    write_synced("text", "the old text");
    sync_directory(".");
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file("text", O_TRUNC);
    write_text(file, "new");
    haft_io_simulated_crash();
    content_of("text");
    SEES(0, strcmp(content, "the old text") == 0);
    SEES(1, size == 0);
    SEES(2, strcmp(content, "new") == 0);
    SEES(3, size == 3 && memcmp(content, "\0\0\0", 3) == 0);
    CHECK(size <= 3 || strcmp(content, "the old text") == 0);
    return NULL;
}
static void a_truncation_is_lost_or_leaves_nothing_old(void) {
    check_seen(crash_while_a_file_is_truncated, 15);
}

BODY(write_behind_a_hole) {
    write_synced("text", "old old");
    sync_directory(".");
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file("text", O_TRUNC);
    CHECK_EQUAL(haft_io_pwrite(file, "x", 1, 6), 1);
    CHECK_EQUAL(haft_io_fsync(file), 0);
    CHECK_EQUAL(haft_io_pwrite(file, "y", 1, 0), 1);
    haft_io_simulated_crash();
    content_of("text");
    CHECK(size == 7 && memcmp(content + 1, "\0\0\0\0\0x", 6) == 0);
    SEES(0, content[0] == 'y');
    SEES(1, content[0] == '\0');
    return NULL;
}
static void what_was_truncated_does_not_come_back(void) {
    check_seen(write_behind_a_hole, 3);
}

BODY(append_records) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file("log", O_CREAT | O_APPEND);
    sync_directory(".");
    for (int i = 0; i < 100; i++) {
        write_text(file, "record\n");
        if (i < 50)
            CHECK_EQUAL(haft_io_fsync(file), 0);
    }
    haft_io_simulated_crash();
    content_of("log");
    CHECK(size >= 350 && size <= 700);
    for (size_t i = 0; i < 350; i++)
        CHECK_EQUAL(content[i], "record\n"[i % 7]);
    SEES(0, size % 7 != 0);
    SEES(1, size == 700);
    SEES(2, size < 700);
    return NULL;
}
static void a_log_keeps_its_records_up_to_the_last_sync(void) {
    check_seen(append_records, 7);
}

BODY(write_synchronously) {
    HAFT_IO_SCOPED_DESCRIPTOR int log =
        open_file("log", O_CREAT | (haft_io_seed() % 2 == 0 ? O_SYNC : O_DSYNC));
    sync_directory(".");
    write_text(log, "record");
    haft_io_simulated_crash();
    CHECK(has("log", "record"));
    return NULL;
}
static void what_is_written_synchronously_stays(void) {
    check_seeds(write_synchronously, SEEDS, with_files);
}

/* ---- Names ---- */

BODY(crash_before_a_sync_of_the_directory) {
    write_synced("a", "a");
    write_synced("b", "b");
    haft_io_simulated_crash();
    SEES(0, exists("a"));
    SEES(1, exists("b") && !exists("a")); /* names apart from each other */
    SEES(2, !exists("a") && !exists("b"));
    CHECK(!exists("a") || has("a", "a"));
    CHECK(!exists("b") || has("b", "b"));
    return NULL;
}
static void a_sync_of_a_file_keeps_no_name(void) {
    check_seen(crash_before_a_sync_of_the_directory, 7);
}

BODY(crash_after_removes) {
    write_synced("text", "old");
    write_synced("gone", "old");
    sync_directory(".");
    CHECK_EQUAL(haft_io_remove("gone"), 0);
    sync_directory(".");
    CHECK_EQUAL(haft_io_remove("text"), 0);
    SEES(0, !exists("text"));
    write_synced("text", "new");
    haft_io_simulated_crash();
    CHECK(!exists("gone"));
    SEES(1, !exists("text"));
    SEES(2, has("text", "old"));
    SEES(3, has("text", "new"));
    return NULL;
}
static void of_a_names_changes_the_first_ones_are_kept(void) {
    check_seen(crash_after_removes, 15);
}

BODY(replace_a_file) {
    write_synced("text", "old");
    sync_directory(".");
    write_synced("text.new", "new");
    CHECK_EQUAL(haft_io_rename("text.new", "text"), 0);
    haft_io_simulated_crash();
    bool is_new = has("text", "new"), left = exists("text.new");
    CHECK(is_new || has("text", "old"));
    CHECK(!is_new || !left);
    CHECK(!left || has("text.new", "new"));
    SEES(0, is_new);
    SEES(1, !is_new && left);
    SEES(2, !is_new && !left);
    return NULL;
}
static void a_rename_is_whole_or_nothing(void) {
    check_seen(replace_a_file, 7);
}

BODY(replace_by_what_is_not_synced) {
    write_synced("text", "old");
    sync_directory(".");
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file("text.new", O_CREAT);
    write_text(file, "new");
    CHECK_EQUAL(haft_io_rename("text.new", "text"), 0);
    sync_directory(".");
    haft_io_simulated_crash();
    SEES(0, has("text", "new"));
    SEES(1, has("text", ""));
    CHECK(!has("text", "old"));
    return NULL;
}
static void who_does_not_sync_what_he_renames_finds_half_a_file(void) {
    check_seen(replace_by_what_is_not_synced, 3);
}

BODY(move_between_directories) {
    CHECK_EQUAL(haft_io_mkdir("one", 0700), 0);
    CHECK_EQUAL(haft_io_mkdir("two", 0700), 0);
    write_synced("one/text", "text");
    CHECK_EQUAL(haft_io_rename("one/text", "two/text"), 0);
    sync_directory(".");
    sync_directory("two"); /* and so the other half of the rename */
    CHECK_EQUAL(haft_io_rename("two/text", "one/back"), 0);
    CHECK_EQUAL(haft_io_rename("one/back", "two/text"), 0);
    CHECK_EQUAL(haft_io_rename("two/text", "one/last"), 0);
    sync_directory("two"); /* from which it has gone */
    CHECK_EQUAL(haft_io_rename("two", "one/two"), 0);
    haft_io_simulated_crash();
    CHECK(!exists("one/text"));
    bool moved = exists("one/two");
    CHECK(exists("two") != moved);
    CHECK(has("one/last", "text") && !exists("two/text") && !exists("one/back"));
    CHECK(has(moved ? "one/two/../last" : "two/../one/last", "text"));
    SEES(0, moved);
    SEES(1, !moved);
    return NULL;
}
static void a_rename_between_directories_is_one_change(void) {
    check_seen(move_between_directories, 3);
}

BODY(lose_a_directory) {
    CHECK_EQUAL(haft_io_mkdir("one", 0700), 0);
    CHECK_EQUAL(haft_io_mkdir("one/two", 0700), 0);
    write_synced("one/two/text", "text");
    sync_directory("one/two");
    sync_directory("one");
    haft_io_simulated_crash();
    SEES(0, !exists("one"));
    SEES(1, exists("one") && has("one/two/text", "text"));
    CHECK(!exists("one") || exists("one/two/text"));
    CHECK_EQUAL(exists("one/two/text"), exists("one"));
    return NULL;
}
static void what_is_in_a_lost_directory_is_lost(void) {
    check_seen(lose_a_directory, 3);
}

BODY(change_many_names) {
    enum { MANY = 1100 };
    char path[20];
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "%d", i);
        int file = open_file(path, O_CREAT);
        haft_io_close(file);
    }
    haft_io_simulated_crash();
    int lost = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "%d", i);
        CHECK(i >= 100 || exists(path));
        lost += !exists(path);
    }
    CHECK(lost > 300 && lost < 700);
    return NULL;
}
static void the_oldest_of_very_many_changes_are_synced(void) {
    check_seeds(change_many_names, 2, with_files);
}

/* ---- Descriptors ---- */

BODY(go_on_after_a_crash) {
    char byte;
    HAFT_IO_SCOPED_DESCRIPTOR int file = open_file("text", O_CREAT);
    HAFT_IO_SCOPED_DESCRIPTOR int directory = haft_io_open("/", O_RDONLY, 0);
    write_text(file, "text");
    haft_io_simulated_crash();
    CHECK_EQUAL(haft_io_write(file, "x", 1), -EIO);
    CHECK_EQUAL(haft_io_read(file, &byte, 1), -EIO);
    CHECK_EQUAL(haft_io_pread(file, &byte, 1, 0), -EIO);
    CHECK_EQUAL(haft_io_fsync(file), -EIO);
    CHECK_EQUAL(haft_io_fsync(directory), -EIO);
    CHECK_EQUAL(haft_io_simulated_count(), 2);
    HAFT_IO_SCOPED_DESCRIPTOR int again = open_file("text", O_CREAT | O_TRUNC);
    write_text(again, "more");
    CHECK(has("text", "more"));
    return NULL;
}
static void what_was_opened_before_is_of_no_use(void) {
    check_seeds(go_on_after_a_crash, 20, with_files);
}

static void crash_outside(void) {
    haft_io_simulated_crash();
}
BODY(crash_without_files) {
    haft_io_simulated_crash();
    return NULL;
}
static void simulate_without_files(void) {
    haft_io_simulate(crash_without_files, NULL);
}
static void a_crash_needs_files(void) {
    if (!check_follows_children())
        return;
    CHECK_ABORTS(crash_outside, "haft_io_simulated_crash was called outside of haft_io_simulate.");
    CHECK_ABORTS(simulate_without_files,
                 "haft_io_simulated_crash was called in a simulation without .files.");
}

/* ---- Any changes ---- */

/* Synced files that hold their own number, in synced directories. After a crash the files are those
   of some moment before it, and each is there once. */
enum { STEPS = 150, PLACES = 3, NAMES = 4, MOST_FILES = STEPS + 1 };
static uint64_t state_of_chance;
static unsigned below(unsigned bound) {
    state_of_chance =
        state_of_chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state_of_chance >> 33) % bound;
}
static const char *some_path(char path[20]) {
    snprintf(path, 20, "/%u/%u", below(PLACES), below(NAMES));
    return path;
}
static unsigned made;
static char trace[STEPS * 4];

static void make_file(const char *path) {
    char text[20];
    if (exists(path))
        return;
    snprintf(text, sizeof text, "%u", made++);
    write_synced(path, text);
}
static void look_at_all(void) {
    bool found[MOST_FILES] = {false};
    size_t traced = strlen(trace);
    for (unsigned i = 0; i < PLACES; i++) {
        char path[20];
        struct dirent **entries;
        int count = haft_io_list_directory((snprintf(path, sizeof path, "/%u", i), path), &entries);
        CHECK(count >= 2);
        for (int k = 0; k < count; k++) {
            snprintf(path, sizeof path, "/%u/%c", i, entries[k]->d_name[0]);
            free(entries[k]);
            if (path[3] == '.')
                continue;
            unsigned file = (unsigned)atoi(content_of(path));
            CHECK(size != 0 && file < made && !found[file]);
            found[file] = true;
        }
        free(entries);
        for (unsigned k = 0; k < NAMES; k++) {
            snprintf(path, sizeof path, "/%u/%u", i, k);
            if (exists(path) && traced + 1 < sizeof trace)
                trace[traced++] = (char)('0' + atoi(content_of(path)) % 10);
        }
    }
    trace[traced] = '\0';
}
BODY(change_and_crash) {
    made = 0;
    trace[0] = '\0';
    state_of_chance = haft_io_seed();
    char one[20], other[20];
    for (unsigned i = 0; i < PLACES; i++)
        CHECK_EQUAL(haft_io_mkdir((snprintf(one, sizeof one, "/%u", i), one), 0700), 0);
    sync_directory("/");
    for (int step = 0; step < STEPS; step++) {
        switch (below(8)) {
        case 0:
        case 1:
        case 2:
            make_file(some_path(one));
            break;
        case 3:
            haft_io_remove(some_path(one));
            break;
        case 4:
        case 5:
            haft_io_rename(some_path(one), some_path(other));
            break;
        case 6:
            sync_directory((snprintf(one, sizeof one, "/%u", below(PLACES)), one));
            break;
        default:
            if (below(4) == 0) {
                haft_io_simulated_crash();
                look_at_all();
            }
        }
    }
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void no_file_is_there_twice_and_the_seed_says_which_are(void) {
    char before[sizeof trace];
    for (uint64_t seed = 1; seed <= (uint64_t)check_times(SEEDS); seed++) {
        CHECK_EQUAL(check_simulate(change_and_crash, seed, with_files), 0);
        memcpy(before, trace, sizeof before);
        CHECK_EQUAL(check_simulate(change_and_crash, seed, with_files), 0);
        CHECK_SAME_TEXT(trace, before);
    }
}

int main(void) {
    RUN(what_was_synced_stays);
    RUN(what_was_not_synced_is_there_or_lost_or_cut);
    RUN(a_block_is_old_or_new);
    RUN(a_truncation_is_lost_or_leaves_nothing_old);
    RUN(what_was_truncated_does_not_come_back);
    RUN(a_log_keeps_its_records_up_to_the_last_sync);
    RUN(what_is_written_synchronously_stays);
    RUN(a_sync_of_a_file_keeps_no_name);
    RUN(of_a_names_changes_the_first_ones_are_kept);
    RUN(a_rename_is_whole_or_nothing);
    RUN(who_does_not_sync_what_he_renames_finds_half_a_file);
    RUN(a_rename_between_directories_is_one_change);
    RUN(what_is_in_a_lost_directory_is_lost);
    RUN(the_oldest_of_very_many_changes_are_synced);
    RUN(what_was_opened_before_is_of_no_use);
    RUN(a_crash_needs_files);
    RUN(no_file_is_there_twice_and_the_seed_says_which_are);
    return check_end();
}

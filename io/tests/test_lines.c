/* SPDX-License-Identifier: MIT */
/* The reader of lines: of every size, from whatever can be read, and nothing is lost where a wait
   ends early. */
#include "check_io.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LONGEST = 100001, ROOM = LONGEST + 1 };
static const size_t sizes[] = {0, 1, 64, 65, 1000, 100000, 2, 0, 0, 7};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* One for each task that reads. */
static char memory[ROOM];

static haft_io_reader_t lines_of(int descriptor, size_t size) {
    return (haft_io_reader_t){.descriptor = descriptor, .memory = memory, .size = size};
}

static char byte_of(size_t line, size_t at) {
    return (char)('a' + (line + at) % 26);
}

/* ---- What a stream has is what comes ---- */

static void write_lines(int descriptor) {
    static char text[LONGEST];
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t at = 0; at < sizes[i]; at++)
            text[at] = byte_of(i, at);
        text[sizes[i]] = '\n';
        CHECK_EQUAL(haft_io_write_all(descriptor, text, sizes[i] + 1), 0);
    }
}

static void read_lines(int descriptor) {
    haft_io_reader_t lines = lines_of(descriptor, ROOM);
    char *line;
    for (size_t i = 0; i < SIZES; i++) {
        CHECK_EQUAL(haft_io_reader_line(&lines, &line), (ssize_t)sizes[i] + 1);
        CHECK(strlen(line) == sizes[i] + 1 && line[sizes[i]] == '\n');
        size_t same = 0;
        while (same < sizes[i] && line[same] == byte_of(i, same))
            same++;
        CHECK_EQUAL(same, sizes[i]);
        memset(line, '\n', sizes[i] + 1); /* it is the caller's */
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(haft_io_reader_line(&lines, &line), 0);
        CHECK_EQUAL(*line, '\0');
    }
}

static int ends[2];

BODY(write_and_close) {
    write_lines(ends[1]);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
    return NULL;
}
static void pass_lines(void) {
    haft_io_task_t *writer = haft_io_async(write_and_close, NULL);
    read_lines(ends[0]);
    haft_io_join(writer, NULL);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
}

BODY(use_streams) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    pass_lines();
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pass_lines();
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    ends[1] = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    ends[0] = haft_io_accept(listener);
    CHECK_EQUAL(haft_io_close(listener), 0);
    pass_lines();
    return NULL;
}
static void use_backend(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, use_streams, NULL), 0);
}
static void lines_of_every_size_come(void) {
    check_everywhere(use_backend);
}

static void read_a_file(const char *path) {
    int file = haft_io_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    write_lines(file);
    CHECK_EQUAL(haft_io_close(file), 0);
    file = haft_io_open(path, O_RDONLY, 0);
    read_lines(file);
    CHECK_EQUAL(haft_io_close(file), 0);
    CHECK_EQUAL(haft_io_remove(path), 0);
}

BODY(use_what_is_simulated) {
    read_a_file("lines");
    return use_streams(NULL);
}
static void simulated_streams_and_files_have_lines(void) {
    check_seeds(use_what_is_simulated, 10,
                (haft_io_simulation_options_t){.network = true, .files = true});
}

/* ---- Without a run ---- */

/* A pipe from which a text comes, and then the end. */
static int text_of(const char *text, size_t size) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    CHECK_EQUAL(haft_io_write_all(ends[1], text, size), 0);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
    return ends[0];
}

static void check_line(haft_io_reader_t *lines, const char *text, size_t size) {
    char *line;
    CHECK_EQUAL(haft_io_reader_line(lines, &line), (ssize_t)size);
    CHECK(memcmp(line, text, size + 1) == 0);
}

static void outside_of_a_run_they_block(void) {
    char path[] = "/tmp/haft-lines-XXXXXX";
    int file = mkstemp(path);
    CHECK_EQUAL(haft_io_close(file), 0);
    read_a_file(path);
}

static void the_last_line_may_have_no_newline(void) {
    haft_io_reader_t lines = lines_of(text_of("first\nlast", 10), 100);
    check_line(&lines, "first\n", 6);
    check_line(&lines, "last", 4);
    check_line(&lines, "", 0);
    haft_io_close(ends[0]);
}

static void a_line_may_have_zeros(void) {
    haft_io_reader_t lines = lines_of(text_of("\0a\0\n\n\0", 6), 100);
    check_line(&lines, "\0a\0\n", 4);
    check_line(&lines, "\n", 1);
    check_line(&lines, "\0", 1);
    check_line(&lines, "", 0);
    haft_io_close(ends[0]);
}

/* ---- Limits ---- */

/* Lines that fit in memory of each size, and lines that do not. */
static void a_line_is_shorter_than_the_memory(void) {
    static const char text[] = "abc\nabcdefg\nabcdefg";
    char *line;
    for (size_t size = 0; size < 12; size++) {
        haft_io_reader_t lines = lines_of(text_of(text, sizeof text - 1), size);
        if (size > 4)
            check_line(&lines, "abc\n", 4);
        if (size > 8) {
            check_line(&lines, "abcdefg\n", 8);
            check_line(&lines, "abcdefg", 7);
            check_line(&lines, "", 0);
        } else {
            CHECK_EQUAL(haft_io_reader_line(&lines, &line), -EMSGSIZE);
            CHECK_EQUAL(haft_io_reader_line(&lines, &line), -EMSGSIZE);
        }
        haft_io_close(ends[0]);
    }
}
static void the_last_line_is_shorter_than_the_memory(void) {
    for (size_t size = 5; size < 12; size++) {
        haft_io_reader_t lines = lines_of(text_of("abc\nabcdefg", 11), size);
        char *line;
        check_line(&lines, "abc\n", 4);
        if (size > 7)
            check_line(&lines, "abcdefg", 7);
        else
            CHECK_EQUAL(haft_io_reader_line(&lines, &line), -EMSGSIZE);
        haft_io_close(ends[0]);
    }
}

static void with_more_memory_a_long_line_goes_on(void) {
    haft_io_reader_t lines = lines_of(text_of("abc\nabcdefg\nend", 15), 6);
    char *line, more[9];
    check_line(&lines, "abc\n", 4);
    CHECK_EQUAL(haft_io_reader_line(&lines, &line), -EMSGSIZE);
    memcpy(more, memory, lines.size);
    lines.memory = more;
    lines.size = sizeof more;
    check_line(&lines, "abcdefg\n", 8);
    check_line(&lines, "end", 3);
    haft_io_close(ends[0]);
}

/* In memory of its own, beyond which a sanitizer would see a step. */
static void a_line_that_does_not_fit_is_read_as_bytes(void) {
    for (size_t piece = 1; piece < 7; piece++) {
        haft_io_reader_t lines = lines_of(text_of("abcdefg\nxyz\n", 12), 5);
        char *line, bytes[7], *own = malloc(lines.size);
        lines.memory = own;
        CHECK_EQUAL(haft_io_reader_line(&lines, &line), -EMSGSIZE);
        CHECK_EQUAL(haft_io_reader_read(&lines, bytes, 0), 0);
        CHECK_EQUAL(haft_io_reader_line(&lines, &line), -EMSGSIZE);
        for (size_t filled = 0; filled < 7;) {
            size_t wanted = piece < 7 - filled ? piece : 7 - filled;
            ssize_t got = haft_io_reader_read(&lines, bytes + filled, wanted);
            CHECK(got > 0 && bytes[filled] == (char)('a' + filled));
            filled += got > 0 ? (size_t)got : 7;
        }
        check_line(&lines, "\n", 1);
        check_line(&lines, "xyz\n", 4);
        check_line(&lines, "", 0);
        free(own);
        haft_io_close(ends[0]);
    }
}

/* ---- Waits that end early ---- */

static haft_io_reader_t partial;

BODY(read_to_the_deadline) {
    char *line;
    haft_io_reader_line(&partial, &line);
    CHECK(!"a line that has no end yet");
    return NULL;
}
BODY(read_until_cancelled) {
    char *line;
    haft_io_return_cancels(true);
    CHECK_EQUAL(haft_io_reader_line(&partial, &line), -ECANCELED);
    CHECK_EQUAL(haft_io_reader_line(&partial, &line), -ECANCELED);
    haft_io_return_cancels(false);
    return NULL;
}
BODY(cut_lines_short) {
    static const haft_io_scope_options_t late = {.deadline = 1};
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    partial = lines_of(ends[0], 12);
    for (int i = 0; i < 100; i++) {
        haft_io_write_all(ends[1], "be", 2);
        CHECK_EQUAL(haft_io_scope_with(&late, read_to_the_deadline, NULL, NULL), -ETIMEDOUT);
        haft_io_write_all(ends[1], "gin", 3);
        haft_io_scope_options_t soon = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND / 10};
        CHECK_EQUAL(haft_io_scope_with(&soon, read_to_the_deadline, NULL, NULL), -ETIMEDOUT);
        CHECK_EQUAL(haft_io_scope_with(&late, read_until_cancelled, NULL, NULL), -ETIMEDOUT);
        haft_io_write_all(ends[1], " end\nnex", 8);
        check_line(&partial, "begin end\n", 10);
        CHECK_EQUAL(haft_io_scope_with(&late, read_to_the_deadline, NULL, NULL), -ETIMEDOUT);
        haft_io_write_all(ends[1], "t\n", 2);
        check_line(&partial, "next\n", 5);
    }
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
static void cut_short_on(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, cut_lines_short, NULL), 0);
}
static void a_deadline_loses_nothing(void) {
    check_everywhere(cut_short_on);
    check_seeds(cut_lines_short, 10, (haft_io_simulation_options_t){.network = true});
}

/* The writer does not wait for the reader: deadlines pass before bytes come, after, and when they
   do. */
BODY(write_slowly) {
    for (int i = 0; i < 500; i++) {
        haft_io_write_all(ends[1], i % 5 < 4 ? "x" : "\n", 1);
        haft_io_sleep(HAFT_IO_MICROSECOND * 50);
    }
    haft_io_close(ends[1]);
    return NULL;
}
static ssize_t got;
BODY(read_one) {
    char *line;
    got = haft_io_reader_line(&partial, &line);
    return NULL;
}
BODY(read_impatiently) {
    int count = 0;
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    partial = lines_of(ends[0], 12);
    haft_io_task_t *writer = haft_io_async(write_slowly, NULL);
    do {
        got = -ETIMEDOUT;
        haft_io_scope_options_t soon = {.deadline = haft_io_now() + HAFT_IO_MICROSECOND * 100};
        haft_io_scope_with(&soon, read_one, NULL, NULL);
        CHECK(got == 5 || got == 0 || got == -ETIMEDOUT);
        count += got == 5;
    } while (got != 0);
    CHECK_EQUAL(count, 100);
    haft_io_join(writer, NULL);
    haft_io_close(ends[0]);
    return NULL;
}
static void impatient_on(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, read_impatiently, NULL), 0);
}
static void deadlines_at_any_time_lose_nothing(void) {
    check_everywhere(impatient_on);
    check_seeds(read_impatiently, 10, (haft_io_simulation_options_t){.network = true});
}

/* A head of lines, and a body of so many bytes, in pieces of any size. */
static void bodies_come_after_lines(void) {
    for (size_t piece = 1; piece <= 70; piece++) {
        int pair[2];
        CHECK_EQUAL(haft_io_pipe(pair), 0);
        const char text[] = "head\n5\nfirst7\nsecond\n0\nlast\nrest";
        CHECK_EQUAL(haft_io_write_all(pair[1], text, sizeof text - 1), 0);
        haft_io_close(pair[1]);
        haft_io_reader_t lines = lines_of(pair[0], 16); /* less than all */
        char *line, body[80];
        check_line(&lines, "head\n", 5);
        for (const char *next = "first\0second\n\0"; *next != '\0'; next += strlen(next) + 1) {
            CHECK(haft_io_reader_line(&lines, &line) == 2);
            size_t size = (size_t)(*line - '0'), filled = 0;
            while (filled < size) {
                ssize_t more = haft_io_reader_read(&lines, body + filled,
                                                   piece < size - filled ? piece : size - filled);
                CHECK(more > 0);
                filled += more > 0 ? (size_t)more : size;
            }
            CHECK(memcmp(body, next, size) == 0);
        }
        check_line(&lines, "0\n", 2);
        check_line(&lines, "last\n", 5);
        size_t filled = 0;
        for (ssize_t more;
             (more = haft_io_reader_read(&lines, body + filled, piece)) > 0 && filled < 5;)
            filled += (size_t)more;
        CHECK(filled == 4 && memcmp(body, "rest", 4) == 0);
        CHECK_EQUAL(haft_io_reader_read(&lines, body, piece), 0);
        CHECK_EQUAL(haft_io_reader_line(&lines, &line), 0);
        haft_io_close(pair[0]);
    }
}

static void an_error_is_that_of_the_read(void) {
    char *line;
    partial = lines_of(-1, 10);
    CHECK_EQUAL(haft_io_reader_line(&partial, &line), -EBADF);
}

static void parts_end_with_any_byte(void) {
    int pair[2];
    CHECK_EQUAL(haft_io_pipe(pair), 0);
    CHECK_EQUAL(haft_io_write_all(pair[1], "one\0two;three\nfour", 18), 0);
    haft_io_close(pair[1]);
    haft_io_reader_t lines = lines_of(pair[0], 16);
    char *part;
    CHECK_EQUAL(haft_io_reader_until(&lines, '\0', &part), 4);
    CHECK_SAME_TEXT(part, "one");
    CHECK_EQUAL(haft_io_reader_until(&lines, ';', &part), 4);
    CHECK_SAME_TEXT(part, "two;");
    check_line(&lines, "three\n", 6);
    CHECK_EQUAL(haft_io_reader_until(&lines, ';', &part), 4);
    CHECK_SAME_TEXT(part, "four");
    CHECK_EQUAL(haft_io_reader_until(&lines, ';', &part), 0);
    haft_io_close(pair[0]);
}

/* ---- All that was asked for, and writers ---- */

enum { MUCH = 100000 };
static char pattern[MUCH];
static int much[2];

static void *write_in_pieces(void *pieces) {
    char room_here[100];
    haft_io_writer_t writer = {
        .descriptor = much[1], .memory = room_here, .size = sizeof room_here};
    const size_t *of = pieces;
    for (size_t at = 0, i = 0; at < MUCH; i++) {
        size_t size = of[i % 4] < MUCH - at ? of[i % 4] : MUCH - at;
        CHECK_EQUAL(haft_io_writer_write(&writer, pattern + at, size), 0);
        at += size;
    }
    CHECK_EQUAL(haft_io_writer_flush(&writer), 0);
    CHECK_EQUAL(haft_io_writer_flush(&writer), 0);
    haft_io_close(much[1]);
    return NULL;
}
BODY(read_what_was_gathered) {
    static size_t pieces[][4] = {
        {1, 1, 1, 1}, {99, 100, 101, 1}, {100, 100, 100, 100}, {70000, 3, 250, 0}};
    static char came[MUCH + 1];
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        CHECK_EQUAL(haft_io_pipe(much), 0);
        haft_io_spawn(write_in_pieces, pieces[i]);
        CHECK_EQUAL(haft_io_read_all(much[0], came, 1000), 1000);
        CHECK_EQUAL(haft_io_read_all(much[0], came + 1000, sizeof came - 1000), MUCH - 1000);
        CHECK_EQUAL(haft_io_read_all(much[0], came, 1), 0);
        CHECK(memcmp(came, pattern, MUCH) == 0);
        haft_io_close(much[0]);
    }
    return NULL;
}
static void a_writer_gathers_and_read_all_reads_all(void) {
    for (size_t i = 0; i < MUCH; i++)
        pattern[i] = (char)(i * 31 >> 3);
    CHECK_RUNS(read_what_was_gathered);
}

static void a_writer_prints(void) {
    int pair[2];
    char room_here[16], came[64];
    CHECK_EQUAL(haft_io_pipe(pair), 0);
    haft_io_writer_t writer = {
        .descriptor = pair[1], .memory = room_here, .size = sizeof room_here};
    for (int i = 0; i < 5; i++)
        CHECK_EQUAL(haft_io_writer_print(&writer, "%d and ", i), 0);
    CHECK_EQUAL(haft_io_writer_print(&writer, "%s", "fifteen letters"), 0);
    CHECK_EQUAL(haft_io_writer_flush(&writer), 0);
    CHECK_EQUAL(haft_io_writer_print(&writer, "%s", "sixteen letters!"), -EMSGSIZE);
    haft_io_close(pair[1]);
    ssize_t size = haft_io_read_all(pair[0], came, sizeof came - 1);
    came[size > 0 ? size : 0] = '\0';
    CHECK_SAME_TEXT(came, "0 and 1 and 2 and 3 and 4 and fifteen letters");
    haft_io_close(pair[0]);
    writer.descriptor = -1;
    CHECK_EQUAL(haft_io_writer_print(&writer, "kept"), 0);
    CHECK_EQUAL(haft_io_writer_flush(&writer), -EBADF);
    CHECK_EQUAL(haft_io_writer_flush(&writer), -EBADF);
}

int main(void) {
    check_backend();
    RUN(parts_end_with_any_byte);
    RUN(a_writer_gathers_and_read_all_reads_all);
    RUN(a_writer_prints);
    RUN(lines_of_every_size_come);
    RUN(simulated_streams_and_files_have_lines);
    RUN(outside_of_a_run_they_block);
    RUN(the_last_line_may_have_no_newline);
    RUN(a_line_may_have_zeros);
    RUN(a_line_is_shorter_than_the_memory);
    RUN(the_last_line_is_shorter_than_the_memory);
    RUN(with_more_memory_a_long_line_goes_on);
    RUN(a_line_that_does_not_fit_is_read_as_bytes);
    RUN(a_deadline_loses_nothing);
    RUN(deadlines_at_any_time_lose_nothing);
    RUN(bodies_come_after_lines);
    RUN(an_error_is_that_of_the_read);
    return check_end();
}

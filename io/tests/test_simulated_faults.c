/* SPDX-License-Identifier: MIT */
/* Faults in a simulation: programs that come to terms with them, the same way for the same seed. */
#include "check_io.h"

#include <poll.h>
#include <string.h>

enum { SEEDS = 300 };

static int simulate(void *(*body)(void *), uint64_t seed, unsigned faults_one_in) {
    return check_simulate(body, seed,
                          (haft_io_simulation_options_t){
                              .network = true, .files = true, .faults_one_in = faults_one_in});
}

/* ---- A server and its clients ---- */

enum { CLIENTS = 10, SENT = 500 };

static void *echo(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char bytes[100];
    for (ssize_t got; (got = haft_io_read(connection, bytes, sizeof bytes)) > 0;)
        if (haft_io_write_all(connection, bytes, (size_t)got) < 0)
            break;
    return NULL;
}
static void *serve(void *listener) {
    int connection;
    while ((connection = haft_io_accept((int)(intptr_t)listener)) >= 0)
        haft_io_spawn(echo, check_number(connection));
    CHECK_EQUAL(connection, -EBADF);
    return NULL;
}

/* The outcome of each client: how it ended, at which time, with how many bytes. */
typedef struct outcome {
    int code;
    int64_t when;
    size_t bytes;
} outcome_t;
static outcome_t outcomes[CLIENTS];

static int speak_with(int connection, size_t *bytes) {
    char text[50], back[50];
    memset(text, 'x', sizeof text);
    while (*bytes < SENT) {
        int code = haft_io_write_all(connection, text, sizeof text);
        if (code != 0)
            return code;
        for (size_t got = 0; got < sizeof back;) {
            ssize_t more = haft_io_read(connection, back + got, sizeof back - got);
            if (more <= 0)
                return more == 0 ? -EPIPE : (int)more;
            got += (size_t)more;
        }
        CHECK(memcmp(text, back, sizeof text) == 0);
        *bytes += sizeof text;
    }
    return 0;
}
static void *speak(void *argument) {
    outcome_t *outcome = argument;
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("localhost", 7000);
    outcome->code = connection < 0 ? connection : speak_with(connection, &outcome->bytes);
    outcome->when = haft_io_now();
    return NULL;
}

BODY(serve_and_speak) {
    int listener;
    while ((listener = haft_io_listen_tcp("::", 7000, 2)) < 0)
        CHECK_EQUAL(listener, -EMFILE);
    haft_io_task_t *server = haft_io_async(serve, check_number(listener));
    haft_io_call_t calls[CLIENTS];
    memset(outcomes, 0, sizeof outcomes);
    for (int i = 0; i < CLIENTS; i++)
        calls[i] = (haft_io_call_t){speak, &outcomes[i], NULL};
    CHECK_EQUAL(haft_io_all(calls, CLIENTS), 0);
    CHECK_EQUAL(haft_io_close(listener), 0);
    CHECK_EQUAL(haft_io_join(server, NULL), 0);
    return NULL;
}
BODY(serve_and_count) {
    CHECK_EQUAL(haft_io_scope(serve_and_speak, NULL, NULL), 0);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void each_client_has_all_bytes_or_an_error_and_the_seed_says_which(void) {
    static const int errors[] = {0, ECONNRESET, EPIPE, ECONNREFUSED, ETIMEDOUT, EMFILE};
    enum { KINDS = sizeof errors / sizeof errors[0] };
    size_t ends[KINDS] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        outcome_t before[CLIENTS];
        CHECK_EQUAL(simulate(serve_and_count, seed, 50), 0);
        memcpy(before, outcomes, sizeof before);
        CHECK_EQUAL(simulate(serve_and_count, seed, 50), 0);
        for (int i = 0; i < CLIENTS; i++) {
            CHECK_EQUAL(outcomes[i].code, before[i].code);
            CHECK_EQUAL(outcomes[i].when, before[i].when);
            CHECK_EQUAL(outcomes[i].bytes, before[i].bytes);
            CHECK((outcomes[i].code == 0) == (outcomes[i].bytes == SENT));
            size_t kind = 0;
            while (kind < KINDS && outcomes[i].code != -errors[kind])
                kind++;
            CHECK(kind < KINDS);
            ends[kind]++;
        }
    }
    for (size_t kind = 0; kind < KINDS; kind++)
        CHECK(errors[kind] == EPIPE || ends[kind] != 0);
}

/* ---- A file that is replaced ---- */

static const char *const versions[] = {"", "the first", "the second version", "and a third"};

static int save_as(const char *path, const char *text) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return file;
    int code = haft_io_write_all(file, text, strlen(text));
    return code == 0 ? haft_io_fsync(file) : code;
}
static int save(const char *text) {
    int code = save_as("text.new", text);
    if (code == 0)
        code = haft_io_rename("text.new", "text");
    return code;
}

static int load(char *text, size_t size) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open("text", O_RDONLY, 0);
    if (file < 0)
        return file;
    size_t length = 0;
    for (ssize_t got; (got = haft_io_read(file, text + length, size - 1 - length)) != 0;
         length += (size_t)got)
        if (got < 0)
            return (int)got;
    text[length] = '\0';
    return 0;
}

static bool faults_in_saving;
BODY(replace_a_file) {
    const char *saved = versions[0];
    for (int i = 1; i < 4; i++) {
        int code = save(versions[i]);
        CHECK(code == 0 || code == -EIO || code == -ENOSPC || code == -EMFILE);
        faults_in_saving |= code != 0;
        if (code == 0)
            saved = versions[i];
        char text[100] = "";
        do
            code = load(text, sizeof text);
        while (code == -EIO || code == -EMFILE);
        CHECK(code == 0 || (code == -ENOENT && saved == versions[0]));
        CHECK_SAME_TEXT(text, saved);
    }
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void a_file_that_is_renamed_when_it_is_whole_is_never_half(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        CHECK_EQUAL(simulate(replace_a_file, seed, 8), 0);
    CHECK(faults_in_saving);
    faults_in_saving = false;
    CHECK_EQUAL(simulate(replace_a_file, 1, 0), 0);
    CHECK(!faults_in_saving);
}

/* ---- One that is asked for ---- */

BODY(fail_once) {
    char byte;
    int ends[2];
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_simulated_fail(ends[0], -ETIMEDOUT);
    CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLOUT), POLLOUT);
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), -ETIMEDOUT);
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), 1);
    CHECK_EQUAL(haft_io_read(ends[1], &byte, 1), 1);

    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open("text", O_RDWR | O_CREAT, 0600);
    haft_io_simulated_fail(file, -ENOSPC);
    CHECK_EQUAL(haft_io_pwrite(file, "x", 1, 0), -ENOSPC);
    CHECK_EQUAL(haft_io_pwrite(file, "x", 1, 0), 1);
    haft_io_simulated_fail(file, -EIO);
    CHECK_EQUAL(haft_io_fsync(file), -EIO);
    CHECK_EQUAL(haft_io_fsync(file), 0);

    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_unix("/run/service", 0);
    HAFT_IO_SCOPED_DESCRIPTOR int client = haft_io_connect_unix("/run/service");
    CHECK(client >= 0);
    haft_io_simulated_fail(listener, -EMFILE);
    int64_t before = haft_io_now();
    HAFT_IO_SCOPED_DESCRIPTOR int accepted = haft_io_accept(listener);
    CHECK(accepted >= 0 && haft_io_now() > before);
    return NULL;
}
static void one_operation_fails_as_asked(void) {
    CHECK_EQUAL(simulate(fail_once, 1, 0), 0);
}

BODY(fail_what_is_not_open) {
    haft_io_simulated_fail(0, -EIO);
    return NULL;
}
BODY(fail_with_a_success) {
    int ends[2];
    haft_io_simulated_pair(ends);
    haft_io_simulated_fail(ends[0], EIO);
    return NULL;
}
static void simulate_a_fault_of_what_is_not_open(void) {
    simulate(fail_what_is_not_open, 4711, 0);
}
static void simulate_a_fault_that_is_none(void) {
    simulate(fail_with_a_success, 4711, 0);
}
static void a_fault_needs_a_descriptor_and_an_error(void) {
    if (!check_follows_children())
        return;
    CHECK_ABORTS(simulate_a_fault_of_what_is_not_open,
                 "haft_io_simulated_fail was given no open descriptor of the simulation.");
    CHECK_ABORTS(simulate_a_fault_that_is_none,
                 "haft_io_simulated_fail takes a negative error number; it was given 5.");
}

int main(void) {
    RUN(each_client_has_all_bytes_or_an_error_and_the_seed_says_which);
    RUN(a_file_that_is_renamed_when_it_is_whole_is_never_half);
    RUN(one_operation_fails_as_asked);
    RUN(a_fault_needs_a_descriptor_and_an_error);
    return check_end();
}

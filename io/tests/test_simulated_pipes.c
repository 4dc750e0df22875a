/* SPDX-License-Identifier: MIT */
/* Pipes and pairs of sockets that exist in a simulation only. */
#include "check_io.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

static const haft_io_simulation_options_t with_network = {.network = true};

/* In simulations, and where the system has to agree. */
static void check_both(void *(*body)(void *)) {
    check_seeds(body, 20, with_network);
    CHECK_RUNS(body);
}

static short events_of(int descriptor, short events) {
    struct pollfd entry = {descriptor, events, 0};
    int ready = haft_io_poll(&entry, 1, 0);
    CHECK_EQUAL(ready, entry.revents != 0);
    return entry.revents;
}

static int made[2];
static void make_pipe(void) {
    CHECK_EQUAL(haft_io_pipe(made), 0);
    CHECK_EQUAL(made[0] >= 1 << 28, haft_io_seed() != 0); /* as it should be */
}
static void close_both(void) {
    haft_io_close(made[0]);
    haft_io_close(made[1]);
}

/* ---- One direction ---- */

BODY(use_a_pipe) {
    char bytes[8];
    make_pipe();
    CHECK_EQUAL(haft_io_write(made[0], "x", 1), -EBADF);
    CHECK_EQUAL(haft_io_read(made[1], bytes, 1), -EBADF);
    CHECK_EQUAL(haft_io_receive(made[0], bytes, 1, 0), -ENOTSOCK);
    CHECK_EQUAL(haft_io_send(made[1], "x", 1, 0), -ENOTSOCK);
    CHECK_EQUAL(haft_io_accept(made[0]), -ENOTSOCK);
    CHECK_EQUAL(haft_io_port(made[0]), -ENOTSOCK);
    CHECK_EQUAL(haft_io_shutdown(made[1], SHUT_WR), -ENOTSOCK);
    CHECK_EQUAL(haft_io_pread(made[0], bytes, 1, 0), -ESPIPE);
    CHECK_EQUAL(haft_io_write(made[1], "abc", 3), 3);
    CHECK_EQUAL(haft_io_write(made[1], "", 0), 0);
    CHECK_EQUAL(haft_io_close(made[1]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(haft_io_read(made[0], &bytes[i], 1), 1);
    CHECK(memcmp(bytes, "abc", 3) == 0);
    CHECK_EQUAL(haft_io_read(made[0], bytes, 1), 0);
    CHECK_EQUAL(haft_io_read(made[0], bytes, 1), 0);
    CHECK_EQUAL(haft_io_close(made[0]), 0);

    make_pipe();
    CHECK_EQUAL(haft_io_close(made[0]), 0);
    CHECK_EQUAL(haft_io_write(made[1], "x", 1), -EPIPE);
    CHECK_EQUAL(haft_io_close(made[1]), 0);
    CHECK_EQUAL(haft_io_close(made[1]), -EBADF);
    return NULL;
}
static void a_pipe_has_one_direction(void) {
    check_both(use_a_pipe);
}

enum { SIZE = 65536 };
static char large[SIZE];

BODY(poll_a_pipe) {
    const short both = POLLIN | POLLOUT;
    make_pipe();
    CHECK_EQUAL(events_of(made[0], both), 0);
    CHECK_EQUAL(events_of(made[1], both), POLLOUT);
    CHECK_EQUAL(haft_io_write_all(made[1], large, SIZE), 0);
    CHECK_EQUAL(events_of(made[0], both), POLLIN);
    CHECK_EQUAL(events_of(made[1], both), 0);
    for (size_t got = 0; got < PIPE_BUF;)
        got += (size_t)haft_io_read(made[0], large, PIPE_BUF - got);
    CHECK_EQUAL(events_of(made[1], both), POLLOUT);
    CHECK_EQUAL(haft_io_close(made[1]), 0);
    CHECK_EQUAL(events_of(made[0], both), POLLIN | POLLHUP);
    while (haft_io_read(made[0], large, SIZE) != 0)
        continue;
    CHECK_EQUAL(events_of(made[0], both), POLLHUP);
    CHECK_EQUAL(haft_io_wait_ready(made[0], POLLIN), POLLHUP);
    haft_io_close(made[0]);

    make_pipe();
    haft_io_close(made[0]);
    CHECK_EQUAL(events_of(made[1], both), POLLOUT | POLLERR);
    haft_io_close(made[1]);
    return NULL;
}
static void a_poll_of_a_pipe_is_as_the_system_has_it(void) {
    check_both(poll_a_pipe);
}

/* ---- Waiting ---- */

static size_t written;
BODY(write_more) {
    CHECK_EQUAL(haft_io_write_all(made[1], large, SIZE), 0);
    written = SIZE;
    for (int i = 0; i < 4; i++) { /* each of which comes whole */
        char record[1000];
        memset(record, 'a' + i, sizeof record);
        CHECK_EQUAL(haft_io_write(made[1], record, sizeof record), sizeof record);
        written += sizeof record;
    }
    CHECK_EQUAL(haft_io_close(made[1]), 0);
    return NULL;
}
BODY(fill_a_pipe) {
    make_pipe();
    written = 0;
    haft_io_task_t *writer = haft_io_async(write_more, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(written, SIZE);
    size_t got = 0;
    static char all[SIZE + 4000];
    for (ssize_t more; (more = haft_io_read(made[0], all + got, sizeof all - got)) > 0;)
        got += (size_t)more;
    CHECK_EQUAL(got, sizeof all);
    for (size_t i = SIZE; i < sizeof all; i++)
        CHECK_EQUAL(all[i], (int)('a' + (i - SIZE) / 1000));
    CHECK_EQUAL(haft_io_join(writer, NULL), 0);
    CHECK_EQUAL(haft_io_close(made[0]), 0);
    return NULL;
}
static void who_writes_to_a_full_pipe_waits(void) {
    check_both(fill_a_pipe);
}

static intptr_t codes[2];
BODY(read_on) {
    char byte;
    codes[0] = haft_io_read(made[0], &byte, 1);
    return NULL;
}
BODY(write_on) {
    codes[1] = haft_io_write(made[1], large, 1);
    return NULL;
}
BODY(end_waits) {
    make_pipe();
    haft_io_scope_options_t soon = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&soon, read_on, NULL, NULL), -ETIMEDOUT);
    haft_io_task_t *reader = haft_io_async(read_on, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_close(made[1]), 0);
    haft_io_join(reader, NULL);
    CHECK_EQUAL(codes[0], 0);
    haft_io_close(made[0]);

    make_pipe();
    reader = haft_io_async(read_on, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_close(made[0]), 0);
    haft_io_join(reader, NULL);
    CHECK_EQUAL(codes[0], -EBADF);
    haft_io_close(made[1]);

    make_pipe();
    CHECK_EQUAL(haft_io_write_all(made[1], large, SIZE), 0);
    soon.deadline = haft_io_now() + HAFT_IO_MILLISECOND;
    CHECK_EQUAL(haft_io_scope_with(&soon, write_on, NULL, NULL), -ETIMEDOUT);
    haft_io_task_t *writer = haft_io_async(write_on, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_write(made[1], "x", 1), -EBUSY);
    CHECK_EQUAL(haft_io_close(made[0]), 0);
    haft_io_join(writer, NULL);
    CHECK_EQUAL(codes[1], -EPIPE);
    haft_io_close(made[1]);
    return NULL;
}
static void a_close_and_a_cancel_end_a_wait_at_a_pipe(void) {
    check_both(end_waits);
}

/* ---- Pairs ---- */

BODY(use_a_pair) {
    char bytes[5];
    CHECK_EQUAL(haft_io_socket_pair(AF_INET, SOCK_STREAM, 0, made), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, made), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(haft_io_write_all(made[i], "hello", 5), 0);
        CHECK_EQUAL(haft_io_receive(made[1 - i], bytes, 5, MSG_WAITALL), 5);
        CHECK(memcmp(bytes, "hello", 5) == 0);
    }
    CHECK_EQUAL(haft_io_port(made[0]), -EAFNOSUPPORT);
    CHECK_EQUAL(haft_io_shutdown(made[0], SHUT_WR), 0);
    CHECK_EQUAL(haft_io_read(made[1], bytes, 1), 0);
    CHECK_EQUAL(haft_io_write(made[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_read(made[0], bytes, 1), 1);
    haft_io_close(made[0]);
    CHECK_EQUAL(haft_io_write(made[1], "x", 1), -EPIPE);
    haft_io_close(made[1]);
    return NULL;
}
static void a_pair_has_two_directions(void) {
    check_both(use_a_pair);
}

/* ---- The seed ---- */

enum { SENT = 20000 };
/* The bytes that were read, in order. */
static int trace[4 * SENT];
static size_t traced;

static void *copy(void *argument) {
    const int *ends = argument;
    char bytes[300];
    for (ssize_t got; (got = haft_io_read(ends[0], bytes, sizeof bytes)) > 0;) {
        trace[traced++] = (int)got;
        if (haft_io_write_all(ends[1], bytes, (size_t)got) != 0)
            break;
    }
    haft_io_close(ends[1]);
    return NULL;
}
static void *fill(void *end) {
    for (int sent = 0; sent < SENT; sent += 500)
        if (haft_io_write_all(*(int *)end, large, 500) != 0)
            break;
    haft_io_close(*(int *)end);
    return NULL;
}
static size_t arrived;
BODY(run_a_pipeline) {
    int first[2], second[2], third[2];
    traced = arrived = 0;
    if (haft_io_pipe(first) != 0 || haft_io_pipe(third) != 0 ||
        haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, second) != 0)
        return NULL;
    int one[2] = {first[0], second[0]}, other[2] = {second[1], third[1]};
    haft_io_task_t *tasks[] = {haft_io_async(fill, &first[1]), haft_io_async(copy, one),
                               haft_io_async(copy, other)};
    char bytes[700];
    for (ssize_t got; (got = haft_io_read(third[0], bytes, sizeof bytes)) > 0;)
        arrived += (size_t)got;
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
    haft_io_close(first[0]);
    haft_io_close(second[1]);
    haft_io_close(third[0]);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void a_pipeline_is_the_same_for_the_same_seed(void) {
    static int before[sizeof trace / sizeof trace[0]];
    bool differs = false, faults = false;
    for (uint64_t seed = 1; seed <= (uint64_t)check_times(100); seed++) {
        haft_io_simulation_options_t how = {.network = true,
                                            .faults_one_in = seed % 3 == 0 ? 200 : 0};
        CHECK_EQUAL(check_simulate(run_a_pipeline, seed, how), 0);
        size_t length = traced;
        differs |= memcmp(before, trace, sizeof trace) != 0;
        memcpy(before, trace, sizeof trace);
        CHECK_EQUAL(check_simulate(run_a_pipeline, seed, how), 0);
        CHECK(traced == length && memcmp(before, trace, length * sizeof trace[0]) == 0);
        CHECK(arrived == SENT || how.faults_one_in != 0);
        faults |= arrived != SENT;
    }
    CHECK(differs && faults);
}

BODY(fail_at_once) {
    CHECK_EQUAL(haft_io_pipe(made), -EMFILE);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, made), -EMFILE);
    return NULL;
}
BODY(fail_when_asked) {
    char byte;
    make_pipe();
    haft_io_simulated_fail(made[0], -EIO);
    CHECK_EQUAL(haft_io_write(made[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_read(made[0], &byte, 1), -EIO);
    CHECK_EQUAL(haft_io_read(made[0], &byte, 1), 1);
    close_both();
    return NULL;
}
static void there_may_be_no_descriptor_for_a_pipe(void) {
    check_seeds(fail_at_once, 5,
                (haft_io_simulation_options_t){.network = true, .faults_one_in = 1});
    check_seeds(fail_when_asked, 5, with_network);
}

/* ---- Child processes ---- */

static void *feed_and_reap(void *argument) {
    const int *in = argument, *out = in + 2;
    const char *const command[] = {"cat", NULL};
    CHECK_EQUAL(haft_io_write_all(in[1], "first, ", 7), 0); /* which the pipe takes with it */
    pid_t cat = haft_io_process_start(command, (int[]){in[0], out[1], -1});
    CHECK(cat > 0);
    CHECK_EQUAL(haft_io_close(in[0]), 0);
    CHECK_EQUAL(haft_io_close(out[1]), 0);
    CHECK_EQUAL(haft_io_write_all(in[1], "then", 4), 0);
    CHECK_EQUAL(haft_io_close(in[1]), 0);
    char text[20] = "";
    struct pollfd entry = {out[0], POLLIN, 0};
    CHECK_EQUAL(haft_io_poll(&entry, 1, HAFT_IO_FOREVER), 1);
    CHECK((entry.revents & POLLIN) != 0);
    size_t size = 0;
    for (ssize_t got; (got = haft_io_read(out[0], text + size, sizeof text - 1 - size)) > 0;)
        size += (size_t)got;
    CHECK_SAME_TEXT(text, "first, then");
    CHECK_EQUAL(haft_io_close(out[0]), 0);
    int status = -1;
    CHECK_EQUAL(haft_io_process_wait(cat, &status), 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return NULL;
}
BODY(run_cat) {
    int pipes[4];
    CHECK_EQUAL(haft_io_pipe(pipes), 0);
    CHECK_EQUAL(haft_io_pipe(pipes + 2), 0);
    feed_and_reap(pipes);
    /* A socket is both. */
    int pair[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const char *const command[] = {"cat", NULL};
    pid_t cat = haft_io_process_start(command, (int[]){pair[0], pair[0], -1});
    CHECK(cat > 0);
    CHECK_EQUAL(haft_io_close(pair[0]), 0);
    CHECK_EQUAL(haft_io_write_all(pair[1], "hello", 5), 0);
    CHECK_EQUAL(haft_io_shutdown(pair[1], SHUT_WR), 0);
    char text[6] = "";
    CHECK_EQUAL(haft_io_receive(pair[1], text, 5, MSG_WAITALL), 5);
    CHECK_SAME_TEXT(text, "hello");
    CHECK_EQUAL(haft_io_wait_ready(pair[1], POLLIN) & POLLIN, POLLIN);
    CHECK_EQUAL(haft_io_read(pair[1], text, 1), 0);
    CHECK_EQUAL(haft_io_close(pair[1]), 0);
    CHECK_EQUAL(haft_io_process_wait(cat, NULL), 0);
    return NULL;
}

static void *read_what_comes(void *end) {
    char text[6] = "";
    size_t size = 0;
    for (ssize_t got; (got = haft_io_read(*(int *)end, text + size, 5 - size)) > 0;)
        size += (size_t)got;
    CHECK_SAME_TEXT(text, "hello");
    return NULL;
}
/* A task that waits already goes on with what the child writes. */
BODY(start_while_a_task_waits) {
    make_pipe();
    haft_io_task_t *reader = haft_io_async(read_what_comes, &made[0]);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    const char *const command[] = {"printf", "hello", NULL};
    pid_t child = haft_io_process_start(command, (int[]){-1, made[1], -1});
    CHECK(child > 0);
    CHECK_EQUAL(haft_io_close(made[1]), 0);
    CHECK_EQUAL(haft_io_join(reader, NULL), 0);
    CHECK_EQUAL(haft_io_process_wait(child, NULL), 0);
    haft_io_close(made[0]);
    return NULL;
}

BODY(start_with_what_cannot_be_real) {
    const char *const command[] = {"true", NULL};
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open("log", O_RDWR | O_CREAT, 0600);
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("::", 0, 0);
    CHECK_EQUAL(haft_io_process_start(command, (int[]){file, -1, -1}), -EOPNOTSUPP);
    CHECK_EQUAL(haft_io_process_start(command, (int[]){-1, listener, -1}), -EOPNOTSUPP);
    make_pipe();
    close_both();
    CHECK_EQUAL(haft_io_process_start(command, (int[]){made[0], -1, -1}), -EBADF);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, made), 0);
    haft_io_simulated_break(made[0]);
    CHECK_EQUAL(haft_io_process_start(command, (int[]){made[0], -1, -1}), -ECONNRESET);
    close_both();
    return NULL;
}
BODY(leave_a_real_end) {
    const char *const command[] = {"true", NULL};
    make_pipe();
    pid_t child = haft_io_process_start(command, (int[]){made[0], -1, -1});
    CHECK_EQUAL(haft_io_process_wait(child, NULL), 0);
    return NULL;
}
static void a_child_process_gets_pipes_of_the_system(void) {
    int descriptors = check_descriptors();
    check_seeds(run_cat, 3, with_network);
    CHECK_RUNS(run_cat);
    check_seeds(start_while_a_task_waits, 3, with_network);
    check_seeds(start_with_what_cannot_be_real, 1,
                (haft_io_simulation_options_t){.network = true, .files = true});
    check_seeds(leave_a_real_end, 1, with_network);
    CHECK_EQUAL(check_descriptors(), descriptors);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    RUN(a_pipe_has_one_direction);
    RUN(a_poll_of_a_pipe_is_as_the_system_has_it);
    RUN(who_writes_to_a_full_pipe_waits);
    RUN(a_close_and_a_cancel_end_a_wait_at_a_pipe);
    RUN(a_pair_has_two_directions);
    RUN(a_pipeline_is_the_same_for_the_same_seed);
    RUN(there_may_be_no_descriptor_for_a_pipe);
    RUN(a_child_process_gets_pipes_of_the_system);
    return check_end();
}

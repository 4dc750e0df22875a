/* SPDX-License-Identifier: MIT */
/* Closed descriptors of a simulation take no memory any more, however many there were; and their
   numbers are not soon used again. */
#include "check_io.h"

#include <malloc.h>

/* (Not under a sanitizer, which has an allocator of its own: 0.) */
static size_t bytes_in_use(void) {
#if __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

enum { TURNS = 12000, MOST_GROWTH = 100000 };

static void use_connection(int listener) {
    int client = haft_io_connect_tcp("host", 80), server = haft_io_accept(listener);
    char byte;
    CHECK(client >= 0 && server >= 0);
    CHECK_EQUAL(haft_io_write(client, "x", 1), 1);
    CHECK_EQUAL(haft_io_read(server, &byte, 1), 1);
    CHECK_EQUAL(haft_io_close(server) + haft_io_close(client), 0);
}
static void use_pair(int type) {
    int ends[2];
    char byte;
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, type, 0, ends), 0);
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), 1);
    CHECK_EQUAL(haft_io_read(ends[1], &byte, 1), 1);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    if (type == SOCK_DGRAM)
        CHECK_EQUAL(haft_io_write(ends[1], "x", 1), -ECONNREFUSED);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
}
static void use_others(void) {
    int ends[2];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    CHECK_EQUAL(haft_io_close(ends[0]) + haft_io_close(ends[1]), 0);
    int file = haft_io_open("file", O_RDWR | O_CREAT, 0600);
    CHECK_EQUAL(haft_io_close(file), 0);
    CHECK_EQUAL(haft_io_remove("file"), 0);
    int listener = haft_io_listen_tcp("host", 81, 0), waiting[2];
    waiting[0] = haft_io_connect_tcp("host", 81); /* nobody accepts it */
    waiting[1] = haft_io_socket(AF_INET6, SOCK_DGRAM, 0);
    CHECK_EQUAL(haft_io_close(listener), 0);
    CHECK_EQUAL(haft_io_close(waiting[0]) + haft_io_close(waiting[1]), 0);
}

BODY(open_and_close) {
    int listener = haft_io_listen_tcp("host", 80, 0);
    size_t before = 0;
    for (int i = 0; i < 2 * TURNS; i++) {
        if (i == TURNS)
            before = bytes_in_use();
        use_connection(listener);
        if (i % 16 == 0) {
            use_pair(SOCK_STREAM);
            use_pair(SOCK_DGRAM);
            use_others();
        }
    }
    CHECK(bytes_in_use() < before + MOST_GROWTH);
    CHECK_EQUAL(haft_io_simulated_count(), 1);
    CHECK_EQUAL(haft_io_close(listener), 0);
    return NULL;
}
static void what_was_closed_takes_no_memory(void) {
    haft_io_simulation_options_t how = {.seed = 1, .network = true, .files = true};
    CHECK_EQUAL(check_io_simulate_with(&how, open_and_close, NULL), 0);
}

BODY(use_a_closed_number) {
    int closed[2], ends[2];
    char byte;
    CHECK_EQUAL(haft_io_simulated_pair(closed), 0);
    CHECK_EQUAL(haft_io_close(closed[0]) + haft_io_close(closed[1]), 0);
    for (int i = 0; i < 8000; i++) {
        CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
        CHECK(haft_io_read(closed[0], &byte, 1) == -EBADF && haft_io_close(closed[0]) == -EBADF);
        CHECK_EQUAL(haft_io_close(ends[0]) + haft_io_close(ends[1]), 0);
    }
    return NULL;
}
static void a_closed_number_is_not_soon_anothers(void) {
    CHECK_EQUAL(haft_io_simulate(use_a_closed_number, NULL), 0);
}

/* Tasks that wait where others close. */
static int shared_listener, shared_ends[2];
BODY(connect_there) {
    int client = haft_io_connect_tcp("host", 80);
    CHECK(client >= 0 || client == -ECONNREFUSED || client == -ECONNRESET);
    if (client >= 0)
        haft_io_close(client);
    return NULL;
}
BODY(read_there) {
    char byte;
    ssize_t got = haft_io_read(shared_ends[0], &byte, 1);
    CHECK(got == -EBADF || got == 0);
    return NULL;
}
BODY(accept_there) {
    int got = haft_io_accept(shared_listener);
    CHECK(got >= 0 || got == -EBADF || got == -EINVAL);
    if (got >= 0)
        haft_io_close(got);
    return NULL;
}
BODY(close_under_waits) {
    haft_io_task_t *tasks[6];
    shared_listener = haft_io_listen_tcp("host", 80, 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, shared_ends), 0);
    for (int i = 0; i < 4; i++)
        tasks[i] = haft_io_async(connect_there, NULL);
    tasks[4] = haft_io_async(read_there, NULL);
    tasks[5] = haft_io_async(accept_there, NULL);
    haft_io_yield();
    haft_io_close(shared_ends[1]);
    haft_io_close(shared_ends[0]);
    haft_io_close(shared_listener);
    for (int i = 0; i < 6; i++)
        haft_io_join(tasks[i], NULL);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
static void what_tasks_wait_on_may_be_closed(void) {
    check_seeds(close_under_waits, 200, (haft_io_simulation_options_t){.network = true});
    check_seeds(close_under_waits, 200,
                (haft_io_simulation_options_t){.network = true, .switches_one_in = 2});
}

int main(void) {
    RUN(what_was_closed_takes_no_memory);
    RUN(a_closed_number_is_not_soon_anothers);
    RUN(what_tasks_wait_on_may_be_closed);
    return check_end();
}

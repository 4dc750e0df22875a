/* SPDX-License-Identifier: MIT */
/* A call on a task holds no thread and changes the mode of no descriptor, whatever else uses it. */
#include "../../tests/check_io.h"
#include "../../tests/terminals.h"

#include <haft/posix.h>

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

/* ---- A thread that looks at the mode of a descriptor, all the time ---- */

static atomic_int looked_at, looks, seen_not_to_block;
static void *look_at_the_mode(void *argument) {
    while (looked_at >= 0) {
        int flags = fcntl(looked_at, F_GETFL);
        seen_not_to_block += flags >= 0 && (flags & O_NONBLOCK) != 0;
        looks++;
    }
    return argument;
}
static pthread_t begin_to_look(int descriptor) {
    pthread_t thread;
    looked_at = descriptor;
    looks = seen_not_to_block = 0;
    pthread_create(&thread, NULL, look_at_the_mode, NULL);
    while (looks == 0)
        continue;
    return thread;
}
static void end_looking(pthread_t thread) {
    looked_at = -1;
    pthread_join(thread, NULL);
    CHECK_EQUAL(seen_not_to_block, 0);
}

/* ---- From descriptor to descriptor ---- */

enum { MOVED = 1 << 20 };
static int file, pair[2], ends[2];
static char moved_at(size_t place) {
    return (char)('a' + place % 23);
}
BODY(read_what_is_moved) {
    char bytes[5000];
    for (size_t done = 0; done < MOVED;) {
        ssize_t count = read(pair[1], bytes, sizeof bytes);
        CHECK(count > 0);
        for (ssize_t i = 0; i < count; i++, done++)
            if (bytes[i] != moved_at(done)) {
                CHECK(!"the bytes come in order");
                return NULL;
            }
        haft_io_yield();
    }
    return NULL;
}
BODY(splice_to_the_socket) {
    for (size_t done = 0; done < MOVED;) {
        ssize_t moved = splice(ends[0], NULL, pair[0], NULL, MOVED, 0);
        CHECK(moved > 0);
        done += (size_t)moved;
    }
    return NULL;
}
BODY(send_the_file) {
    off_t offset = 0;
    haft_io_spawn(read_what_is_moved, NULL);
    CHECK_EQUAL(sendfile(pair[0], file, &offset, MOVED), MOVED);
    CHECK_EQUAL(offset, MOVED);
    return NULL;
}
BODY(splice_the_file) {
    haft_io_spawn(read_what_is_moved, NULL);
    haft_io_spawn(splice_to_the_socket, NULL);
    for (off64_t from = 0; from < MOVED;)
        CHECK(splice(file, &from, ends[1], NULL, MOVED - (size_t)from, 0) > 0);
    return NULL;
}
BODY(move_the_file) {
    haft_io_scope(send_the_file, NULL, NULL);
    haft_io_scope(splice_the_file, NULL, NULL);
    return NULL;
}
static void what_is_moved_from_and_to_stays_as_it_is(const haft_io_run_options_t *options) {
    static char bytes[MOVED];
    for (size_t i = 0; i < MOVED; i++)
        bytes[i] = moved_at(i);
    file = check_file_with("");
    CHECK_EQUAL(write(file, bytes, MOVED), MOVED);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQUAL(pipe(ends), 0);
    pthread_t thread = begin_to_look(pair[0]);
    CHECK_EQUAL(haft_io_run_with(options, move_the_file, NULL), 0);
    end_looking(thread);
    close(file);
    for (int i = 0; i < 2; i++)
        close(pair[i]), close(ends[i]);
}

/* ---- Connections ---- */

static int listener;
static struct sockaddr_in address = {.sin_family = AF_INET};
static void listen_here(void) {
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = 0;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(listen(listener, 100), 0);
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
}
BODY(connect_often) {
    int rounds = check_times(100);
    for (int i = 0; i < rounds; i++) {
        CHECK_EQUAL(connect(looked_at, (struct sockaddr *)&address, sizeof address), 0);
        connect(looked_at, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr));
    }
    return NULL;
}
static void a_socket_that_connects_stays_as_it_is(const haft_io_run_options_t *options) {
    listen_here();
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread = begin_to_look(connection);
    CHECK_EQUAL(haft_io_run_with(options, connect_often, NULL), 0);
    end_looking(thread);
    close(connection);
    close(listener);
}

/* Tasks and a thread that has none take connections from one listener; then the tasks are
   cancelled. */
enum { ACCEPTORS = 4, CONNECTIONS = 4, CONNECTED_BY_ONE = 10 };
static atomic_int accepted, thread_ends;
static void *accept_on_a_thread(void *argument) {
    while (!thread_ends) {
        close(accept(listener, NULL, NULL));
        accepted++;
    }
    return argument;
}
BODY(accept_all) {
    for (int connection; (connection = accept(listener, NULL, NULL)) >= 0; accepted++)
        close(connection);
    CHECK_EQUAL(errno, ECANCELED);
    return NULL;
}
BODY(accept_and_connect) {
    for (int i = 0; i < ACCEPTORS; i++)
        haft_io_spawn_with(&(haft_io_task_options_t){.spread = true}, accept_all, NULL);
    for (int i = 0; i < CONNECTED_BY_ONE; i++) {
        int before = accepted, connections[CONNECTIONS];
        for (int k = 0; k < CONNECTIONS; k++) {
            connections[k] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            CHECK_EQUAL(connect(connections[k], (struct sockaddr *)&address, sizeof address), 0);
        }
        while (accepted < before + CONNECTIONS)
            haft_io_yield();
        for (int k = 0; k < CONNECTIONS; k++)
            close(connections[k]);
    }
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(accept_in_rounds) {
    int rounds = check_times(10);
    for (int i = 0; i < rounds; i++)
        haft_io_scope(accept_and_connect, NULL, NULL);
    return NULL;
}
static void tasks_and_threads_accept_from_one_listener(const haft_io_run_options_t *options) {
    pthread_t thread;
    listen_here();
    accepted = 0;
    thread_ends = 0;
    pthread_create(&thread, NULL, accept_on_a_thread, NULL);
    CHECK_EQUAL(haft_io_run_with(options, accept_in_rounds, NULL), 0);
    thread_ends = 1;
    int last = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(connect(last, (struct sockaddr *)&address, sizeof address), 0);
    pthread_join(thread, NULL);
    close(last);
    close(listener);
}

/* ---- Terminals ---- */

enum { WRITTEN = 200000 };
static int terminal[2]; /* the program's side; that of the child, which does not read */
static char letters[WRITTEN];
static void open_terminal(void) {
    CHECK(check_open_terminal(terminal, 0));
    check_make_raw(terminal[1]);
}
BODY(write_letters) {
    CHECK_EQUAL(write(terminal[0], letters, WRITTEN), WRITTEN);
    return NULL;
}
BODY(write_and_read) {
    haft_io_spawn(write_letters, NULL);
    haft_io_yield();
    char bytes[1000];
    for (size_t done = 0; done < WRITTEN;) {
        ssize_t count = read(terminal[1], bytes, sizeof bytes);
        CHECK(count > 0);
        CHECK(memcmp(bytes, letters + done, (size_t)count) == 0);
        done += (size_t)count;
    }
    return NULL;
}
static void a_terminal_that_is_full_holds_its_task_alone(const haft_io_run_options_t *options) {
    for (size_t i = 0; i < WRITTEN; i++)
        letters[i] = moved_at(i);
    open_terminal();
    CHECK_EQUAL(haft_io_run_with(options, write_and_read, NULL), 0);
    close(terminal[0]);
    close(terminal[1]);
}

static void (*everywhere)(const haft_io_run_options_t *options);
static void run_everywhere(void) {
    check_everywhere(everywhere);
}

int main(void) {
    alarm(60 * check_times(1)); /* what stands still is to be seen as such */
#define RUN_EVERYWHERE(test) (everywhere = (test), check_run(#test, run_everywhere))
    RUN_EVERYWHERE(what_is_moved_from_and_to_stays_as_it_is);
    RUN_EVERYWHERE(a_socket_that_connects_stays_as_it_is);
    RUN_EVERYWHERE(tasks_and_threads_accept_from_one_listener);
    if (check_has_terminals())
        RUN_EVERYWHERE(a_terminal_that_is_full_holds_its_task_alone);
    return check_end();
}

/* SPDX-License-Identifier: MIT */
/*
 * Closing a descriptor beside operations on it: one that begins while another thread is in the
 * system's close, one that was woken and has not run yet. The linker puts functions of this file in
 * the way, which take their time.
 */
#define _GNU_SOURCE
#include "check_io.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int slow = -1; /* the descriptor whose close waits for `begins` */
static atomic_bool is_closing, begins;

int __real_close(int descriptor);
int __wrap_close(int descriptor);
int __wrap_close(int descriptor) {
    enum { MICROSECONDS = 20000 };
    if (descriptor == atomic_load(&slow)) {
        atomic_store(&slow, -1);
        atomic_store(&is_closing, true);
        while (!atomic_load(&begins))
            continue;
        usleep(MICROSECONDS); /* The reader may have begun to wait by then. */
        /* Not by the function: the thread sanitizer would take for a mistake what is tested
           here. */
        return (int)syscall(SYS_close, descriptor);
    }
    return __real_close(descriptor);
}

static int ends[2];
static atomic_bool has_begun;
static void *read_while_it_is_closed(void *unused) {
    char byte;
    atomic_store(&has_begun, true);
    while (!atomic_load(&is_closing))
        haft_io_yield();
    atomic_store(&begins, true);
    CHECK_EQUAL(haft_io_read(ends[0], &byte, 1), -EBADF);
    return unused;
}
BODY(close_slowly) {
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        atomic_store(&has_begun, false);
        atomic_store(&is_closing, false);
        atomic_store(&begins, false);
        haft_io_task_t *reader = haft_io_async(read_while_it_is_closed, NULL);
        while (!atomic_load(&has_begun)) /* on the other thread: this one is busy */
            continue;
        if (i % 2 == 1) { /* a descriptor that the run has seen before */
            CHECK_EQUAL(haft_io_write_all(ends[1], "x", 1), 0);
            CHECK_EQUAL(haft_io_read(ends[0], &(char){0}, 1), 1);
        }
        atomic_store(&slow, ends[0]);
        CHECK_EQUAL(haft_io_close(ends[0]), 0);
        CHECK_EQUAL(haft_io_join(reader, NULL), 0);
        CHECK_EQUAL(haft_io_close(ends[1]), 0);
    }
    return NULL;
}
static void close_slowly_on(const haft_io_run_options_t *options) {
    if (options->threads == 2)
        CHECK_EQUAL(haft_io_run_with(options, close_slowly, NULL), 0);
}
static void who_reads_while_another_thread_closes_gets_an_error(void) {
    check_everywhere(close_slowly_on);
}

/* ---- A wait that begins while a thread closes that belongs to no run ---- */

static void make_pipe(void) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
}
static void make_listener(void) {
    ends[0] = haft_io_listen_tcp("127.0.0.1", 0, 0);
    ends[1] = dup(STDERR_FILENO);
}
static ssize_t read_first(void) {
    return haft_io_read(ends[0], &(char){0}, 1);
}
static ssize_t read_lent(void) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    return haft_io_read_lent(ends[0], &bytes);
}
static ssize_t accept_one(void) {
    return haft_io_accept(ends[0]);
}
static ssize_t wait_for_first(void) {
    return haft_io_wait_ready(ends[0], POLLIN);
}
static ssize_t poll_both(void) {
    struct pollfd entries[] = {{-1, POLLIN, 0}, {ends[0], POLLIN, 0}};
    int ready = haft_io_poll(entries, 2, HAFT_IO_FOREVER);
    return ready == 1 && entries[1].revents == POLLNVAL ? -EBADF : ready;
}
/* While others ask the kernel for something, io_uring is asked to send, too; of a descriptor whose
   kind is known. */
static void make_pair(void) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}
static int of_others[2];
static void *read_of_others(void *unused) {
    CHECK_EQUAL(haft_io_read(of_others[0], &(char){0}, 1), 0);
    return unused;
}
static ssize_t write_to_full(void) {
    static const char much[4096];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of_others), 0);
    CHECK_EQUAL(haft_io_write(ends[0], much, 1), 1);
    while (send(ends[0], much, sizeof much, MSG_DONTWAIT) > 0)
        continue;
    haft_io_spawn(read_of_others, NULL);
    haft_io_yield();
    ssize_t code = haft_io_write(ends[0], much, 1);
    close(of_others[1]);
    return code;
}
static const struct wait {
    void (*make)(void);
    ssize_t (*wait)(void);
} waits[] = {{make_pipe, read_first},     {make_pipe, read_lent},     {make_listener, accept_one},
             {make_pipe, wait_for_first}, {make_pair, write_to_full}, {make_pipe, poll_both}};

static void *close_first(void *unused) {
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    return unused;
}
static void *wait_while_it_is_closed(void *wait) {
    pthread_t closer;
    atomic_store(&is_closing, false);
    atomic_store(&begins, false);
    atomic_store(&slow, ends[0]);
    CHECK_EQUAL(pthread_create(&closer, NULL, close_first, NULL), 0);
    while (!atomic_load(&is_closing))
        haft_io_yield();
    atomic_store(&begins, true);
    CHECK_EQUAL(((const struct wait *)wait)->wait(), -EBADF);
    CHECK_EQUAL(pthread_join(closer, NULL), 0);
    return NULL;
}
/* In vain if the close is missed. */
static void *wait_for_a_while(void *wait) {
    haft_io_scope_options_t options = {.deadline = haft_io_now() + 10 * HAFT_IO_SECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, wait_while_it_is_closed, wait, NULL), 0);
    return NULL;
}
/* Each in a run that does not know the number yet. */
static void wait_in_each_way_on(const haft_io_run_options_t *options) {
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        waits[i].make();
        CHECK_EQUAL(haft_io_run_with(options, wait_for_a_while, (void *)(uintptr_t)&waits[i]), 0);
        CHECK_EQUAL(haft_io_close(ends[1]), 0);
    }
}
static void who_begins_to_wait_while_an_ordinary_thread_closes_gets_an_error(void) {
    check_everywhere(wait_in_each_way_on);
}

/* The same where no run, or no other one, was there when the thread began to close. */
static void *close_in_own_run(void *options) {
    CHECK_EQUAL(haft_io_run_with(options, close_first, NULL), 0);
    return NULL;
}
static void *wait_in_vain(void *wait) {
    CHECK_EQUAL(((const struct wait *)wait)->wait(), -EBADF);
    return NULL;
}
static void *wait_in_vain_for_a_while(void *wait) {
    haft_io_scope_options_t options = {.deadline = haft_io_now() + 10 * HAFT_IO_SECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, wait_in_vain, wait, NULL), 0);
    return NULL;
}
/* (What the run itself opens does not get so high a number.) */
static void raise_first(void) {
    enum { HIGH = 500 };
    int high = fcntl(ends[0], F_DUPFD_CLOEXEC, HIGH);
    CHECK(high >= HIGH);
    __real_close(ends[0]);
    ends[0] = high;
}
static void begin_run_beside(void *(*close_it)(void *), const haft_io_run_options_t *options) {
    haft_io_run_options_t own = {.threads = 1, .backend = options->backend};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        pthread_t closer;
        if (waits[i].wait == write_to_full) /* which writes before */
            continue;
        waits[i].make();
        raise_first();
        atomic_store(&is_closing, false);
        atomic_store(&begins, false);
        atomic_store(&slow, ends[0]);
        CHECK_EQUAL(pthread_create(&closer, NULL, close_it, &own), 0);
        while (!atomic_load(&is_closing))
            continue;
        atomic_store(&begins, true);
        CHECK_EQUAL(
            haft_io_run_with(options, wait_in_vain_for_a_while, (void *)(uintptr_t)&waits[i]), 0);
        CHECK_EQUAL(pthread_join(closer, NULL), 0);
        CHECK_EQUAL(haft_io_close(ends[1]), 0);
    }
}
static void begin_run_beside_each(const haft_io_run_options_t *options) {
    begin_run_beside(close_first, options);
    begin_run_beside(close_in_own_run, options);
}
static void a_run_that_begins_while_a_thread_closes_misses_no_close(void) {
    check_everywhere(begin_run_beside_each);
}

/* The child has not the thread that closes. Before the first run of the process. */
static void a_child_forked_while_a_thread_closes_has_runs(void) {
    pthread_t closer;
    int status = -1;
    if (!check_follows_children())
        return;
    make_pipe();
    atomic_store(&is_closing, false);
    atomic_store(&begins, false);
    atomic_store(&slow, ends[0]);
    CHECK_EQUAL(pthread_create(&closer, NULL, close_first, NULL), 0);
    while (!atomic_load(&is_closing))
        continue;
    pid_t child = fork();
    if (child == 0) {
        enum { SECONDS = 10 };
        const haft_io_run_options_t options = {.threads = 1, .backend = "epoll"};
        alarm(SECONDS);
        _exit(haft_io_run_with(&options, check_nothing, NULL) != 0);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    atomic_store(&begins, true);
    pthread_join(closer, NULL);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
}

/* A thread that is cancelled in the system's close has closed, and left no trace of that. */
static void *close_to_the_end(void *unused) {
    haft_io_close(ends[0]);
    pthread_testcancel();
    return unused;
}
static void *cancel_who_closes(void *unused) {
    pthread_t closer;
    void *how;
    atomic_store(&is_closing, false);
    atomic_store(&begins, false);
    atomic_store(&slow, ends[0]);
    CHECK_EQUAL(pthread_create(&closer, NULL, close_to_the_end, NULL), 0);
    while (!atomic_load(&is_closing))
        haft_io_yield();
    pthread_cancel(closer);
    atomic_store(&begins, true);
    CHECK_EQUAL(pthread_join(closer, &how), 0);
    CHECK(how == PTHREAD_CANCELED);
    CHECK_EQUAL(fcntl(ends[0], F_GETFD), -1);
    /* A wait on a number looks at those that are being closed. */
    CHECK_EQUAL(haft_io_read(ends[0], &(char){0}, 1), -EBADF);
    return unused;
}
static void cancel_who_closes_on(const haft_io_run_options_t *options) {
    make_pipe();
    CHECK_EQUAL(haft_io_run_with(options, cancel_who_closes, NULL), 0);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
}
static void a_thread_that_is_cancelled_while_it_closes_leaves_no_trace(void) {
    check_everywhere(cancel_who_closes_on);
}

/* ---- A number that another file gets between two system calls of an operation ---- */

static atomic_int asked = -1; /* the descriptor whose mode comes late */
static atomic_bool asks;

int __real_fcntl(int descriptor, int command, ...);
int __wrap_fcntl(int descriptor, int command, ...);
int __wrap_fcntl(int descriptor, int command, ...) {
    enum { MICROSECONDS = 20000 };
    va_list arguments;
    va_start(arguments, command);
    int result = __real_fcntl(descriptor, command, va_arg(arguments, void *));
    va_end(arguments);
    if (command == F_GETFL && descriptor == atomic_load(&asked)) {
        atomic_store(&asked, -1);
        atomic_store(&asks, true);
        usleep(MICROSECONDS); /* The number may be another file's by then. */
    }
    return result;
}

static int other; /* blocks, and has a connection */
static haft_io_event_t is_replaced;
static int replace_by_other(void *unused) {
    (void)unused;
    return (int)syscall(SYS_dup3, other, ends[0], 0);
}
static void *replace_between(void *unused) {
    while (!atomic_load(&asks))
        sched_yield();
    CHECK_EQUAL(haft_io_close_by(ends[0], replace_by_other, NULL), ends[0]);
    haft_io_event_set(&is_replaced);
    return unused;
}
static void *accept_from_the_first(void *unused) {
    pthread_t thread;
    haft_io_event_clear(&is_replaced);
    atomic_store(&asks, false);
    CHECK_EQUAL(pthread_create(&thread, NULL, replace_between, NULL), 0);
    atomic_store(&asked, ends[0]);
    CHECK_EQUAL(haft_io_accept(ends[0]), -EBADF);
    haft_io_event_wait(&is_replaced);
    pthread_join(thread, NULL);
    int connection = haft_io_accept(ends[0]);
    CHECK(connection >= 0);
    CHECK_EQUAL(haft_io_close(connection), 0);
    return unused;
}
static void replace_between_on(const haft_io_run_options_t *options) {
    make_listener();
    other = haft_io_listen_tcp("127.0.0.1", 0, 0);
    int client = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(other));
    CHECK(client >= 0);
    CHECK_EQUAL(__real_fcntl(other, F_SETFL, 0), 0);
    CHECK_EQUAL(haft_io_run_with(options, accept_from_the_first, NULL), 0);
    const int descriptors[] = {ends[0], ends[1], other, client};
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL(haft_io_close(descriptors[i]), 0);
}
static void a_number_is_one_files_while_an_operation_asks_in_steps(void) {
    check_everywhere(replace_between_on);
}

/* ---- A close that is put off ---- */

/* While a task sends a file, a close of the connection is left to that task. Operations that others
   begin before it goes on end with an error, and the connection ends. */
static int file;
static atomic_bool is_put_off;
static void await_close(void) { /* Another thread may have taken the task before. */
    while (!atomic_load(&is_put_off))
        haft_io_yield();
}
static void *send_zeros(void *unused) {
    enum { AT_ONCE = 1 << 20 };
    int64_t offset = 0;
    ssize_t sent;
    do
        sent = haft_io_send_file(ends[0], file, &offset, AT_ONCE);
    while (sent > 0);
    CHECK_EQUAL(sent, -EBADF);
    return unused;
}
static void *read_late(void *unused) {
    await_close();
    CHECK_EQUAL(read_lent(), -EBADF);
    return unused;
}
static void *write_late(void *unused) {
    await_close();
    CHECK_EQUAL(haft_io_write(ends[0], "x", 1), -EBADF);
    return unused;
}
static void make_connection(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)haft_io_port(listener))};
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(connect(ends[1], (struct sockaddr *)&address, sizeof address), 0);
    ends[0] = haft_io_accept(listener);
    CHECK(ends[0] >= 0);
    CHECK_EQUAL(haft_io_close(listener), 0);
}
static void get_to_the_end(int connection, bool is_left) {
    enum { AT_ONCE = 1 << 16 };
    static char bytes[AT_ONCE];
    ssize_t size;
    do
        size = haft_io_read(connection, bytes, AT_ONCE);
    while (size > 0);
    /* The system resets a connection that is closed with something unread; io_uring has read it. */
    CHECK(size == 0 || (is_left && size == -ECONNRESET));
}
static void *close_beside(void *unused) {
    atomic_store(&is_put_off, false);
    haft_io_spawn(send_zeros, NULL);
    haft_io_sleep(10 * HAFT_IO_MILLISECOND); /* It waits for room. */
    haft_io_spawn(read_late, NULL);
    haft_io_spawn(read_of_others, NULL);
    haft_io_spawn(write_late, NULL); /* with others */
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    atomic_store(&is_put_off, true);
    haft_io_yield();
    haft_io_close(of_others[1]);
    return unused;
}
static void close_while_a_file_is_sent(bool was_read, bool is_left) {
    enum { SIZE = 1 << 26 };
    make_connection();
    file = memfd_create("zeros", MFD_CLOEXEC);
    CHECK_EQUAL(ftruncate(file, SIZE), 0);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of_others), 0);
    if (was_read) { /* and nothing is left */
        CHECK_EQUAL(haft_io_write(ends[1], "x", 1), 1);
        CHECK_EQUAL(read_lent(), 1);
    }
    if (is_left)
        CHECK_EQUAL(haft_io_write(ends[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_scope(close_beside, NULL, NULL), 0);
    get_to_the_end(ends[1], is_left);
    haft_io_close(ends[1]);
    haft_io_close(of_others[0]);
    haft_io_close(file);
}
BODY(close_while_files_are_sent) {
    close_while_a_file_is_sent(false, false);
    close_while_a_file_is_sent(true, false);
    close_while_a_file_is_sent(false, true);
    close_while_a_file_is_sent(true, true);
    return NULL;
}
BODY(close_while_files_are_sent_for_a_while) {
    haft_io_scope_options_t options = {.deadline = haft_io_now() + 10 * HAFT_IO_SECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, close_while_files_are_sent, NULL, NULL), 0);
    return NULL;
}
static void put_off_on(const haft_io_run_options_t *options) {
    int before = check_descriptors();
    CHECK_EQUAL(haft_io_run_with(options, close_while_files_are_sent_for_a_while, NULL), 0);
    CHECK_EQUAL(check_descriptors(), before);
}
static void what_begins_while_a_close_is_put_off_ends_with_an_error(void) {
    check_everywhere(put_off_on);
}

/* ---- A number that is used again ---- */

static char got;
static void *read_one(void *descriptor) {
    ssize_t code = haft_io_read((int)(intptr_t)descriptor, &got, 1);
    CHECK_EQUAL(code, got == 'o' ? 1 : -EBADF);
    return NULL;
}
/* So that the reader has been woken by the first file, and has not run yet, at some of these. */
enum { MOST_YIELDS = 150 };
BODY(use_the_number_again) {
    for (int yields = 0; yields < MOST_YIELDS; yields++) {
        int old[2], next[2];
        CHECK_EQUAL(haft_io_pipe(old), 0);
        got = 0;
        haft_io_task_t *reader = haft_io_async(read_one, check_number(old[0]));
        haft_io_yield();
        CHECK_EQUAL(write(old[1], "o", 1), 1);
        for (int i = 0; i < yields; i++)
            haft_io_yield();
        CHECK_EQUAL(haft_io_close(old[0]), 0);
        CHECK_EQUAL(haft_io_pipe(next), 0);
        CHECK_EQUAL(next[0], old[0]);
        CHECK_EQUAL(write(next[1], "n", 1), 1);
        CHECK_EQUAL(haft_io_join(reader, NULL), 0);
        CHECK_EQUAL(haft_io_close(old[1]), 0);
        CHECK_EQUAL(haft_io_close(next[0]), 0);
        CHECK_EQUAL(haft_io_close(next[1]), 0);
    }
    return NULL;
}
static void use_the_number_again_on(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, use_the_number_again, NULL), 0);
}
static void who_was_woken_gets_nothing_of_the_next_file_of_the_number(void) {
    check_everywhere(use_the_number_again_on);
}

/* The one that asks goes on after others where its turn is over, which is at some of these. */
enum { MOST_LOOKS = 140 };
static ssize_t select_old(int descriptor) {
    haft_io_select_case_t choices[] = {{.descriptor = descriptor, .events = POLLIN}};
    int chosen = haft_io_select(choices, 1);
    return chosen < 0 ? chosen : choices[0].code == POLLNVAL ? -EBADF : choices[0].code;
}
static ssize_t poll_old(int descriptor) {
    struct pollfd entries[] = {{-1, POLLIN, 0}, {descriptor, POLLIN, 0}};
    int ready = haft_io_poll(entries, 2, HAFT_IO_FOREVER);
    return ready == 1 && entries[1].revents == POLLNVAL ? -EBADF : ready;
}
static ssize_t poll_many_old(int descriptor) {
    struct pollfd entries[20] = {{descriptor, POLLIN, 0}};
    for (int i = 1; i < 20; i++)
        entries[i].fd = -1;
    int ready = haft_io_poll(entries, 20, HAFT_IO_FOREVER);
    return ready == 1 && entries[0].revents == POLLNVAL ? -EBADF : ready;
}
static ssize_t wait_for_old(int descriptor) {
    return haft_io_wait_ready(descriptor, POLLIN);
}
static ssize_t read_old(int descriptor) {
    return haft_io_read(descriptor, &got, 1);
}
static ssize_t (*const ask_olds[])(int descriptor) = {select_old, poll_old, poll_many_old,
                                                      wait_for_old, read_old};

static int old_ends[2], next_ends[2];
BODY(replace_old) {
    CHECK_EQUAL(haft_io_close(old_ends[0]), 0);
    CHECK_EQUAL(pipe2(next_ends, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_EQUAL(next_ends[0], old_ends[0]);
    CHECK_EQUAL(write(next_ends[1], "n", 1), 1);
    return NULL;
}
BODY(ask_for_what_is_closed) {
    for (size_t i = 0; i < sizeof ask_olds / sizeof ask_olds[0]; i++)
        for (int looks = 0; looks < MOST_LOOKS; looks++) {
            CHECK_EQUAL(haft_io_pipe(old_ends), 0);
            haft_io_yield();
            haft_io_task_t *replacer = haft_io_async(replace_old, NULL);
            for (int j = 0; j < looks; j++)
                haft_io_write(old_ends[1], "", 0);
            if (next_ends[1] == 0) /* the other has not run */
                CHECK_EQUAL(ask_olds[i](old_ends[0]), -EBADF);
            CHECK_EQUAL(haft_io_join(replacer, NULL), 0);
            CHECK_EQUAL(haft_io_close(old_ends[1]), 0);
            CHECK_EQUAL(haft_io_close(next_ends[0]), 0);
            CHECK_EQUAL(haft_io_close(next_ends[1]), 0);
            next_ends[1] = 0;
        }
    return NULL;
}
static void ask_for_what_is_closed_on(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, ask_for_what_is_closed, NULL), 0);
}
static void who_asks_after_others_looks_at_no_next_file_of_the_number(void) {
    check_everywhere(ask_for_what_is_closed_on);
}

int main(void) {
    RUN(a_child_forked_while_a_thread_closes_has_runs);
    RUN(who_was_woken_gets_nothing_of_the_next_file_of_the_number);
    RUN(who_asks_after_others_looks_at_no_next_file_of_the_number);
    RUN(who_reads_while_another_thread_closes_gets_an_error);
    RUN(who_begins_to_wait_while_an_ordinary_thread_closes_gets_an_error);
    RUN(a_run_that_begins_while_a_thread_closes_misses_no_close);
    RUN(what_begins_while_a_close_is_put_off_ends_with_an_error);
    RUN(a_number_is_one_files_while_an_operation_asks_in_steps);
    RUN(a_thread_that_is_cancelled_while_it_closes_leaves_no_trace);
    return check_end();
}

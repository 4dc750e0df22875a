/* SPDX-License-Identifier: MIT */
/* No thread of a run stands in a system call, whatever the mode of the descriptor, and whatever
   else uses it. */
#define _GNU_SOURCE /* posix_openpt */
#include "check_io.h"
#include "terminals.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- In the way of the library's calls ---- */

/* The next time that the descriptor is ready another takes what there is, before the library
   does. */
static atomic_int contested = -1;
static void (*take_from)(int descriptor);
static atomic_int taken;

int __real_poll(struct pollfd *entries, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *entries, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *entries, nfds_t count, int milliseconds) {
    int ready = __real_poll(entries, count, milliseconds);
    int descriptor = count == 1 ? entries[0].fd : -1;
    if (ready == 1 && descriptor >= 0 &&
        atomic_compare_exchange_strong(&contested, &descriptor, -1)) {
        take_from(descriptor);
        taken++;
    }
    return ready;
}

static _Thread_local bool runs_tasks;
static atomic_int watched = -1, writes_here, writes_elsewhere;

ssize_t __real_write(int descriptor, const void *buffer, size_t size);
ssize_t __wrap_write(int descriptor, const void *buffer, size_t size);
ssize_t __wrap_write(int descriptor, const void *buffer, size_t size) {
    if (descriptor == watched && runs_tasks)
        writes_here++;
    else if (descriptor == watched)
        writes_elsewhere++;
    return __real_write(descriptor, buffer, size);
}

/* How often the mode of a descriptor was changed. */
static atomic_int changes;
int __real_fcntl(int descriptor, int command, ...);
int __wrap_fcntl(int descriptor, int command, ...);
int __wrap_fcntl(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    changes += command == F_SETFL;
    return __real_fcntl(descriptor, command, argument);
}

/* ---- Connections ---- */

static int listener_that_blocks(void) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK(listener >= 0);
    CHECK_EQUAL(fcntl(listener, F_SETFL, 0), 0);
    return listener;
}

static int connect_to(int listener) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&address, size), 0);
    return connection;
}

static void take_connection(int listener) {
    close((int)syscall(SYS_accept4, listener, NULL, NULL, 0));
}

static int listener, accepted_by_tasks;
BODY(accept_one) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    CHECK(connection >= 0);
    accepted_by_tasks++;
    return NULL;
}
BODY(connect_twice) {
    contested = listener;
    close(connect_to(listener));
    haft_io_spawn(accept_one, NULL);
    /* On one thread, only if that does not stand in accept4. */
    for (int i = 0; i < 5; i++)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    contested = -1;
    close(connect_to(listener));
    return NULL;
}
static void a_connection_that_another_takes_is_not_waited_for_by_the_thread(
    const haft_io_run_options_t *options) {
    listener = listener_that_blocks();
    accepted_by_tasks = 0;
    take_from = take_connection;
    CHECK_EQUAL(haft_io_run_with(options, connect_twice, NULL), 0);
    CHECK_EQUAL(accepted_by_tasks, 1);
    CHECK(fcntl(listener, F_GETFL) == O_RDWR);
    close(listener);
}

/* Tasks of two threads, and threads that have none, accept; then the tasks are cancelled. */
enum { ACCEPTORS = 4, CONNECTIONS = 4, CONNECTED_BY_ONE = 10 };
static atomic_int accepted, thread_ends;
static void *accept_on_a_thread(void *argument) {
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection >= 0)
            close(connection);
        if (thread_ends)
            return argument;
        accepted++;
    }
}
BODY(accept_all) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0; accepted++)
        haft_io_close(connection);
    return NULL;
}
BODY(accept_and_connect) {
    for (int i = 0; i < ACCEPTORS; i++)
        haft_io_spawn_with(&(haft_io_task_options_t){.spread = true}, accept_all, NULL);
    for (int i = 0; i < CONNECTED_BY_ONE; i++) {
        int before = accepted;
        int connections[CONNECTIONS];
        for (int k = 0; k < CONNECTIONS; k++)
            connections[k] = connect_to(listener);
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
static void
tasks_and_threads_accept_from_one_listener_that_blocks(const haft_io_run_options_t *options) {
    pthread_t thread;
    listener = listener_that_blocks();
    accepted = 0;
    thread_ends = 0;
    pthread_create(&thread, NULL, accept_on_a_thread, NULL);
    CHECK_EQUAL(haft_io_run_with(options, accept_in_rounds, NULL), 0);
    thread_ends = 1;
    int last = connect_to(listener);
    pthread_join(thread, NULL);
    close(last);
    close(listener);
}

/* ---- Terminals ---- */

enum { WRITTEN = 300000 };
static int terminal[2]; /* the program's side; that of the child, which does not read */

static void open_terminal(void) {
    CHECK(check_open_terminal(terminal, 0));
    check_make_raw(terminal[1]);
}
static void close_terminal(void) {
    close(terminal[0]);
    close(terminal[1]);
}

static char letter_at(size_t place) {
    return (char)('a' + place % 26);
}
static char letters[WRITTEN];
static void fill_letters(void) {
    for (size_t i = 0; i < WRITTEN; i++)
        letters[i] = letter_at(i);
}
static _Atomic size_t written;
BODY(write_letters) {
    while (written < WRITTEN) {
        ssize_t done = haft_io_write(terminal[0], letters + written, WRITTEN - written);
        CHECK(done > 0);
        written += (size_t)done;
    }
    return NULL;
}
BODY(write_letters_in_parts) {
    while (written < WRITTEN) {
        size_t left = WRITTEN - written, first = left / 2;
        struct iovec parts[] = {{letters + written, first},
                                {letters + written + first, left - first}};
        ssize_t done = haft_io_writev(terminal[0], parts, 2);
        CHECK(done > 0);
        written += (size_t)done;
    }
    return NULL;
}
static size_t read_so_far;
static void check_letters(const char *bytes, ssize_t count) {
    for (ssize_t i = 0; i < count; i++, read_so_far++)
        if (bytes[i] != letter_at(read_so_far)) {
            CHECK(!"the bytes come in order");
            return;
        }
}
BODY(read_letters) {
    char bytes[1000];
    while (read_so_far < WRITTEN) {
        ssize_t count = haft_io_read(terminal[1], bytes, sizeof bytes);
        CHECK(count > 0);
        check_letters(bytes, count);
    }
    return NULL;
}
static void *write_and_read(void *write_all) {
    void *(*writers[])(void *) = {write_letters, write_letters_in_parts};
    haft_io_spawn(writers[*(int *)write_all], NULL);
    haft_io_yield();
    haft_io_spawn(read_letters, NULL);
    return NULL;
}
static void a_terminal_that_is_full_holds_its_task_alone(const haft_io_run_options_t *options) {
    for (int how = 0; how < 2; how++) {
        open_terminal();
        written = read_so_far = 0;
        CHECK_EQUAL(haft_io_run_with(options, write_and_read, &how), 0);
        CHECK_EQUAL(read_so_far, WRITTEN);
        CHECK((fcntl(terminal[0], F_GETFL) & O_NONBLOCK) == 0);
        close_terminal();
    }
}

BODY(cancel_once_some_is_written) {
    while (written == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(write_letters_and_be_cancelled) {
    haft_io_spawn(cancel_once_some_is_written, NULL);
    return write_letters(NULL);
}
BODY(write_until_cancelled) {
    CHECK_EQUAL(haft_io_scope(write_letters_and_be_cancelled, NULL, NULL), -ECANCELED);
    fcntl(terminal[1], F_SETFL, O_NONBLOCK);
    char bytes[1000];
    /* Bytes that the terminal's line discipline has kept come a little later. */
    for (ssize_t count; read_so_far < written;) {
        CHECK((count = haft_io_read(terminal[1], bytes, sizeof bytes)) > 0);
        check_letters(bytes, count);
    }
    CHECK_EQUAL(__real_poll(&(struct pollfd){terminal[1], POLLIN, 0}, 1, 10), 0);
    return NULL;
}
static void a_cancelled_write_has_told_how_much_it_wrote(const haft_io_run_options_t *options) {
    open_terminal();
    written = read_so_far = 0;
    CHECK_EQUAL(haft_io_run_with(options, write_until_cancelled, NULL), 0);
    CHECK(written != 0 && written < WRITTEN);
    CHECK_EQUAL(read_so_far, written);
    close_terminal();
}

/* ---- What another reads first ---- */

static void take_letter(int descriptor) {
    char byte;
    CHECK_EQUAL(syscall(SYS_read, descriptor, &byte, 1), 1);
}
static int letters_read;
BODY(read_a_letter) {
    char byte;
    CHECK_EQUAL(haft_io_read(terminal[1], &byte, 1), 1);
    CHECK(byte == 'b');
    letters_read++;
    return NULL;
}
BODY(write_two_letters) {
    CHECK_EQUAL(__real_write(terminal[0], "a", 1), 1);
    while (__real_poll(&(struct pollfd){terminal[1], POLLIN, 0}, 1, 1) != 1)
        continue;
    contested = terminal[1];
    haft_io_spawn(read_a_letter, NULL);
    for (int i = 0; i < 5; i++)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(taken, 1);
    CHECK_EQUAL(__real_write(terminal[0], "b", 1), 1);
    return NULL;
}
static void
bytes_that_another_reads_are_not_waited_for_by_the_thread(const haft_io_run_options_t *options) {
    open_terminal();
    take_from = take_letter;
    taken = letters_read = 0;
    CHECK_EQUAL(haft_io_run_with(options, write_two_letters, NULL), 0);
    CHECK_EQUAL(letters_read, 1);
    close_terminal();
}

/* ---- Files ---- */

enum { FILE_SIZE = 1 << 20 };
static int file;
BODY(write_the_file) {
    static char bytes[FILE_SIZE];
    runs_tasks = true;
    struct iovec parts[] = {{bytes, FILE_SIZE / 2}, {bytes + FILE_SIZE / 2, FILE_SIZE / 2}};
    CHECK_EQUAL(haft_io_write_all(file, bytes, FILE_SIZE), 0);
    CHECK_EQUAL(haft_io_writev(file, parts, 2), FILE_SIZE);
    runs_tasks = false;
    return NULL;
}
static void a_file_that_is_written_through_is_written_in_one_piece_by_the_pool(
    const haft_io_run_options_t *options) {
    if (options->threads != 1)
        return;
    char path[] = "/tmp/haft-io-XXXXXX";
    close(mkstemp(path));
    file = open(path, O_WRONLY | O_SYNC | O_CLOEXEC);
    unlink(path);
    writes_here = writes_elsewhere = 0;
    watched = file;
    CHECK_EQUAL(haft_io_run_with(options, write_the_file, NULL), 0);
    watched = -1;
    CHECK_EQUAL(writes_here, 0);
    CHECK(writes_elsewhere <= 1);
    CHECK_EQUAL(lseek(file, 0, SEEK_CUR), 2 * FILE_SIZE);
    close(file);
}

/* A task that is being cancelled writes that to a log. */
static void write_a_last_line(const int *log) {
    CHECK_EQUAL(haft_io_write(*log, "over\n", 5), 5);
}
BODY(sleep_and_log) {
    __attribute__((cleanup(write_a_last_line), unused)) int log = file;
    haft_io_scope_cancel(haft_io_this_scope());
    haft_io_sleep(HAFT_IO_SECOND);
    return NULL;
}
BODY(log_in_a_scope) {
    CHECK_EQUAL(haft_io_scope(sleep_and_log, NULL, NULL), -ECANCELED);
    return NULL;
}
static void
a_cancelled_task_writes_to_a_terminal_in_its_cleanup(const haft_io_run_options_t *options) {
    char bytes[8];
    open_terminal();
    file = terminal[0];
    CHECK_EQUAL(haft_io_run_with(options, log_in_a_scope, NULL), 0);
    CHECK_EQUAL(read(terminal[1], bytes, sizeof bytes), 5);
    close_terminal();
}

BODY(wait_for_the_impossible) {
    CHECK_EQUAL(haft_io_wait_ready(file, POLLPRI), 0);
    CHECK(!"nothing happens");
    return NULL;
}
BODY(wait_for_the_impossible_a_while) {
    haft_io_scope_options_t options = {.deadline = haft_io_now() + 5 * HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, wait_for_the_impossible, NULL, NULL), -ETIMEDOUT);
    CHECK((haft_io_wait_ready(file, POLLIN | POLLPRI) & POLLIN) != 0);
    struct pollfd entry = {file, POLLPRI, 0};
    CHECK_EQUAL(haft_io_poll(&entry, 1, haft_io_now() + 5 * HAFT_IO_MILLISECOND), 0);
    return NULL;
}
static void a_wait_for_what_no_file_tells_ends_by_a_deadline(const haft_io_run_options_t *options) {
    file = check_file_with("text");
    CHECK_EQUAL(haft_io_run_with(options, wait_for_the_impossible_a_while, NULL), 0);
    close(file);
}

/* ---- From descriptor to descriptor ---- */

enum { MOVED = 1 << 20 };
static int pair[2], ends[2];
static size_t moved;
static char moved_at(size_t place) {
    return (char)('a' + place % 23);
}
static void open_a_file_to_move(void) {
    static char bytes[MOVED];
    for (size_t i = 0; i < MOVED; i++)
        bytes[i] = moved_at(i);
    file = check_file_with("");
    CHECK_EQUAL(__real_write(file, bytes, MOVED), MOVED);
    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    moved = 0;
    changes = 0;
}
static void close_what_was_moved(void) {
    CHECK_EQUAL(changes, 0);
    close(file);
    for (int i = 0; i < 2; i++)
        close(pair[i]), close(ends[i]);
}
/* Reads so slowly that what is sent has to wait. */
BODY(read_what_is_moved) {
    char bytes[5000];
    for (size_t done = 0; done < MOVED;) {
        ssize_t count = haft_io_read(pair[1], bytes, sizeof bytes);
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
BODY(send_the_file) {
    int64_t offset = 0;
    haft_io_spawn(read_what_is_moved, NULL);
    for (bool own = false; moved < MOVED; own = !own) {
        lseek(file, (off_t)moved, SEEK_SET);
        offset = (int64_t)moved;
        ssize_t done = haft_io_send_file(pair[0], file, own ? NULL : &offset, MOVED - moved);
        CHECK(done > 0);
        moved += (size_t)done;
        if (own)
            CHECK_EQUAL(lseek(file, 0, SEEK_CUR), (off_t)moved);
        else
            CHECK_EQUAL(offset, (int64_t)moved);
    }
    return NULL;
}
BODY(splice_to_a_socket) {
    while (moved < MOVED) {
        ssize_t done = haft_io_splice(ends[0], pair[0], MOVED);
        CHECK(done > 0);
        moved += (size_t)done;
    }
    return NULL;
}
BODY(splice_the_file) {
    haft_io_spawn(read_what_is_moved, NULL);
    haft_io_spawn(splice_to_a_socket, NULL);
    for (size_t filled = 0; filled < MOVED;) {
        ssize_t done = haft_io_splice(file, ends[1], MOVED - filled);
        CHECK(done > 0);
        filled += (size_t)done;
    }
    return NULL;
}
static void
a_file_is_sent_by_a_socket_that_blocks_and_stays_so(const haft_io_run_options_t *options) {
    open_a_file_to_move();
    CHECK_EQUAL(haft_io_run_with(options, send_the_file, NULL), 0);
    close_what_was_moved();
    open_a_file_to_move();
    CHECK_EQUAL(haft_io_run_with(options, splice_the_file, NULL), 0);
    close_what_was_moved();
}

BODY(send_what_nobody_reads) {
    int64_t *offset = argument;
    while (*offset < MOVED)
        CHECK(haft_io_send_file(pair[0], file, offset, (size_t)(MOVED - *offset)) > 0);
    return NULL;
}
BODY(splice_from_a_silent_socket) {
    haft_io_splice(pair[0], ends[1], 100);
    CHECK(!"nothing comes");
    return NULL;
}
static int with_a_deadline(void *(*body)(void *), void *argument) {
    return haft_io_scope_with(
        &(haft_io_scope_options_t){.deadline = haft_io_now() + 10 * HAFT_IO_MILLISECOND}, body,
        argument, NULL);
}
BODY(cancel_what_is_moved) {
    int64_t offset = 0;
    CHECK_EQUAL(with_a_deadline(send_what_nobody_reads, &offset), -ETIMEDOUT);
    CHECK_EQUAL(with_a_deadline(splice_from_a_silent_socket, NULL), -ETIMEDOUT);
    shutdown(pair[0], SHUT_WR);
    char bytes[5000];
    int64_t got = 0;
    for (ssize_t count; (count = read(pair[1], bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < count; i++)
            got += bytes[i] == moved_at((size_t)got);
    CHECK_EQUAL(got, offset);
    return NULL;
}
static void what_a_cancelled_task_has_sent_is_what_came(const haft_io_run_options_t *options) {
    open_a_file_to_move();
    CHECK_EQUAL(haft_io_run_with(options, cancel_what_is_moved, NULL), 0);
    close_what_was_moved();
}

/* ---- Connecting ---- */

static struct sockaddr_storage place;
static socklen_t place_size;
static int connect_here(int family) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int code = haft_io_connect(connection, (struct sockaddr *)&place, place_size);
    CHECK((__real_fcntl(connection, F_GETFL) & O_NONBLOCK) == 0);
    return code;
}
BODY(connect_to_a_full_listener) {
    connect_here(AF_UNIX);
    connect_here(AF_UNIX);
    CHECK(!"there is no room");
    return NULL;
}
BODY(connect_everywhere) {
    place_size = sizeof place;
    listener = listener_that_blocks();
    changes = 0;
    getsockname(listener, (struct sockaddr *)&place, &place_size);
    CHECK_EQUAL(connect_here(AF_INET), 0);
    close(listener);
    CHECK_EQUAL(connect_here(AF_INET), -ECONNREFUSED);
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    snprintf(local.sun_path + 1, sizeof local.sun_path - 1, "haft-never-blocks-%d", (int)getpid());
    memcpy(&place, &local, sizeof local);
    place_size = sizeof local;
    CHECK_EQUAL(connect_here(AF_UNIX), -ECONNREFUSED);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&place, place_size), 0);
    CHECK_EQUAL(listen(listener, 0), 0);
    CHECK_EQUAL(with_a_deadline(connect_to_a_full_listener, NULL), -ETIMEDOUT);
    CHECK_EQUAL(changes, 0);
    close(listener);
    return NULL;
}
static void a_socket_that_blocks_connects_and_stays_so(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, connect_everywhere, NULL), 0);
}

/* ---- FIFOs ---- */

enum { FIFOS = 70 }; /* more than the pool has threads */
static char fifo_name[64];
static int passed;
BODY(read_a_fifo) {
    char byte;
    HAFT_IO_SCOPED_DESCRIPTOR int fifo = haft_io_open(fifo_name, O_RDONLY, 0);
    CHECK(fifo >= 0);
    CHECK((__real_fcntl(fifo, F_GETFL) & O_NONBLOCK) == 0);
    CHECK((__real_fcntl(fifo, F_GETFD) & FD_CLOEXEC) != 0);
    passed += haft_io_read(fifo, &byte, 1) == 1;
    return NULL;
}
BODY(write_a_fifo) {
    HAFT_IO_SCOPED_DESCRIPTOR int fifo = haft_io_open(fifo_name, O_WRONLY, 0);
    CHECK(fifo >= 0);
    CHECK_EQUAL(haft_io_write(fifo, "x", 1), 1);
    while (passed != FIFOS) /* A reader without a writer would be at the end. */
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return NULL;
}
BODY(read_and_write_fifos) {
    for (int i = 0; i < FIFOS; i++)
        haft_io_spawn(read_a_fifo, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int i = 0; i < FIFOS; i++)
        haft_io_spawn(write_a_fifo, NULL);
    return NULL;
}
BODY(open_fifos) {
    int before = check_descriptors();
    CHECK_EQUAL(with_a_deadline(read_a_fifo, NULL), -ETIMEDOUT);
    CHECK_EQUAL(with_a_deadline(write_a_fifo, NULL), -ETIMEDOUT);
    CHECK_EQUAL(check_descriptors(), before);
    CHECK_EQUAL(haft_io_scope(read_and_write_fifos, NULL, NULL), 0);
    return NULL;
}
static void a_fifo_waits_for_its_other_end_without_a_thread(const haft_io_run_options_t *options) {
    if (options->threads != 1)
        return;
    snprintf(fifo_name, sizeof fifo_name, "/tmp/haft-io-fifo-%d", (int)getpid());
    CHECK_EQUAL(mkfifo(fifo_name, 0600), 0);
    passed = 0;
    CHECK_EQUAL(haft_io_run_with(options, open_fifos, NULL), 0);
    CHECK_EQUAL(passed, FIFOS);
    unlink(fifo_name);
}

static void (*everywhere)(const haft_io_run_options_t *options);
static void run_everywhere(void) {
    check_everywhere(everywhere);
}

int main(void) {
    check_backend();
    fill_letters();
    alarm(60 * check_times(1)); /* what stands still is to be seen as such */
#define RUN_EVERYWHERE(test) (everywhere = (test), check_run(#test, run_everywhere))
    RUN_EVERYWHERE(a_connection_that_another_takes_is_not_waited_for_by_the_thread);
    RUN_EVERYWHERE(tasks_and_threads_accept_from_one_listener_that_blocks);
    RUN_EVERYWHERE(a_file_that_is_written_through_is_written_in_one_piece_by_the_pool);
    RUN_EVERYWHERE(a_wait_for_what_no_file_tells_ends_by_a_deadline);
    RUN_EVERYWHERE(a_file_is_sent_by_a_socket_that_blocks_and_stays_so);
    RUN_EVERYWHERE(what_a_cancelled_task_has_sent_is_what_came);
    RUN_EVERYWHERE(a_socket_that_blocks_connects_and_stays_so);
    RUN_EVERYWHERE(a_fifo_waits_for_its_other_end_without_a_thread);
    if (check_has_terminals()) {
        RUN_EVERYWHERE(a_terminal_that_is_full_holds_its_task_alone);
        RUN_EVERYWHERE(a_cancelled_write_has_told_how_much_it_wrote);
        RUN_EVERYWHERE(bytes_that_another_reads_are_not_waited_for_by_the_thread);
        RUN_EVERYWHERE(a_cancelled_task_writes_to_a_terminal_in_its_cleanup);
    }
    return check_end();
}

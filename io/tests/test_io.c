/* Descriptors: pipes, sockets, files, blocking work; cancelling and closing what waits. */
#include "check_io.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/un.h>

/* ---- Pipes ---- */

static int ends[2];

BODY(write_later) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_write(ends[1], "hello", 5), 5);
    CHECK_EQUAL(haft_io_close(ends[1]), 0);
    return NULL;
}
static void read_to_the_end(void) {
    char buffer[16];
    CHECK_EQUAL(haft_io_read(ends[0], buffer, sizeof buffer), 5);
    CHECK(memcmp(buffer, "hello", 5) == 0);
    CHECK_EQUAL(haft_io_read(ends[0], buffer, sizeof buffer), 0);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
}
BODY(through_a_pipe) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_spawn(write_later, NULL);
    read_to_the_end();
    return NULL;
}
static void a_read_waits_for_what_is_written(void) {
    CHECK_RUNS(through_a_pipe);
}

BODY(through_a_blocking_pipe) {
    CHECK_EQUAL(pipe(ends), 0);
    haft_io_spawn(write_later, NULL);
    read_to_the_end();
    return NULL;
}
static void a_descriptor_that_blocks_does_not_block_the_thread_and_stays_as_it_is(void) {
    CHECK_RUNS(through_a_blocking_pipe);
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(haft_io_write(ends[1], "x", 1), 1);
    CHECK((fcntl(ends[1], F_GETFL) & O_NONBLOCK) == 0);
    close(ends[0]);
    close(ends[1]);
}

enum { LARGE = 1 << 20 };
static char large[LARGE];
BODY(write_much) {
    CHECK_EQUAL(haft_io_write_all(ends[1], large, sizeof large), 0);
    haft_io_close(ends[1]);
    return NULL;
}
static size_t read_all(int descriptor) {
    char buffer[5000];
    size_t total = 0;
    for (ssize_t got; (got = haft_io_read(descriptor, buffer, sizeof buffer)) != 0;) {
        CHECK(got > 0);
        if (got < 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            CHECK(buffer[i] == (char)((total + (size_t)i) * 31));
        total += (size_t)got;
    }
    return total;
}
static void fill(void) {
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * 31);
}
BODY(much_through_pipes) {
    fill();
    for (int blocking = 0; blocking < 2; blocking++) {
        CHECK_EQUAL(blocking ? pipe(ends) : haft_io_pipe(ends), 0);
        haft_io_spawn(write_much, NULL);
        CHECK_EQUAL(read_all(ends[0]), LARGE);
        haft_io_close(ends[0]);
    }
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_io_spawn(write_much, NULL);
    CHECK_EQUAL(read_all(ends[0]), LARGE);
    haft_io_close(ends[0]);
    return NULL;
}
static void more_than_fits_is_written_in_parts(void) {
    CHECK_RUNS(much_through_pipes);
}

/* Without a scheduler, and non-blocking descriptors. */
static void *other_thread(void *argument) {
    usleep(2000);
    return write_later(argument);
}
static void without_a_scheduler_the_call_blocks(void) {
    pthread_t thread;
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, other_thread, NULL), 0);
    read_to_the_end();
    pthread_join(thread, NULL);
}

/* ---- Sockets ---- */

static int listener;

static void *echo(void *argument) {
    int connection = (int)(intptr_t)argument;
    char buffer[256];
    for (ssize_t got; (got = haft_io_receive(connection, buffer, sizeof buffer, 0)) > 0;)
        CHECK_EQUAL(haft_io_write_all(connection, buffer, (size_t)got), 0);
    haft_io_close(connection);
    return NULL;
}
BODY(serve) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;)
        haft_io_spawn(echo, check_number(connection));
    return NULL;
}
static void *talk(void *argument) {
    int connection = argument != NULL
                         ? haft_io_connect_unix(argument)
                         : haft_io_connect_tcp("localhost", (uint16_t)haft_io_port(listener));
    CHECK(connection >= 0);
    char text[32], answer[32];
    for (int i = 0; i < 10; i++) {
        int size = snprintf(text, sizeof text, "message %d", i);
        CHECK_EQUAL(haft_io_send(connection, text, (size_t)size, 0), size);
        for (int got = 0; got < size;) {
            ssize_t more = haft_io_receive(connection, answer + got, sizeof answer, 0);
            CHECK(more > 0);
            if (more <= 0)
                return NULL;
            got += (int)more;
        }
        CHECK(memcmp(text, answer, (size_t)size) == 0);
    }
    CHECK_EQUAL(haft_io_close(connection), 0);
    return NULL;
}
static void *talk_all(void *path) {
    enum { CLIENTS = 20 };
    haft_io_call_t calls[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        calls[i] = (haft_io_call_t){talk, path, NULL};
    CHECK_EQUAL(haft_io_all(calls, CLIENTS), 0);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void *serve_and_talk(void *path) {
    haft_io_spawn(serve, NULL);
    return talk_all(path);
}
BODY(tcp_and_unix) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK(listener >= 0);
    CHECK_EQUAL(haft_io_scope(serve_and_talk, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(haft_io_close(listener), 0);

    char path[64];
    snprintf(path, sizeof path, "/tmp/haft-io-%d", (int)getpid());
    listener = haft_io_listen_unix(path, 0);
    CHECK(listener >= 0);
    CHECK_EQUAL(haft_io_scope(serve_and_talk, path, NULL), -ECANCELED);
    CHECK_EQUAL(haft_io_close(listener), 0);
    unlink(path);
    return NULL;
}
static void clients_talk_to_a_server_over_tcp_and_unix_sockets(void) {
    CHECK_RUNS(tcp_and_unix);
}

static void *connect_to(void *path) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_unix(path);
    CHECK(connection >= 0);
    return NULL;
}
static void *connect_often(void *path) {
    enum { CLIENTS = 8 };
    for (int i = 0; i < CLIENTS; i++)
        haft_io_spawn(connect_to, path);
    haft_io_sleep(3 * HAFT_IO_MILLISECOND); /* the queue of the listener is full */
    for (int i = 0; i < CLIENTS; i++) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
        CHECK(connection >= 0);
    }
    return NULL;
}
BODY(short_queue) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/haft-io-queue-%d", (int)getpid());
    listener = haft_io_listen_unix(path, 1);
    CHECK(listener >= 0);
    CHECK_EQUAL(haft_io_scope(connect_often, path, NULL), 0);
    CHECK_EQUAL(haft_io_close(listener), 0);
    unlink(path);
    return NULL;
}
static void a_connect_waits_until_a_local_listener_has_room(void) {
    CHECK_RUNS(short_queue);
}

BODY(datagrams) {
    int a = haft_io_socket(AF_INET, SOCK_DGRAM, 0), b = haft_io_socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQUAL(bind(a, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(bind(b, (struct sockaddr *)&address, sizeof address), 0);
    address.sin_port = htons((uint16_t)haft_io_port(b));
    CHECK_EQUAL(haft_io_send_to(a, "ping", 4, 0, (struct sockaddr *)&address, sizeof address), 4);
    char buffer[16];
    socklen_t size = sizeof address;
    CHECK_EQUAL(
        haft_io_receive_from(b, buffer, sizeof buffer, 0, (struct sockaddr *)&address, &size), 4);
    CHECK_EQUAL(ntohs(address.sin_port), haft_io_port(a));
    haft_io_close(a);
    haft_io_close(b);
    return NULL;
}
static void a_datagram_comes_with_its_sender(void) {
    CHECK_RUNS(datagrams);
    datagrams(NULL);
}

BODY(refused) {
    int closed = haft_io_listen_tcp("127.0.0.1", 0, 0);
    int port = haft_io_port(closed);
    haft_io_close(closed);
    CHECK_EQUAL(haft_io_connect_tcp("127.0.0.1", (uint16_t)port), -ECONNREFUSED);
    CHECK_EQUAL(haft_io_connect_unix("/nowhere/at/all"), -ENOENT);
    CHECK_EQUAL(haft_io_listen_tcp("no address", 0, 0), HAFT_IO_ERROR_OF_RESOLVER + EAI_NONAME);
    CHECK_EQUAL(haft_io_read(-1, NULL, 0), -EBADF);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_io_close(ends[0]);
    CHECK_EQUAL(haft_io_write(ends[1], "x", 1), -EPIPE);
    haft_io_close(ends[1]);
    return NULL;
}
BODY(connect_again) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    int connection = haft_io_socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(haft_io_connect(connection, (struct sockaddr *)&address, size), 0);
    CHECK_EQUAL(haft_io_connect(connection, (struct sockaddr *)&address, size), -EISCONN);
    haft_io_close(connection);
    haft_io_close(listener);
    return NULL;
}
static void a_socket_that_is_connected_is_not_connected_again(void) {
    CHECK_RUNS(connect_again);
    connect_again(NULL);
}
static void what_the_system_refuses_is_a_code_and_no_signal(void) {
    CHECK_RUNS(refused);
    refused(NULL);
}

/* ---- Cancelling and closing ---- */

BODY(read_one) {
    char byte = '?';
    ssize_t got = haft_io_read(ends[0], &byte, 1);
    return check_number(got == 1 ? byte : got);
}
BODY(read_until_closed) {
    haft_io_task_t *reader = haft_io_async(read_one, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    int reused = dup(ends[1]);
    void *result = NULL;
    CHECK_EQUAL(haft_io_join(reader, &result), 0);
    CHECK_EQUAL((intptr_t)result, -EBADF);
    haft_io_close(reused);
    haft_io_close(ends[1]);
    return NULL;
}
BODY(close_both_kinds) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    read_until_closed(NULL);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    read_until_closed(NULL);
    return NULL;
}
static void closing_a_descriptor_ends_the_waits_on_it_with_an_error(void) {
    CHECK_RUNS(close_both_kinds);
}

BODY(close_and_reuse) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_io_task_t *reader = haft_io_async(read_one, NULL);
    haft_io_yield();
    int others[2], before = ends[0];
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, others), 0);
    CHECK_EQUAL(others[0], before);
    CHECK_EQUAL(haft_io_write(others[1], "x", 1), 1);
    void *result = NULL;
    CHECK_EQUAL(haft_io_join(reader, &result), 0);
    CHECK_EQUAL((intptr_t)result, -EBADF);
    char byte;
    CHECK_EQUAL(haft_io_receive(others[0], &byte, 1, MSG_DONTWAIT), 1);
    haft_io_close(others[0]);
    haft_io_close(others[1]);
    haft_io_close(ends[1]);
    return NULL;
}
static void who_waits_on_a_closed_descriptor_gets_no_data_of_the_next_of_its_number(void) {
    CHECK_RUNS(close_and_reuse);
}

static haft_io_event_t go_on;
static void occupy_the_pool(__attribute__((unused)) void *argument) {
    haft_io_event_wait(&go_on);
}
BODY(occupy) {
    haft_io_call_blocking(occupy_the_pool, NULL);
    return NULL;
}
BODY(read_at_start) {
    char byte = '?';
    ssize_t got = haft_io_pread(ends[0], &byte, 1, 0);
    return check_number(got == 1 ? byte : got);
}
BODY(close_what_the_pool_reads) {
    haft_io_event_clear(&go_on);
    ends[0] = check_file_with("old");
    haft_io_spawn(occupy, NULL);
    haft_io_yield();
    haft_io_task_t *reader = haft_io_async(read_at_start, NULL);
    haft_io_yield();
    CHECK_EQUAL(haft_io_close(ends[0]), 0);
    int other = check_file_with("new");
    haft_io_event_set(&go_on);
    void *result = NULL;
    CHECK_EQUAL(haft_io_join(reader, &result), 0);
    CHECK_EQUAL((intptr_t)result, 'o');
    CHECK_EQUAL(fcntl(ends[0], F_GETFD), -1);
    haft_io_close(other);
    return NULL;
}
static void a_descriptor_that_the_pool_uses_is_closed_when_that_has_ended(void) {
    haft_io_run_options_t options = {.threads = 1, .blocking_threads = 1};
    CHECK_EQUAL(haft_io_run_with(&options, close_what_the_pool_reads, NULL), 0);
}

BODY(wait_for_nothing) {
    return check_number(haft_io_wait_ready(ends[0], 0));
}
BODY(close_what_is_watched_for_nothing) {
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        haft_io_task_t *watcher = haft_io_async(wait_for_nothing, NULL);
        haft_io_sleep(HAFT_IO_MILLISECOND);
        haft_io_close(ends[i]);
        void *result = NULL;
        CHECK_EQUAL(haft_io_join(watcher, &result), 0);
        CHECK_EQUAL((intptr_t)result, i == 0 ? -EBADF : POLLHUP);
        haft_io_close(ends[1 - i]);
    }
    return NULL;
}
static void a_wait_for_no_events_ends_with_the_descriptor_or_its_peer(void) {
    CHECK_RUNS(close_what_is_watched_for_nothing);
}

BODY(transfer_more_than_a_call_can) {
    const size_t size = (size_t)1 << 32;
    char *space = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return NULL;
    int file = check_file_with("abc");
    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
    CHECK_EQUAL(haft_io_read(file, space, size), 3);
    CHECK_EQUAL(haft_io_read(file, space, size), 0);
    haft_io_close(file);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_write(ends[1], "abcd", 4), 4);
    CHECK_EQUAL(haft_io_read(ends[0], space, size), 4);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    munmap(space, size);
    return NULL;
}
static void a_size_of_4_gib_is_not_taken_for_none(void) {
    CHECK_RUNS(transfer_more_than_a_call_can);
}

BODY(read_by_two) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_io_task_t *first = haft_io_async(read_one, NULL);
    haft_io_yield();
    haft_io_task_t *second = haft_io_async(read_one, NULL);
    void *result = NULL;
    haft_io_join(second, &result);
    CHECK_EQUAL((intptr_t)result, -EBUSY);
    CHECK_EQUAL(haft_io_write(ends[1], "a", 1), 1);
    haft_io_join(first, &result);
    CHECK_EQUAL((intptr_t)result, 'a');
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
static void a_second_reader_of_a_stream_is_refused(void) {
    CHECK_RUNS(read_by_two);
}

/* Cancelled reads, and bytes that are sent meanwhile: each is read once, by this read or the
   next. */
static size_t counted;
BODY(count_bytes) {
    char buffer[3];
    ssize_t got = haft_io_read(ends[0], buffer, sizeof buffer);
    CHECK(got > 0);
    counted += got > 0 ? (size_t)got : 0;
    return "read";
}
static void *send_soon(void *microseconds) {
    haft_io_sleep((intptr_t)microseconds * HAFT_IO_MICROSECOND);
    CHECK_EQUAL(haft_io_write(ends[1], "xy", 2), 2);
    return NULL;
}
BODY(cancelled_reads) {
    size_t sent = 0;
    counted = 0;
    for (int i = 0; i < 2 * check_times(500); i++) {
        if (i % 2 == 0)
            CHECK_EQUAL(i % 4 == 0 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : haft_io_pipe(ends),
                        0);
        haft_io_scope_options_t at_once = {.deadline =
                                               haft_io_now() + (i % 7) * 30 * HAFT_IO_MICROSECOND};
        haft_io_task_t *sender = haft_io_async(send_soon, check_number(i % 5 * 30));
        void *result;
        int code = haft_io_scope_with(&at_once, count_bytes, NULL, &result);
        CHECK_EQUAL(code, result != NULL ? 0 : -ETIMEDOUT);
        haft_io_join(sender, NULL);
        sent += 2;
        if (i % 2 == 1) {
            haft_io_close(ends[1]);
            char rest[16];
            ssize_t got = haft_io_read(ends[0], rest, sizeof rest);
            counted += got > 0 ? (size_t)got : 0;
            haft_io_close(ends[0]);
        }
    }
    CHECK_EQUAL(counted, sent);
    return NULL;
}
static void nothing_is_lost_by_reads_that_are_cancelled(void) {
    CHECK_RUNS(cancelled_reads);
}

BODY(accept_when_full) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    int client = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    CHECK(client >= 0);
    struct rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    haft_io_task_t *accepting = haft_io_async(serve, NULL);
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_EQUAL(haft_io_send(client, "!", 1, 0), 1);
    char byte;
    CHECK_EQUAL(haft_io_receive(client, &byte, 1, 0), 1);
    haft_io_close(client);
    haft_io_close(listener);
    haft_io_join(accepting, NULL);
    return NULL;
}
static void accept_goes_on_when_there_are_descriptors_again(void) {
    CHECK_RUNS(accept_when_full);
}

/* ---- Blocking work ---- */

static void block_a_little(void *argument) {
    usleep(3000);
    ++*(int *)argument;
}
static int done_in_pool;
BODY(call_blocking) {
    CHECK_EQUAL(haft_io_call_blocking(block_a_little, &done_in_pool), 0);
    return NULL;
}
/* Work that ends when it is told to. */
static bool begun, may_end;
static void block_until_told(void *argument) {
    __atomic_store_n(&begun, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE))
        usleep(100);
    ++*(int *)argument;
}
BODY(cancel_when_begun) {
    while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
    haft_io_scope_cancel(haft_io_this_scope());
    __atomic_store_n(&may_end, true, __ATOMIC_RELEASE);
    return NULL;
}
BODY(cancel_taken_work) {
    begun = may_end = false;
    haft_io_spawn(cancel_when_begun, NULL);
    haft_io_call_blocking(block_until_told, &done_in_pool);
    return NULL;
}
BODY(block_many) {
    done_in_pool = 0;
    for (int i = 0; i < 5; i++)
        CHECK_EQUAL(haft_io_scope(call_blocking, NULL, NULL), 0);
    CHECK_EQUAL(done_in_pool, 5);
    done_in_pool = 0;
    CHECK_EQUAL(haft_io_scope(cancel_taken_work, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(done_in_pool, 1);
    return NULL;
}
static void blocking_work_runs_elsewhere_and_what_has_begun_is_waited_for(void) {
    CHECK_RUNS(block_many);
}

/* The last of them to be unwound lets the first end, which alone can have begun. */
static void let_end(void **place) {
    if (*place != NULL)
        __atomic_store_n(&may_end, true, __ATOMIC_RELEASE);
}
static void *queue_up(void *is_last) {
    __attribute__((cleanup(let_end), unused)) void *place = is_last;
    haft_io_call_blocking(block_until_told, &done_in_pool);
    return NULL;
}
BODY(queue_and_cancel) {
    begun = may_end = false;
    for (int i = 0; i < 3; i++)
        haft_io_spawn(queue_up, i == 2 ? &may_end : NULL);
    while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(one_thread_of_work) {
    done_in_pool = 0;
    CHECK_EQUAL(haft_io_scope(queue_and_cancel, NULL, NULL), -ECANCELED);
    CHECK(done_in_pool <= 1);
    return NULL;
}
static void work_that_has_not_begun_is_withdrawn(void) {
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .blocking_threads = 1},
                                 one_thread_of_work, NULL),
                0);
}

BODY(use_files) {
    char path[64], buffer[16];
    snprintf(path, sizeof path, "/tmp/haft-io-file-%d", (int)getpid());
    int file = haft_io_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    CHECK_EQUAL(haft_io_write_all(file, "hello world", 11), 0);
    CHECK_EQUAL(haft_io_pwrite(file, "J", 1, 0), 1);
    CHECK_EQUAL(haft_io_fsync(file), 0);
    CHECK_EQUAL(haft_io_pread(file, buffer, 5, 0), 5);
    CHECK(memcmp(buffer, "Jello", 5) == 0);
    CHECK_EQUAL(lseek(file, 6, SEEK_SET), 6);
    CHECK_EQUAL(haft_io_read(file, buffer, sizeof buffer), 5);
    CHECK(memcmp(buffer, "world", 5) == 0);
    CHECK_EQUAL(haft_io_read(file, buffer, sizeof buffer), 0);
    CHECK_EQUAL(haft_io_close(file), 0);
    unlink(path);
    CHECK_EQUAL(haft_io_open("/nowhere/at/all", O_RDONLY, 0), -ENOENT);
    return NULL;
}
static void files_are_read_and_written_with_a_scheduler_or_without(void) {
    CHECK_RUNS(use_files);
    use_files(NULL);
}

BODY(resolve_names) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST}, *found = NULL;
    CHECK_EQUAL(haft_io_resolve("127.0.0.1", "80", &hints, &found), 0);
    CHECK(found != NULL);
    if (found != NULL)
        freeaddrinfo(found);
    CHECK_EQUAL(haft_io_resolve("not numeric", "80", &hints, &found),
                HAFT_IO_ERROR_OF_RESOLVER + EAI_NONAME);
    return NULL;
}
static void names_are_resolved(void) {
    CHECK_RUNS(resolve_names);
}

BODY(poll_both_ways) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLIN | POLLOUT), POLLOUT);
    CHECK_EQUAL(haft_io_write(ends[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_wait_ready(ends[0], POLLIN), POLLIN);
    CHECK_EQUAL(haft_io_wait_ready_until(ends[0], POLLIN, HAFT_IO_FOREVER), POLLIN);
    CHECK_EQUAL(haft_io_wait_ready_until(ends[1], POLLIN, haft_io_now() + HAFT_IO_MILLISECOND),
                -ETIMEDOUT);
    CHECK_EQUAL(haft_io_wait_ready_until(ends[1], POLLIN, 0), -ETIMEDOUT);
    haft_io_close(ends[0]);
    CHECK((haft_io_wait_ready_until(ends[1], POLLIN, HAFT_IO_FOREVER) & POLLHUP) != 0);
    haft_io_close(ends[1]);
    CHECK_EQUAL(haft_io_wait_ready_until(ends[1], POLLIN, HAFT_IO_FOREVER), -EBADF);
    CHECK_EQUAL(haft_io_wait_ready_until(-1, POLLIN, HAFT_IO_FOREVER), -EBADF);
    return NULL;
}
static void a_wait_for_events_returns_those_that_are_there(void) {
    CHECK_RUNS(poll_both_ways);
    poll_both_ways(NULL);
}

/* ---- Effects ---- */

static ssize_t imagine(void *state, HAFT_PAYLOAD(haft_io_read) * payload) {
    (void)state;
    memset(payload->buffer, 'z', payload->size);
    return (ssize_t)payload->size;
}
HAFT_HANDLER(imagining, NULL, HAFT_TAIL(haft_io_read, imagine));
BODY(read_imagined) {
    char buffer[4];
    CHECK_EQUAL(haft_io_read(12345, buffer, sizeof buffer), 4);
    CHECK_EQUAL(buffer[3], 'z');
    return NULL;
}
BODY(handle_reads) {
    return haft_handle(&imagining, NULL, read_imagined, NULL);
}
static void a_handler_of_the_program_sees_the_operations(void) {
    CHECK_RUNS(handle_reads);
    handle_reads(NULL);
}

/* read(2) of nothing waits for nothing, and takes nothing; recv(2) of nothing does. */
BODY(read_nothing) {
    int streams[2], datagrams[2], pipes[2];
    struct iovec empty = {NULL, 0};
    char text[8];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, streams), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
    CHECK_EQUAL(haft_io_pipe(pipes), 0);
    const int all[] = {streams[0], datagrams[0], pipes[0]};
    CHECK_EQUAL(haft_io_send(datagrams[1], "one", 3, 0), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(haft_io_read(all[i], text, 0), 0);
        CHECK_EQUAL(haft_io_readv(all[i], NULL, 0), 0);
        CHECK_EQUAL(haft_io_readv(all[i], &empty, 1), 0);
    }
    CHECK_EQUAL(haft_io_read(-1, text, 0), -EBADF);
    CHECK_EQUAL(haft_io_receive(datagrams[0], text, sizeof text, 0), 3);
    for (int i = 0; i < 2; i++) {
        haft_io_close(streams[i]);
        haft_io_close(datagrams[i]);
        haft_io_close(pipes[i]);
    }
    return NULL;
}
static void a_read_of_nothing_waits_for_nothing(void) {
    read_nothing(NULL);
    CHECK_RUNS(read_nothing);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, read_nothing, NULL), 0);
}

typedef struct {
    int listener, count; /* of what it has accepted */
} sharing_t;
BODY(accept_and_close) {
    sharing_t *sharing = argument;
    for (int got; (got = haft_io_accept(sharing->listener)) >= 0; sharing->count++)
        haft_io_close(got);
    return NULL;
}
static void connect_to_port(uint16_t to, int times) {
    char byte;
    while (times-- != 0) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", to);
        CHECK(connection >= 0);
        CHECK_EQUAL(haft_io_read(connection, &byte, 1), 0);
    }
}
BODY(listen_beside_another) {
    enum { MANY = 40 };
    const haft_io_listen_options_t shared = {.reuse_port = true};
    sharing_t one = {haft_io_listen_tcp_with(&shared, "127.0.0.1", 0), 0}, other = {0};
    uint16_t to = (uint16_t)haft_io_port(one.listener);
    CHECK_EQUAL(haft_io_listen_tcp("127.0.0.1", to, 0), -EADDRINUSE);
    CHECK_EQUAL(haft_io_listen_tcp_with(NULL, "127.0.0.1", to), -EADDRINUSE);
    other.listener = haft_io_listen_tcp_with(&shared, "127.0.0.1", to);
    CHECK(other.listener >= 0);
    haft_io_spawn(accept_and_close, &one);
    haft_io_task_t *task = haft_io_async(accept_and_close, &other);
    connect_to_port(to, MANY);
    haft_io_yield();
    CHECK(one.count != 0 && other.count != 0 && one.count + other.count == MANY);
    int before = one.count;
    haft_io_close(other.listener);
    haft_io_join(task, NULL);
    connect_to_port(to, MANY);
    haft_io_yield();
    CHECK_EQUAL(one.count, before + MANY);
    haft_io_close(one.listener);
    int alone = haft_io_listen_tcp("127.0.0.1", to, 0);
    CHECK(alone >= 0);
    CHECK_EQUAL(haft_io_listen_tcp_with(&shared, "127.0.0.1", to), -EADDRINUSE);
    haft_io_close(alone);
    return NULL;
}
static void listeners_that_share_a_port_divide_its_connections(void) {
    CHECK_RUNS(listen_beside_another);
    CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.network = true},
                                      listen_beside_another, NULL),
                0);
}

int main(void) {
    check_backend();
    RUN(a_read_waits_for_what_is_written);
    RUN(a_descriptor_that_blocks_does_not_block_the_thread_and_stays_as_it_is);
    RUN(more_than_fits_is_written_in_parts);
    RUN(without_a_scheduler_the_call_blocks);
    RUN(clients_talk_to_a_server_over_tcp_and_unix_sockets);
    RUN(a_connect_waits_until_a_local_listener_has_room);
    RUN(a_datagram_comes_with_its_sender);
    RUN(what_the_system_refuses_is_a_code_and_no_signal);
    RUN(a_socket_that_is_connected_is_not_connected_again);
    RUN(closing_a_descriptor_ends_the_waits_on_it_with_an_error);
    RUN(who_waits_on_a_closed_descriptor_gets_no_data_of_the_next_of_its_number);
    RUN(a_descriptor_that_the_pool_uses_is_closed_when_that_has_ended);
    RUN(a_wait_for_no_events_ends_with_the_descriptor_or_its_peer);
    RUN(a_size_of_4_gib_is_not_taken_for_none);
    RUN(a_second_reader_of_a_stream_is_refused);
    int before = check_descriptors();
    RUN(nothing_is_lost_by_reads_that_are_cancelled);
    CHECK_EQUAL(check_descriptors(), before);
    if (!RUNNING_ON_VALGRIND) /* which keeps descriptors for itself */
        RUN(accept_goes_on_when_there_are_descriptors_again);
    RUN(blocking_work_runs_elsewhere_and_what_has_begun_is_waited_for);
    RUN(work_that_has_not_begun_is_withdrawn);
    RUN(files_are_read_and_written_with_a_scheduler_or_without);
    RUN(names_are_resolved);
    RUN(a_wait_for_events_returns_those_that_are_there);
    RUN(a_handler_of_the_program_sees_the_operations);
    RUN(a_read_of_nothing_waits_for_nothing);
    RUN(listeners_that_share_a_port_divide_its_connections);
    return check_end();
}
/* SPDX-License-Identifier: MIT */

/* SPDX-License-Identifier: MIT */
/*
 * TCP echo: the server's processor time a message. The server is a process of its own on the second
 * processor: an epoll loop written by hand, or tasks on either back end; the load comes from the
 * first.
 *
 *     echo loop|ring|epoll|io_uring|dense CONNECTIONS BYTES SECONDS [samples]
 *     echo PATH CONNECTIONS BYTES SECONDS [samples] the server is a program with work.c's arguments
 *
 * `loop` and `ring` are loops by hand, on epoll and io_uring; `dense` are tasks on small stacks.
 * With `samples`, prints the time in user mode only: taking them slows the server, so that it has a
 * run of its own. With THREADS in the environment the tasks' server has so many threads, and the
 * server and the load have all processors. With 0 seconds each connection exchanges one message and
 * then is idle: prints the server's own memory a connection, with its page tables.
 */
#define _GNU_SOURCE
#include <haft/io.h>

#include "../server.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { LARGEST = 16384, EVENTS = 128 };

static int listener, port;

/* ---- Tasks ---- */

static void *echo(void *argument) {
    int connection = (int)(intptr_t)argument;
    const void *bytes = NULL;
    ssize_t got = haft_io_read_lent(connection, &bytes);
    while (got > 0 && haft_io_write_all(connection, bytes, (size_t)got) == 0)
        got = haft_io_read_lent(connection, &bytes);
    haft_io_close(connection);
    return NULL;
}

static void *serve(void *unused) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;) {
        no_delay(connection);
        haft_io_spawn(echo, (void *)(intptr_t)connection);
    }
    return unused;
}

/* ---- By hand: edges, reading tried first ---- */

static void watch(int epoll, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = descriptor};
    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static void accept_all(int epoll) {
    for (int connection; (connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        no_delay(connection);
        watch(epoll, connection);
    }
}

static void echo_all(int connection) {
    static char buffer[LARGEST];
    for (;;) {
        ssize_t got = recv(connection, buffer, sizeof buffer, 0);
        if (got == 0)
            close(connection);
        if (got <= 0)
            return;
        for (ssize_t sent = 0, more; sent<got; sent += more> 0 ? more : 0)
            more = send(connection, buffer + sent, (size_t)(got - sent), MSG_NOSIGNAL);
    }
}

static void loop(void) {
    int epoll = epoll_create1(0);
    struct epoll_event events[EVENTS];
    watch(epoll, listener);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                accept_all(epoll);
            else
                echo_all(events[i].data.fd);
        }
    }
}

/* ---- By hand: multishot accept and receive into a ring of buffers ---- */

#if __has_include(<liburing.h>)
#    include <liburing.h>

enum { BUFFERS = 256, ACCEPTED = 1, RECEIVED, SENT };
static char buffers[BUFFERS][LARGEST];

static struct io_uring_sqe *ask(struct io_uring *ring, uint64_t what, int connection, int buffer) {
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);
    if (entry == NULL) {
        io_uring_submit(ring);
        entry = io_uring_get_sqe(ring);
    }
    entry->user_data = what | (uint64_t)buffer << 8 | (uint64_t)connection << 32;
    return entry;
}

static void receive_many(struct io_uring *ring, int connection) {
    struct io_uring_sqe *entry = ask(ring, 0, connection, 0);
    io_uring_prep_recv_multishot(entry, connection, NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->user_data = RECEIVED | (uint64_t)connection << 32;
}

static void give_back(struct io_uring_buf_ring *free_ones, int buffer) {
    io_uring_buf_ring_add(free_ones, buffers[buffer], LARGEST, (unsigned short)buffer,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(free_ones, 1);
}

static void answer(struct io_uring *ring, struct io_uring_buf_ring *free_ones,
                   const struct io_uring_cqe *done) {
    int connection = (int)(done->user_data >> 32), buffer = (int)(done->user_data >> 8 & 0xffff);
    switch (done->user_data & 0xff) {
    case ACCEPTED:
        no_delay(done->res);
        receive_many(ring, done->res);
        break;
    case RECEIVED:
        if (done->res > 0) {
            buffer = (int)(done->flags >> IORING_CQE_BUFFER_SHIFT);
            struct io_uring_sqe *entry = ask(ring, 0, connection, buffer);
            io_uring_prep_send(entry, connection, buffers[buffer], (size_t)done->res,
                               MSG_NOSIGNAL | MSG_WAITALL);
            entry->user_data = SENT | (uint64_t)buffer << 8 | (uint64_t)connection << 32;
        } else if (done->res != -ENOBUFS) {
            close(connection);
            break;
        }
        if ((done->flags & IORING_CQE_F_MORE) == 0)
            receive_many(ring, connection);
        break;
    case SENT:
        give_back(free_ones, buffer);
        break;
    }
}

static void ring_loop(void) {
    struct io_uring ring;
    struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                                  IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
                                         .cq_entries = 8192};
    struct io_uring_buf_ring *free_ones;
    if (io_uring_queue_init_params(1024, &ring, &parameters) != 0 ||
        posix_memalign((void **)&free_ones, 4096, BUFFERS * sizeof(struct io_uring_buf)) != 0)
        exit(1);
    io_uring_buf_ring_init(free_ones);
    struct io_uring_buf_reg given = {.ring_addr = (uintptr_t)free_ones, .ring_entries = BUFFERS};
    if (io_uring_register_buf_ring(&ring, &given, 0) != 0)
        exit(1);
    for (int i = 0; i < BUFFERS; i++)
        give_back(free_ones, i);
    struct io_uring_sqe *entry = ask(&ring, 0, 0, 0);
    io_uring_prep_multishot_accept(entry, listener, NULL, NULL, 0);
    entry->user_data = ACCEPTED;
    for (;;) {
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe *done;
        unsigned head, count = 0;
        io_uring_for_each_cqe(&ring, head, done) {
            answer(&ring, free_ones, done);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
}
#else
static void ring_loop(void) {
    exit(1);
}
#endif

/* ---- The load ---- */

/* Several addresses: each has some 28,000 ports to connect from, and the kernel finds the last half
   slowly. */
static int connect_as(int number) {
    enum { PORTS = 10000 };
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr =
                                      htonl(INADDR_LOOPBACK + (unsigned)(number / PORTS)),
                                  .sin_port = htons((uint16_t)port)};
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        give_up("connect");
    no_delay(connection);
    return connection;
}

static char bytes_sent[LARGEST], bytes_got[LARGEST];

static void send_one(int connection, size_t size) {
    if (send(connection, bytes_sent, size, 0) != (ssize_t)size)
        give_up("send");
}
static void receive_one(int connection, size_t size) {
    if (recv(connection, bytes_got, size, MSG_WAITALL) != (ssize_t)size)
        give_up("receive");
}
static void exchange_one(int connection, size_t size) {
    send_one(connection, size);
    receive_one(connection, size);
}

static double memory_each(pid_t server, int connections, size_t size) {
    exchange_one(connect_as(0), size);
    double before = kibibytes_of(server);
    for (int i = 0; i < connections; i++)
        exchange_one(connect_as(i), size);
    return (kibibytes_of(server) - before) / connections;
}

/* Every connection exchanges a message before anything is counted, so that neither the server's
   start nor its accepting is. */
static uint64_t exchange(pid_t server, const struct perf_event_mmap_page *samples, int connections,
                         size_t size, double seconds, used_t *used) {
    enum { AT_ONCE = 100 };
    int epoll = epoll_create1(0), *all = calloc((size_t)connections, sizeof *all);
    for (int first = 0; first < connections; first += AT_ONCE) {
        int end = first + AT_ONCE < connections ? first + AT_ONCE : connections;
        for (int i = first; i < end; i++) {
            all[i] = connect_as(i);
            struct epoll_event event = {.events = EPOLLIN, .data.fd = all[i]};
            epoll_ctl(epoll, EPOLL_CTL_ADD, all[i], &event);
            send_one(all[i], size);
        }
        for (int i = first; i < end; i++)
            receive_one(all[i], size);
    }
    used_t before = used_by(server, samples);
    for (int i = 0; i < connections; i++)
        send_one(all[i], size);
    free(all);
    uint64_t bytes = 0;
    int64_t end = haft_io_now() + (int64_t)(seconds * 1e9);
    struct epoll_event events[EVENTS];
    while (haft_io_now() < end) {
        int count = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < count; i++) {
            ssize_t got = recv(events[i].data.fd, bytes_got, sizeof bytes_got, 0);
            if (got <= 0)
                give_up("receive");
            bytes += (uint64_t)got;
            send_one(events[i].data.fd, (size_t)got);
        }
    }
    *used = used_between(before, used_by(server, samples));
    return bytes / size;
}

static void run_program(const char *path, int threads) {
    char descriptor[16], thread_count[16];
    snprintf(thread_count, sizeof thread_count, "%d", threads);
    snprintf(descriptor, sizeof descriptor, "%d", listener);
    fcntl(listener, F_SETFD, 0);
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
    execl(path, path, "echo", thread_count, descriptor, (char *)NULL);
    _exit(127);
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "loop";
    int connections = count > 2 ? atoi(arguments[2]) : 64;
    size_t size = count > 3 ? strtoul(arguments[3], NULL, 10) : 64;
    double seconds = count > 4 ? atof(arguments[4]) : 1;
    int threads = getenv("THREADS") != NULL ? atoi(getenv("THREADS")) : 1;
    bool sampled = count > 5 && strcmp(arguments[5], "samples") == 0;
    listener = haft_io_listen_tcp("0.0.0.0", 0, 0);
    port = haft_io_port(listener);
    allow_connections(connections);
    int start[2];
    if (pipe(start) != 0)
        give_up("pipe");
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(start[1]);
        if (read(start[0], &(char){0}, 1) != 1)
            _exit(1);
        close(start[0]);
        if (threads == 1)
            pin(1);
        if (strcmp(kind, "loop") == 0)
            loop();
        if (strcmp(kind, "ring") == 0)
            ring_loop();
        if (strchr(kind, '/') != NULL)
            run_program(kind, threads);
        bool dense = strcmp(kind, "dense") == 0;
        haft_io_run_options_t options = {
            .threads = threads, .backend = dense ? NULL : kind, .dense = dense};
        _exit(-haft_io_run_with(&options, serve, NULL));
    }
    close(listener); /* so that nobody can connect if the server ends */
    if (threads == 1)
        pin(0);
    struct perf_event_mmap_page *samples = sampled ? sample(server, 1) : NULL;
    if (write(start[1], "", 1) != 1)
        give_up("the server's start");
    if (seconds == 0) {
        printf("%.2f\n", memory_each(server, connections, size));
        kill(server, SIGKILL);
        return 0;
    }
    used_t used;
    uint64_t messages = exchange(server, samples, connections, size, seconds, &used);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    if (messages == 0)
        return 1;
    printf("%-8s %5d connections %5zu bytes: ", kind, connections, size);
    if (!sampled) {
        printf("%8.0f messages/s, %.3f us a message\n", (double)messages / seconds,
               used.all / (double)messages);
        return 0;
    }
    printf("%.4f us a message in user mode\n",
           user_mode_of(used, samples != NULL) / (double)messages);
    return 0;
}

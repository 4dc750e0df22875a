/* SPDX-License-Identifier: MIT */
/*
 * TCP echo: the server's processor time a message. The server is a process of its own on the second
 * processor: an epoll loop written by hand, or tasks on either back end; the load comes from the first.
 *
 *     echo loop|ring|epoll|io_uring CONNECTIONS BYTES SECONDS
 *     echo PATH CONNECTIONS BYTES SECONDS     the server is a program with the arguments of work.c
 *
 * `loop` and `ring` are loops by hand, on epoll and io_uring. With 0 seconds each connection exchanges one
 * message and then is idle: prints the server's own memory a connection, with its page tables.
 */
#define _GNU_SOURCE
#include <haft/io.h>

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGEST = 16384, EVENTS = 128 };

static int listener;
static size_t buffer_size; /* of a server's task: a message, and at least 1 KiB */

static void pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void no_delay(int connection) {
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* ---- Tasks ---- */

static void *echo(void *argument) {
    int connection = (int)(intptr_t)argument;
    char buffer[buffer_size];
    for (ssize_t got; (got = haft_io_receive(connection, buffer, buffer_size, 0)) > 0;)
        if (haft_io_write_all(connection, buffer, (size_t)got) < 0)
            break;
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

/* Several addresses, since each has some 28,000 ports to connect from. */
static int connect_as(int number) {
    enum { PORTS = 20000 };
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr =
                                      htonl(INADDR_LOOPBACK + (unsigned)(number / PORTS)),
                                  .sin_port = htons((uint16_t)haft_io_port(listener))};
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("connect");
        exit(1);
    }
    no_delay(connection);
    return connection;
}

static double kibibytes_of(pid_t process) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *status = fopen(path, "r");
    double all = 0, one;
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmRSS: %lf", &one) == 1 || sscanf(line, "VmPTE: %lf", &one) == 1)
            all += one;
    fclose(status);
    return all;
}

static void exchange_one(int connection, size_t size) {
    static char buffer[LARGEST];
    if (send(connection, buffer, size, 0) != (ssize_t)size ||
        recv(connection, buffer, size, MSG_WAITALL) != (ssize_t)size)
        abort();
}

static double memory_each(pid_t server, int connections, size_t size) {
    exchange_one(connect_as(0), size);
    double before = kibibytes_of(server);
    for (int i = 0; i < connections; i++)
        exchange_one(connect_as(i), size);
    return (kibibytes_of(server) - before) / connections;
}

/* Processor time of a process in microseconds: in all, as the scheduler counts it, and in user mode, of which
   the kernel may know the share by its clock's ticks only. */
typedef struct used {
    double all, user;
} used_t;

static double first_number(const char *format, pid_t process, const char *thread) {
    char path[300];
    double number = 0;
    snprintf(path, sizeof path, format, process, thread);
    FILE *file = fopen(path, "r");
    if (file != NULL && fscanf(file, "%lf", &number) != 1)
        number = 0;
    if (file != NULL)
        fclose(file);
    return number;
}

static used_t used_by(pid_t process) {
    char path[64], line[1024];
    used_t used = {0, 0};
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *threads = opendir(path);
    for (struct dirent *thread; (thread = readdir(threads)) != NULL;)
        if (thread->d_name[0] != '.')
            used.all += first_number("/proc/%d/task/%s/schedstat", process, thread->d_name) / 1000;
    closedir(threads);
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *status = fopen(path, "r");
    double ticks = 0;
    if (fgets(line, sizeof line, status) == NULL ||
        sscanf(strrchr(line, ')') + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf",
               &ticks) != 1)
        abort();
    fclose(status);
    used.user = ticks * 1e6 / (double)sysconf(_SC_CLK_TCK);
    return used;
}

/* Every connection exchanges a message before anything is counted. */
static uint64_t exchange(pid_t server, int connections, size_t size, double seconds, used_t *used) {
    static char buffer[LARGEST];
    int epoll = epoll_create1(0), *all = calloc((size_t)connections, sizeof *all);
    for (int i = 0; i < connections; i++) {
        int connection = connect_as(i);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = connection};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connection, &event);
        exchange_one(connection, size);
        all[i] = connection;
    }
    used_t before = used_by(server);
    for (int i = 0; i < connections; i++)
        if (send(all[i], buffer, size, 0) != (ssize_t)size)
            abort();
    free(all);
    uint64_t bytes = 0;
    int64_t end = haft_io_now() + (int64_t)(seconds * 1e9);
    struct epoll_event events[EVENTS];
    while (haft_io_now() < end) {
        int count = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < count; i++) {
            ssize_t got = recv(events[i].data.fd, buffer, sizeof buffer, 0);
            if (got <= 0)
                abort();
            bytes += (uint64_t)got;
            if (send(events[i].data.fd, buffer, (size_t)got, 0) != got)
                abort();
        }
    }
    used_t after = used_by(server);
    *used = (used_t){after.all - before.all, after.user - before.user};
    return bytes / size;
}

static void run_program(const char *path) {
    char descriptor[16];
    snprintf(descriptor, sizeof descriptor, "%d", listener);
    fcntl(listener, F_SETFD, 0);
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
    execl(path, path, "echo", "1", descriptor, (char *)NULL);
    _exit(127);
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "loop";
    int connections = count > 2 ? atoi(arguments[2]) : 64;
    size_t size = count > 3 ? strtoul(arguments[3], NULL, 10) : 64;
    double seconds = count > 4 ? atof(arguments[4]) : 1;
    buffer_size = size > 1024 ? size : 1024;
    listener = haft_io_listen_tcp("0.0.0.0", 0, 0);
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    if (most.rlim_max < (rlim_t)connections + 100)
        most.rlim_max = (rlim_t)connections + 100;
    most.rlim_cur = most.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &most) != 0) {
        perror("the limit of descriptors");
        return 1;
    }
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(1);
        if (strcmp(kind, "loop") == 0)
            loop();
        if (strcmp(kind, "ring") == 0)
            ring_loop();
        if (strchr(kind, '/') != NULL)
            run_program(kind);
        _exit(-haft_io_run(serve, NULL, &(haft_io_options_t){.threads = 1, .backend = kind}));
    }
    pin(0);
    if (seconds == 0) {
        printf("%.2f\n", memory_each(server, connections, size));
        kill(server, SIGKILL);
        return 0;
    }
    used_t used;
    uint64_t messages = exchange(server, connections, size, seconds, &used);
    kill(server, SIGKILL);
    if (messages == 0)
        return 1;
    printf(
        "%-8s %5d connections %5zu bytes: %8.0f messages/s, %.2f us a message, %.2f in user mode\n",
        kind, connections, size, (double)messages / seconds, used.all / (double)messages,
        used.user / (double)messages);
    return 0;
}

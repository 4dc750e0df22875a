/* SPDX-License-Identifier: MIT */
/*
 * The socket of a run for haft-top. A thread of its own accepts connections, and sends each, once a
 * second, a line of JSON (summary.c), which a thread of the run makes between two tasks; it reads
 * nothing. Where no thread of the run does so within a second, because tasks hold them all, the
 * line has only what this thread can read: the threads and their counters.
 *
 *   the thread of the socket      | a thread of the run
 *   sets `wanted`, asks the run   | makes a text
 *   waits for `made`, or a second | if it is `wanted`, leaves it in `text`; sets `made`
 *   takes `text`, clears `wanted` |
 */
#include "inside.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 8 }; /* connections */

typedef struct hafti_io_top {
    hafti_io_crew_t *crew;
    struct sockaddr_un address;
    pthread_t thread;
    int listener, waker;
    int connections[MOST]; /* -1: none */
    bool ends;             /* any thread */
    haft_io_event_t made;
    uint32_t lock; /* for what follows */
    bool wanted;
    hafti_io_text_t text;
} hafti_io_top_t;

static bool is_open; /* one of the process's runs has it */

/* ---- The text ---- */

void hafti_io_top_summarize(hafti_io_crew_t *crew) {
    hafti_io_top_t *top = crew->top;
    if (top == NULL)
        return;
    hafti_io_text_t text = {.bytes = NULL};
    hafti_io_summarize(crew, true, &text);
    hafti_io_guard(&top->lock);
    if (top->wanted) {
        top->text = text;
        text.bytes = NULL;
        top->wanted = false;
    }
    hafti_io_unguard(&top->lock);
    free(text.bytes);
    haft_io_event_set(&top->made);
}

static hafti_io_text_t text_now(hafti_io_top_t *top) {
    haft_io_event_clear(&top->made);
    if (__atomic_load_n(&top->ends, __ATOMIC_ACQUIRE)) /* which has set `made` before */
        return (hafti_io_text_t){.bytes = NULL};
    hafti_io_guard(&top->lock);
    top->wanted = true;
    hafti_io_unguard(&top->lock);
    hafti_io_ask(top->crew, HAFTI_IO_ASKED_SUMMARY);
    haft_io_event_wait_until(&top->made, hafti_io_clock() + HAFT_IO_SECOND);
    hafti_io_guard(&top->lock);
    hafti_io_text_t text = top->text;
    top->text = (hafti_io_text_t){.bytes = NULL};
    top->wanted = false;
    hafti_io_unguard(&top->lock);
    if (text.bytes == NULL && !__atomic_load_n(&top->ends, __ATOMIC_ACQUIRE))
        hafti_io_summarize(top->crew, false, &text);
    return text;
}

/* ---- Connections ---- */

static void close_connection(int *connection) {
    hafti_io_close_file(*connection);
    *connection = -1;
}

/* One that has no room for the line has not read the last ones: it misses this one, or, if a part
   was taken, is closed. */
static void send_text(int *connection, const hafti_io_text_t *text) {
    ssize_t sent = send(*connection, text->bytes, text->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    bool misses = sent < 0 && (errno == EAGAIN || errno == EINTR);
    if (!misses && sent != (ssize_t)text->size)
        close_connection(connection);
}

static void send_to_all(hafti_io_top_t *top) {
    hafti_io_text_t text = text_now(top);
    for (size_t i = 0; i < MOST && text.size != 0 && !text.failed; i++)
        if (top->connections[i] >= 0)
            send_text(&top->connections[i], &text);
    free(text.bytes);
}

/* Accepts a connection; whether there was one. */
static bool accept_one(hafti_io_top_t *top) {
    int connection = accept4(top->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t free_place = 0;
    while (free_place < MOST && top->connections[free_place] >= 0)
        free_place++;
    if (connection >= 0 && free_place < MOST)
        top->connections[free_place] = connection;
    else if (connection >= 0)
        hafti_io_close_file(connection);
    return connection >= 0 && free_place < MOST;
}

/* Looks at a connection that was closed by the peer, or has sent bytes, which are not read. */
static void look_at(int *connection) {
    char unread[256];
    ssize_t size = recv(*connection, unread, sizeof unread, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        close_connection(connection);
}

static bool has_connections(const hafti_io_top_t *top) {
    for (size_t i = 0; i < MOST; i++)
        if (top->connections[i] >= 0)
            return true;
    return false;
}

static void *serve(void *argument) {
    hafti_io_top_t *top = argument;
    int64_t next = HAFT_IO_FOREVER;
    while (!__atomic_load_n(&top->ends, __ATOMIC_ACQUIRE)) {
        struct pollfd entries[MOST + 2] = {{.fd = top->waker, .events = POLLIN},
                                           {.fd = top->listener, .events = POLLIN}};
        for (size_t i = 0; i < MOST; i++)
            entries[i + 2] = (struct pollfd){.fd = top->connections[i], .events = POLLIN};
        hafti_io_poll_blocking(entries, MOST + 2, next);
        for (size_t i = 0; i < MOST; i++)
            if (top->connections[i] >= 0 && entries[i + 2].revents != 0)
                look_at(&top->connections[i]);
        if (entries[1].revents != 0 && accept_one(top))
            next = 0; /* The first line comes at once. */
        if (!has_connections(top))
            next = HAFT_IO_FOREVER;
        hafti_io_count_wakes(has_connections(top));
        int64_t now = hafti_io_clock();
        if (next <= now) {
            send_to_all(top);
            next = now + HAFT_IO_SECOND;
        }
    }
    return NULL;
}

/* ---- The socket ---- */

/* A folder means a file of the process's in it. */
static int set_address(struct sockaddr_un *address, const char *path) {
    struct stat status;
    bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t room = sizeof address->sun_path;
    int size = is_folder ? snprintf(address->sun_path, room, "%s/haft-top.%d", path, (int)getpid())
                         : snprintf(address->sun_path, room, "%s", path);
    return size > 0 && (size_t)size < room ? 0 : size == 0 ? -ENOENT : -ENAMETOOLONG;
}

/* Whether a process that has ended has left it: nobody listens there. */
static bool is_left(const struct sockaddr_un *address) {
    int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_refused = other >= 0 &&
                      connect(other, (const struct sockaddr *)address, sizeof *address) != 0 &&
                      errno == ECONNREFUSED;
    struct stat status;
    bool is_socket = lstat(address->sun_path, &status) == 0 && S_ISSOCK(status.st_mode);
    if (other >= 0)
        hafti_io_close_file(other);
    return is_refused && is_socket;
}

/* Nobody can connect before it listens, when the file has its mode. */
static int open_listener(const struct sockaddr_un *address) {
    const struct sockaddr *bound = (const struct sockaddr *)address;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
        return -errno;
    fchmod(listener, 0600); /* which the file has from the beginning */
    int code = bind(listener, bound, sizeof *address) != 0 ? -errno : 0;
    if (code == -EADDRINUSE && is_left(address)) {
        unlink(address->sun_path);
        code = bind(listener, bound, sizeof *address) != 0 ? -errno : 0;
    }
    if (code == 0 && (chmod(address->sun_path, 0600) != 0 || listen(listener, MOST) != 0)) {
        code = -errno;
        unlink(address->sun_path);
    }
    if (code == 0)
        return listener;
    hafti_io_close_file(listener);
    return code;
}

static void top_free(hafti_io_top_t *top) {
    for (size_t i = 0; i < MOST; i++)
        if (top->connections[i] >= 0)
            close_connection(&top->connections[i]);
    if (top->listener >= 0) {
        hafti_io_close_file(top->listener);
        unlink(top->address.sun_path);
    }
    if (top->waker >= 0)
        hafti_io_close_file(top->waker);
    free(top->text.bytes);
    free(top);
}

static int top_new(hafti_io_crew_t *crew, const char *path) {
    hafti_io_top_t *top = calloc(1, sizeof *top);
    if (top == NULL)
        return -ENOMEM;
    top->crew = crew;
    top->listener = -1;
    for (size_t i = 0; i < MOST; i++)
        top->connections[i] = -1;
    int code = top->waker = hafti_io_waker_open();
    if (code >= 0)
        code = set_address(&top->address, path);
    if (code == 0)
        code = top->listener = open_listener(&top->address);
    if (code >= 0)
        code = haft_io_keep_spans(true);
    if (code != 0) {
        top_free(top);
        return code;
    }
    crew->top = top;
    if (hafti_io_start_thread(&top->thread, serve, top) == 0)
        return 0;
    haft_io_keep_spans(false);
    crew->top = NULL;
    top_free(top);
    return -EAGAIN;
}

int hafti_io_top_start(hafti_io_crew_t *crew, const char *path) {
    const char *asked = path != NULL ? path : secure_getenv("HAFT_IO_TOP");
    if (asked == NULL || *asked == '\0')
        return 0;
    bool is_taken = __atomic_exchange_n(&is_open, true, __ATOMIC_ACQUIRE);
    int code = is_taken ? -EALREADY : top_new(crew, asked);
    if (code != 0 && !is_taken)
        __atomic_store_n(&is_open, false, __ATOMIC_RELEASE);
    if (code == 0 || path != NULL)
        return code;
    if (!is_taken)
        dprintf(STDERR_FILENO, "haft-io: there is no socket for haft-top at HAFT_IO_TOP=%s: %s\n",
                asked, haft_io_error_text(code));
    return 0;
}

void hafti_io_top_stop(hafti_io_crew_t *crew) {
    hafti_io_top_t *top = crew->top;
    if (top == NULL)
        return;
    __atomic_store_n(&top->ends, true, __ATOMIC_RELEASE);
    haft_io_event_set(&top->made);
    hafti_io_waker_wake(top->waker);
    pthread_join(top->thread, NULL);
    hafti_io_count_wakes(false);
    haft_io_keep_spans(false);
    crew->top = NULL;
    top_free(top);
    __atomic_store_n(&is_open, false, __ATOMIC_RELEASE);
}

void hafti_io_forget_top(void) {
    is_open = false;
    hafti_io_count_wakes(false);
}

/* SPDX-License-Identifier: MIT */
/*
 * The work of ../work.c with libuv, of what it has: no tasks, but timers and sockets with
 * callbacks, on one thread. It is used as its documentation recommends: a write is tried at once,
 * and queued if that would block.
 */
#include <uv.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int64_t operations, measured_apart;
static uv_loop_t loop;

static void end_timer(uv_timer_t *timer) {
    uv_close((uv_handle_t *)timer, NULL);
}
static uv_timer_t *start(int64_t count, uint64_t (*milliseconds)(int64_t number)) {
    uv_timer_t *timers = calloc((size_t)count, sizeof *timers);
    for (int64_t i = 0; i < count; i++) {
        uv_timer_init(&loop, &timers[i]);
        uv_timer_start(&timers[i], end_timer, milliseconds(i), 0);
    }
    return timers;
}

static uint64_t up_to_half_a_second(int64_t number) {
    return (uint64_t)(number + 1) % 500;
}
static void timers(void) {
    uv_timer_t *all = start(operations, up_to_half_a_second);
    uv_run(&loop, UV_RUN_NOWAIT);
    for (int64_t i = 1; i < operations; i += 2)
        if (!uv_is_closing((uv_handle_t *)&all[i]))
            end_timer(&all[i]);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static uint64_t a_day(int64_t number) {
    (void)number;
    return 86400 * 1000;
}
static void cancel(void) {
    for (int64_t i = 0; i < operations; i += 100) {
        uv_timer_t *all = start(100, a_day);
        for (int j = 0; j < 3; j++)
            uv_run(&loop, UV_RUN_NOWAIT);
        uint64_t since = uv_hrtime();
        for (int j = 0; j < 100; j++)
            end_timer(&all[j]);
        uv_run(&loop, UV_RUN_DEFAULT);
        measured_apart += (int64_t)(uv_hrtime() - since);
        free(all);
    }
}

static uint64_t as_asked(int64_t number) {
    (void)number;
    return (uint64_t)operations;
}
static void nothing(void) {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    start(1, as_asked);
    uv_run(&loop, UV_RUN_DEFAULT);
    getrusage(RUSAGE_SELF, &after);
    measured_apart = (after.ru_nvcsw - before.ru_nvcsw) * operations;
}

typedef struct {
    uv_tcp_t stream;
    char buffer[];
} connection_t;
typedef struct {
    uv_write_t request;
    char bytes[];
} queued_t;
static size_t buffer_size = 16384;

static void end_connection(uv_handle_t *handle) {
    free(handle);
}
static void end_write(uv_write_t *request, int status) {
    (void)status;
    free(request);
}
static void lend_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer) {
    (void)wanted;
    *buffer = uv_buf_init(((connection_t *)handle)->buffer, (unsigned)buffer_size);
}
static void answer(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer) {
    if (got == 0)
        return;
    if (got < 0) {
        uv_close((uv_handle_t *)stream, end_connection);
        return;
    }
    uv_buf_t whole = uv_buf_init(buffer->base, (unsigned)got);
    int sent = uv_try_write(stream, &whole, 1);
    if (sent == got)
        return;
    size_t done = sent > 0 ? (size_t)sent : 0, rest = (size_t)got - done;
    queued_t *queued = malloc(sizeof *queued + rest);
    memcpy(queued->bytes, buffer->base + done, rest);
    uv_buf_t last = uv_buf_init(queued->bytes, (unsigned)rest);
    uv_write(&queued->request, stream, &last, 1, end_write);
}
static void accept_one(uv_stream_t *listener, int status) {
    connection_t *connection = malloc(sizeof *connection + buffer_size);
    uv_tcp_init(&loop, &connection->stream);
    if (status != 0 || uv_accept(listener, (uv_stream_t *)&connection->stream) != 0) {
        uv_close((uv_handle_t *)connection, end_connection);
        return;
    }
    uv_tcp_nodelay(&connection->stream, 1);
    uv_read_start((uv_stream_t *)&connection->stream, lend_buffer, answer);
}
static void serve(void) {
    static uv_tcp_t listener;
    if (getenv("BUFFER") != NULL)
        buffer_size = strtoul(getenv("BUFFER"), NULL, 10);
    uv_tcp_init(&loop, &listener);
    uv_tcp_open(&listener, (uv_os_sock_t)operations);
    uv_listen((uv_stream_t *)&listener, 4096, accept_one);
    uv_run(&loop, UV_RUN_DEFAULT);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*work)(void);
    } works[] = {{"timers", timers}, {"cancel", cancel}, {"nothing", nothing}, {"echo", serve}};
    if (count != 4 || atoi(arguments[2]) != 1)
        return 2;
    operations = atoll(arguments[3]);
    uv_loop_init(&loop);
    for (size_t i = 0; i < sizeof works / sizeof works[0] && operations > 0; i++)
        if (strcmp(works[i].name, arguments[1]) == 0) {
            uint64_t started = uv_hrtime();
            works[i].work();
            int64_t took = measured_apart != 0 ? measured_apart : (int64_t)(uv_hrtime() - started);
            printf("%.2f\n", (double)took / (double)operations);
            return 0;
        }
    return 2;
}

/* SPDX-License-Identifier: MIT */
/*
 * TCP proxy: passes bytes both ways, and the end of each stream: when one side has closed its half,
 * the proxy closes that half towards the other side, which may still answer. A client sends a text
 * and closes its half; the server behind the proxy sees the end and answers with the number of
 * bytes.
 */
#include <errno.h>
#include <haft/io.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

typedef struct {
    int from, to;
} direction_t;

static void *pass(void *argument) {
    const direction_t *direction = argument;
    HAFT_IO_SCOPED_LENT const void *bytes = NULL; /* lent while there is data */
    for (ssize_t got; (got = haft_io_read_lent(direction->from, &bytes)) > 0;)
        if (haft_io_write_all(direction->to, bytes, (size_t)got) < 0)
            break;
    shutdown(direction->to, SHUT_WR);
    return NULL;
}

static int server, proxy;

static void *pass_both_ways(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int client = (int)(intptr_t)argument;
    HAFT_IO_SCOPED_DESCRIPTOR int behind =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(server));
    if (behind >= 0) {
        direction_t there = {client, behind}, back = {behind, client};
        haft_io_all((haft_io_call_t[]){{pass, &there, NULL}, {pass, &back, NULL}}, 2);
    }
    return NULL;
}

static void *count_bytes(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char buffer[4096];
    size_t total = 0;
    for (ssize_t got; (got = haft_io_read(connection, buffer, sizeof buffer)) > 0;)
        total += (size_t)got;
    int size = snprintf(buffer, sizeof buffer, "%zu bytes", total);
    haft_io_write_all(connection, buffer, (size_t)size);
    return NULL;
}

static void *accept_on_server(void *unused) {
    for (int connection; (connection = haft_io_accept(server)) >= 0;)
        haft_io_spawn(count_bytes, (void *)(intptr_t)connection);
    return unused;
}

static void *accept_on_proxy(void *unused) {
    for (int connection; (connection = haft_io_accept(proxy)) >= 0;)
        haft_io_spawn(pass_both_ways, (void *)(intptr_t)connection);
    return unused;
}

static void *ask(void *size) {
    static const char text[1000];
    char answer[64] = "";
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(proxy));
    for (intptr_t i = 0; i < (intptr_t)size; i++)
        haft_io_write_all(connection, text, sizeof text);
    shutdown(connection, SHUT_WR);
    for (size_t got = 0, more = 1; more > 0; got += more) {
        ssize_t some = haft_io_read(connection, answer + got, sizeof answer - 1 - got);
        more = some > 0 ? (size_t)some : 0;
    }
    printf("the server has got %s\n", answer);
    return NULL;
}

static void *main_task(void *unused) {
    haft_io_spawn(accept_on_server, NULL);
    haft_io_spawn(accept_on_proxy, NULL);
    for (intptr_t size = 1; size <= 1000; size *= 10)
        ask((void *)size);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

int main(void) {
    server = haft_io_listen_tcp("127.0.0.1", 0, 0);
    proxy = haft_io_listen_tcp("127.0.0.1", 0, 0);
    int code = haft_io_run(main_task, NULL);
    haft_io_close(server);
    haft_io_close(proxy);
    return code == -ECANCELED ? 0 : code;
}

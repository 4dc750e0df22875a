/* SPDX-License-Identifier: MIT */
/*
 * Echo server: every connection has a task, a plain loop of reads and writes. With a port as its
 * argument the program serves until it is killed; without one it talks to itself: a thousand
 * clients at once, on one thread.
 */
#include <haft/io.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *echo(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    char buffer[4096];
    for (ssize_t got; (got = haft_io_read(connection, buffer, sizeof buffer)) > 0;)
        if (haft_io_write_all(connection, buffer, (size_t)got) < 0)
            break;
    return NULL;
}

static int listener;

static void *serve(void *unused) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;)
        haft_io_spawn(echo, (void *)(intptr_t)connection);
    return unused;
}

static int answered;

static void *client(void *argument) {
    char question[32] = "", answer[sizeof question] = "";
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    if (connection < 0)
        haft_io_fail(connection, "no connection");
    snprintf(question, sizeof question, "hello %d", (int)(intptr_t)argument);
    haft_io_write_all(connection, question, sizeof question);
    for (size_t got = 0; got < sizeof answer;) {
        ssize_t more = haft_io_read(connection, answer + got, sizeof answer - got);
        if (more <= 0)
            haft_io_fail(-ECONNRESET, "no answer");
        got += (size_t)more;
    }
    answered += strcmp(question, answer) == 0;
    return NULL;
}

static void *talk_to_itself(void *unused) {
    enum { CLIENTS = 1000, AT_ONCE = 200 };
    haft_io_spawn(serve, NULL);
    haft_io_call_t calls[AT_ONCE];
    for (int first = 0; first < CLIENTS; first += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++)
            calls[i] = (haft_io_call_t){client, (void *)(intptr_t)(first + i), NULL};
        haft_io_all(calls, AT_ONCE);
    }
    printf("%d clients were answered\n", answered);
    haft_io_scope_cancel(haft_io_this_scope()); /* the server, too */
    return unused;
}

int main(int count, char **arguments) {
    bool serves = count > 1;
    listener = haft_io_listen_tcp(serves ? "::" : "127.0.0.1",
                                  serves ? (uint16_t)atoi(arguments[1]) : 0, 0);
    if (listener < 0) {
        fprintf(stderr, "%s\n", haft_io_error_text(listener));
        return 1;
    }
    int code = haft_io_run(serves ? serve : talk_to_itself, NULL);
    haft_io_close(listener);
    return code == -ECANCELED ? 0 : code;
}

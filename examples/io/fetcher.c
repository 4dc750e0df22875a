/* SPDX-License-Identifier: MIT */
/*
 * Fetcher: ten tasks ask ten servers, at most three at the same time. Each try has a deadline;
 * after the deadline the task tries again. Every third server answers only the second time it is
 * asked, and the last one never.
 */
#include <errno.h>
#include <haft/io.h>
#include <stdio.h>

enum { SERVERS = 10, AT_ONCE = 3, TRIES = 3 };

typedef struct {
    int number, listener, asked;
} server_t;
static server_t servers[SERVERS];

static void *serve(void *argument) {
    server_t *server = argument;
    for (int next; (next = haft_io_accept(server->listener)) >= 0;) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection = next;
        server->asked++;
        bool silent =
            server->number == SERVERS - 1 || (server->number % 3 == 0 && server->asked == 1);
        char answer[32];
        int size = snprintf(answer, sizeof answer, "page %d", server->number);
        if (silent)
            haft_io_read(connection, answer, 1); /* until the client gives up */
        else
            haft_io_write_all(connection, answer, (size_t)size);
    }
    return NULL;
}

typedef struct {
    int number;
    char page[32];
} fetch_t;

/* One try; the deadline unwinds it. */
static void *try_once(void *argument) {
    fetch_t *fetch = argument;
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(servers[fetch->number].listener));
    if (connection < 0)
        haft_io_fail(connection, "no connection");
    size_t got = 0;
    for (ssize_t more;
         (more = haft_io_read(connection, fetch->page + got, sizeof fetch->page - 1 - got)) > 0;)
        got += (size_t)more;
    fetch->page[got] = '\0';
    return NULL;
}

static haft_io_semaphore_t slots = {.count = AT_ONCE};
static char results[SERVERS][64];

static void *fetch(void *argument) {
    fetch_t fetch = {.number = (int)(intptr_t)argument};
    int code = 0;
    haft_io_semaphore_acquire(&slots);
    for (int tries = 1; tries <= TRIES; tries++) {
        int64_t deadline = haft_io_now() + 300 * HAFT_IO_MILLISECOND;
        code = haft_io_scope_with(&(haft_io_scope_options_t){.deadline = deadline}, try_once,
                                  &fetch, NULL);
        snprintf(results[fetch.number], sizeof results[0], "%s after %d %s",
                 code == 0 ? fetch.page : haft_io_error_text(code), tries,
                 tries == 1 ? "try" : "tries");
        if (code == 0)
            break;
    }
    haft_io_semaphore_release(&slots);
    return NULL;
}

static void *fetch_all(void *unused) {
    haft_io_call_t calls[SERVERS];
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = (server_t){i, haft_io_listen_tcp("127.0.0.1", 0, 0), 0};
        haft_io_spawn(serve, &servers[i]);
        calls[i] = (haft_io_call_t){fetch, (void *)(intptr_t)i, NULL};
    }
    haft_io_all(calls, SERVERS);
    for (int i = 0; i < SERVERS; i++)
        puts(results[i]);
    for (int i = 0; i < SERVERS; i++)
        haft_io_close(servers[i].listener);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

int main(void) {
    int code = haft_io_run(fetch_all, NULL);
    return code == -ECANCELED ? 0 : code;
}

/* SPDX-License-Identifier: MIT */
/* A server of the test's own, on the loopback interface, and a hundred clients of it at once, all
   tasks of one run. Included once. */
#include "../../../tests/check_io.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { CLIENTS = 100 };
static int listener;
static struct sockaddr_in address;

static void open_listener(void) {
    socklen_t size = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, size), 0);
    CHECK_EQUAL(listen(listener, CLIENTS), 0);
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
}

/* Both are called by tasks: the one with a connection, which it closes, the other with a client's
   number, from 1 on. */
typedef struct served {
    void *(*answer)(void *connection);
    void *(*ask)(void *number);
} served_t;

static void *accept_clients(void *argument) {
    const served_t *served = argument;
    for (int i = 0; i < CLIENTS; i++) {
        int connection = accept(listener, NULL, NULL);
        CHECK(connection >= 0);
        haft_io_spawn(served->answer, check_number(connection));
    }
    return NULL;
}

/* Returns when all clients have. */
static void serve_clients(void *(*answer)(void *), void *(*ask)(void *)) {
    served_t served = {answer, ask};
    open_listener();
    haft_io_task_t *tasks[CLIENTS + 1] = {haft_io_async(accept_clients, &served)};
    for (intptr_t i = 1; i <= CLIENTS; i++)
        tasks[i] = haft_io_async(served.ask, check_number(i));
    for (int i = 0; i <= CLIENTS; i++)
        CHECK_EQUAL(haft_io_join(tasks[i], NULL), 0);
    CHECK_EQUAL(close(listener), 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * Messages to the service manager: the protocol of sd_notify(3), a datagram of "NAME=value" to the
 * Unix socket that the environment names. systemd promises that the protocol stays, and documents
 * it for programs that do without libsystemd; libsystemd's call would block the thread of the run,
 * and distributions have no static library of it.
 */
#include "internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

/* The address: a path, or a name in the abstract space, for which '@' stands. 0: it is neither. */
static socklen_t address_of(const char *name, struct sockaddr_un *address) {
    size_t size = strlen(name);
    if ((*name != '/' && *name != '@') || size < 2 || size >= sizeof address->sun_path)
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, name, size);
    if (*name == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*name == '/'));
}

static int send_word(const char *name, const char *word) {
    enum { MOST_SECONDS = 1 }; /* a manager that does not read delays no server */
    struct sockaddr_un address;
    socklen_t size = address_of(name, &address);
    if (size == 0)
        return -EAFNOSUPPORT;
    HAFT_IO_SCOPED_DESCRIPTOR int socket = haft_io_socket(AF_UNIX, SOCK_DGRAM, 0);
    if (socket < 0)
        return socket;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + MOST_SECONDS * HAFT_IO_SECOND);
    ssize_t sent = haft_io_send_to(socket, word, strlen(word), MSG_NOSIGNAL,
                                   (const struct sockaddr *)&address, size);
    return sent < 0 ? (int)sent : 0;
}

/* A failure that repeats is logged once. */
void hafti_http_notify(haft_http_server_t *server, const char *word) {
    const char *name = server->notifies ? getenv("NOTIFY_SOCKET") : NULL;
    if (name == NULL || hafti_http_is_simulated())
        return;
    int code = send_word(name, word);
    if (code != 0 && atomic_exchange(&server->notify_code, code) != code)
        hafti_http_log(server, "cannot tell the service manager %s at %s: %s", word, name,
                       code == -EAFNOSUPPORT ? "NOTIFY_SOCKET begins with neither '/' nor '@', or "
                                               "is too long"
                                             : haft_io_error_text(code));
}

void hafti_http_notify_successor(haft_http_server_t *server, pid_t process) {
    char word[40];
    snprintf(word, sizeof word, "MAINPID=%d", process);
    hafti_http_notify(server, word);
}

/* sd_watchdog_enabled(3): the time within which the manager expects a message of this process. */
static int64_t watchdog_time(void) {
    const char *time = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
    if (time == NULL || (process != NULL && strtol(process, NULL, 10) != getpid()))
        return 0;
    long long microseconds = strtoll(time, NULL, 10);
    return microseconds > 0 && microseconds < INT64_MAX / 1000 ? microseconds * 1000 : 0;
}

void *hafti_http_notify_watchdog(void *argument) {
    haft_http_server_t *server = argument;
    int64_t time = watchdog_time();
    if (time == 0 || !server->notifies || hafti_http_is_simulated())
        return NULL;
    for (;;) {
        hafti_http_notify(server, "WATCHDOG=1");
        haft_io_sleep(time / 2);
    }
}

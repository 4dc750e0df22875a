/* SPDX-License-Identifier: MIT */
/* Where a server listens: by TCP, at Unix sockets, and with what systemd has passed. */
#include "internal.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_PASSED = 3 }; /* SD_LISTEN_FDS_START */
static const char unix_sockets[] = "unix:", proxies[] = "proxy:", systemd[] = "systemd";

static int add(hafti_http_listeners_t *listeners, int descriptor, const char *place) {
    if (descriptor < 0)
        return descriptor;
    bool has_room = listeners->count < HAFTI_HTTP_LISTENERS;
    char *copy = has_room ? strdup(place) : NULL;
    if (copy == NULL) {
        haft_io_close(descriptor);
        return has_room ? -ENOMEM : -E2BIG;
    }
    listeners->places[listeners->count] = copy;
    listeners->descriptors[listeners->count++] = descriptor;
    listeners->passed = listeners->count;
    return 0;
}

static void *remove_simulated(void *path) {
    haft_io_remove(path);
    return NULL;
}

static void remove_path(char *path) {
    if (hafti_http_is_simulated())
        haft_io_shield(remove_simulated, path);
    else
        unlink(path);
}

void hafti_http_forget_listeners(hafti_http_listeners_t *listeners) {
    while (listeners->count != 0)
        haft_io_close(listeners->descriptors[--listeners->count]);
    for (size_t at = 0; at < listeners->paths_size; at += strlen(listeners->paths + at) + 1)
        remove_path(listeners->paths + at);
    free(listeners->paths);
    while (listeners->passed != 0)
        free(listeners->places[--listeners->passed]);
}

/* ---- TCP ---- */

static int listen_tcp(const haft_http_run_options_t *options, const char *host, uint16_t port) {
    haft_io_listen_options_t how = {.backlog = options->backlog, .reuse_port = options->reuse_port};
    return haft_io_listen_tcp_with(&how, host, port);
}

/* "host:port", "[address]:port", ":port". */
static int listen_by_name(const haft_http_run_options_t *options, char *name) {
    char *colon = strrchr(name, ':'), *end;
    if (colon == NULL)
        return -EINVAL;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || port > UINT16_MAX)
        return -EINVAL;
    *colon = '\0';
    bool is_address = *name == '[' && colon[-1] == ']';
    if (is_address)
        colon[-1] = '\0';
    const char *host = is_address ? name + 1 : *name != '\0' ? name : "::";
    return listen_tcp(options, host, (uint16_t)port);
}

/* ---- Unix sockets ---- */

/* Whether a socket was left by a process that has ended. */
static bool is_left(const char *path) {
    struct stat status;
    if (hafti_http_is_simulated() || lstat(path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return false;
    int connection = haft_io_connect_unix(path);
    if (connection >= 0)
        haft_io_close(connection);
    return connection == -ECONNREFUSED;
}

/* The path is removed at the end. */
static int add_path(hafti_http_listeners_t *listeners, const char *path) {
    size_t size = strlen(path) + 1;
    char *paths = realloc(listeners->paths, listeners->paths_size + size);
    if (paths == NULL)
        return -ENOMEM;
    listeners->paths = paths;
    memcpy(paths + listeners->paths_size, path, size);
    listeners->paths_size += size;
    return 0;
}

static int listen_unix(const char *path, int backlog) {
    int descriptor = haft_io_listen_unix(path, backlog);
    if (descriptor == -EADDRINUSE && is_left(path) && unlink(path) == 0)
        descriptor = haft_io_listen_unix(path, backlog);
    return descriptor;
}

/* ---- systemd ---- */

static unsigned long number_in(const char *variable) {
    const char *text = getenv(variable);
    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

/* sd_listen_fds(3): the sockets are this process's if it is the one that was started. */
static int take_passed(hafti_http_listeners_t *listeners) {
    unsigned long count = number_in("LISTEN_FDS");
    if (hafti_http_is_simulated() || number_in("LISTEN_PID") != (unsigned long)getpid() ||
        count == 0)
        return -ENOTCONN;
    for (int descriptor = FIRST_PASSED; descriptor < FIRST_PASSED + (int)count; descriptor++) {
        int flags = fcntl(descriptor, F_GETFL);
        if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
            return -errno;
        /* Fails for Unix sockets, which do not need it. */
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        int code = add(listeners, descriptor, systemd);
        if (code != 0)
            return code;
    }
    return 0;
}

/* ---- */

/* Takes the sockets that the previous process has passed for this place: 1 if there are some. */
static int take_inherited(hafti_http_listeners_t *listeners, const char *where) {
    int descriptors[HAFTI_HTTP_LISTENERS], code = 0;
    int count = listeners->inherits
                    ? hafti_http_take_inherited(where, descriptors, HAFTI_HTTP_LISTENERS)
                    : 0;
    for (int i = 0; i < count; i++) {
        int added = add(listeners, descriptors[i], where);
        code = code == 0 ? added : code;
    }
    return code != 0 ? code : count != 0;
}

static int listen_anew(const haft_http_run_options_t *options, const char *where,
                       hafti_http_listeners_t *listeners) {
    char name[strlen(where) + 1];
    if (strcmp(where, systemd) == 0)
        return take_passed(listeners);
    if (strncmp(where, unix_sockets, sizeof unix_sockets - 1) == 0)
        return add(listeners, listen_unix(where + sizeof unix_sockets - 1, options->backlog),
                   where);
    return add(listeners, listen_by_name(options, strcpy(name, where)), where);
}

static int listen_at_one(const haft_http_run_options_t *options, const char *where,
                         hafti_http_listeners_t *listeners) {
    int code = take_inherited(listeners, where);
    if (code == 0)
        code = listen_anew(options, where, listeners);
    bool is_unix = strncmp(where, unix_sockets, sizeof unix_sockets - 1) == 0;
    if (code >= 0 && is_unix)
        code = add_path(listeners, where + sizeof unix_sockets - 1);
    return code < 0 ? code : 0;
}

static int listen_where(haft_http_server_t *server, const haft_http_run_options_t *options,
                        const char *where, hafti_http_listeners_t *listeners) {
    bool is_announced = strncmp(where, proxies, sizeof proxies - 1) == 0;
    size_t first = listeners->count;
    int code = listen_at_one(options, is_announced ? where + sizeof proxies - 1 : where, listeners);
    for (size_t i = first; i < listeners->count && code == 0 && is_announced; i++)
        code = haft_http_server_expect_proxy_header(server, listeners->descriptors[i]);
    return code;
}

static int listen_at_all(haft_http_server_t *server, const haft_http_run_options_t *options,
                         hafti_http_listeners_t *listeners) {
    hafti_http_text_t all = {options->listen, strlen(options->listen)}, part;
    while (hafti_http_next_part(&all, ' ', &part)) {
        char *where = strndup(part.bytes, part.size);
        int code = where == NULL    ? -ENOMEM
                   : *where != '\0' ? listen_where(server, options, where, listeners)
                                    : 0;
        free(where);
        if (code == 0)
            continue;
        if (code == -EINVAL)
            return hafti_http_refuse(server, code, "haft_http_server_run",
                                     "cannot listen at %.*s: write host:port, [address]:port, "
                                     ":port, unix:/path or systemd",
                                     (int)part.size, part.bytes);
        hafti_http_log(server, "cannot listen at %.*s: %s", (int)part.size, part.bytes,
                       code == -ENOTCONN ? "systemd has passed no sockets"
                                         : haft_io_error_text(code));
        return code;
    }
    if (listeners->count == 0)
        hafti_http_log(server, "there is no place at which to listen");
    return listeners->count != 0 ? 0 : -EINVAL;
}

static int listen_at_port(const haft_http_server_t *server, const haft_http_run_options_t *options,
                          hafti_http_listeners_t *listeners) {
    const char *host = options->host != NULL ? options->host : "::";
    char place[strlen(host) + 8];
    snprintf(place, sizeof place, "%s:%d", host, options->port);
    int code = take_inherited(listeners, place);
    if (code == 0)
        code = add(listeners, listen_tcp(options, host, options->port), place);
    if (code < 0)
        hafti_http_log(server, "cannot listen at %s, port %d: %s", host, options->port,
                       haft_io_error_text(code));
    return code < 0 ? code : 0;
}

int hafti_http_listen(haft_http_server_t *server, const haft_http_run_options_t *options,
                      hafti_http_listeners_t *listeners) {
    listeners->inherits = !hafti_http_is_simulated() && hafti_http_inherits();
    int code = options->listen != NULL ? listen_at_all(server, options, listeners)
                                       : listen_at_port(server, options, listeners);
    if (listeners->inherits)
        hafti_http_forget_inherited();
    return code;
}

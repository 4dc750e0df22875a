/* SPDX-License-Identifier: MIT */
/* A server: its limits and routes, and the list of its connections. serving.c accepts them. */
#include "internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Making one ---- */

static void print_line(void *argument, const char *line) {
    (void)argument;
    fprintf(stderr, "haft-http: %s\n", line);
}

haft_http_server_t *haft_http_server_new(void) {
    haft_http_server_t *server = calloc(1, sizeof *server);
    if (server == NULL)
        return NULL;
    server->log = print_line;
    pthread_mutex_init(&server->mutex, NULL);
    haft_http_server_set_limits(server, &(haft_http_limits_t){0});
    return server;
}

static void free_routes(haft_http_server_t *server) {
    while (server->owned != NULL) {
        hafti_http_owned_t *owned = server->owned;
        server->owned = owned->next;
        owned->free(owned);
    }
    while (server->around != NULL) {
        hafti_http_around_t *around = server->around;
        server->around = around->inner;
        free(around);
    }
    while (server->groups != NULL) {
        haft_http_server_t *group = server->groups;
        server->groups = group->sibling;
        free_routes(group);
        free(group->prefix);
        free(group);
    }
}

void haft_http_server_free(haft_http_server_t *server) {
    if (server == NULL)
        return;
    if (atomic_load(&server->is_served))
        haft_misused(&(haft_error_t){.code = HAFT_ERROR_OF_LIBRARY,
                                     .message = "An HTTP server was freed while it is served: "
                                                "haft_http_server_serve has not returned."});
    hafti_http_routes_free(server->routes);
    free_routes(server);
    while (server->background != NULL) {
        hafti_http_background_t *background = server->background;
        server->background = background->next;
        free(background);
    }
    hafti_http_proxies_free(server->proxies);
    free(server->addresses);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

static void set_default_size(size_t *limit, size_t size) {
    if (*limit == 0)
        *limit = size;
}

static void set_default_time(int64_t *limit, int64_t seconds) {
    if (*limit == 0)
        *limit = seconds * HAFT_IO_SECOND;
}

static int check_limits(const haft_http_limits_t *limits) {
    const struct {
        const char *name;
        size_t given, most;
    } sizes[] = {
        {"head", limits->head, HAFTI_HTTP_HEAD},
        {"request_line", limits->request_line, limits->head != 0 ? limits->head : HAFTI_HTTP_HEAD},
        {"fields", limits->fields, HAFTI_HTTP_FIELDS},
        {"streams", limits->streams, INT32_MAX}};
    const struct {
        const char *name;
        int64_t given;
    } times[] = {{"idle_time", limits->idle_time},     {"head_time", limits->head_time},
                 {"body_time", limits->body_time},     {"write_time", limits->write_time},
                 {"events_time", limits->events_time}, {"grace", limits->grace}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].given > sizes[i].most)
            return haft_io_refuse(-EINVAL, "haft_http_server_set_limits",
                                  "the limit %s is %zu: write at most %zu, or 0 for the default",
                                  sizes[i].name, sizes[i].given, sizes[i].most);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i].given < 0)
            return haft_io_refuse(
                -EINVAL, "haft_http_server_set_limits",
                "the limit %s is %lld ns: write a time, HAFT_IO_FOREVER, or 0 for "
                "the default",
                times[i].name, (long long)times[i].given);
    return 0;
}

int haft_http_server_set_limits(haft_http_server_t *server, const haft_http_limits_t *limits) {
    static const haft_http_limits_t defaults = {0};
    if (limits == NULL)
        limits = &defaults;
    int code = check_limits(limits);
    if (code != 0)
        return code;
    haft_http_limits_t *set = &server->limits;
    *set = *limits;
    set_default_size(&set->head, HAFTI_HTTP_HEAD);
    set_default_size(&set->request_line, set->head < 8192 ? set->head : 8192);
    set_default_size(&set->fields, HAFTI_HTTP_FIELDS);
    set_default_size(&set->connections, 10000);
    server->limits_loopback = limits->connections_of_client != 0;
    set_default_size(&set->connections_of_client, 1000);
    set_default_size(&set->streams, 100);
    if (set->body == 0)
        set->body = 1024 * 1024;
    if (set->least_rate == 0)
        set->least_rate = 1024;
    set_default_time(&set->idle_time, 75);
    set_default_time(&set->head_time, 10);
    set_default_time(&set->body_time, 10);
    set_default_time(&set->write_time, 30);
    set_default_time(&set->grace, 10);
    set_default_time(&set->events_time, 15);
    return 0;
}

void haft_http_server_on_error(haft_http_server_t *server, haft_http_error_handler_t *handler,
                               void *argument) {
    server->on_error = handler;
    server->on_error_argument = argument;
}

void haft_http_server_on_listening(haft_http_server_t *server, haft_http_listening_t *function,
                                   void *argument) {
    server->on_listening = function;
    server->on_listening_argument = argument;
}

int haft_http_server_add_background(haft_http_server_t *server, const char *name,
                                    void *(*function)(void *argument), void *argument) {
    hafti_http_background_t **at = &server->background;
    if (server->parent != NULL)
        return haft_io_refuse(-EINVAL, __func__,
                              "a group has no background tasks: add '%s' to the server itself",
                              name != NULL ? name : "");
    if (function == NULL)
        return haft_io_refuse(-EINVAL, __func__,
                              "the function of '%s' is NULL: write the one that the task calls",
                              name != NULL ? name : "");
    hafti_http_background_t *added = malloc(sizeof *added);
    if (added == NULL)
        return -ENOMEM;
    while (*at != NULL) /* they begin in their order */
        at = &(*at)->next;
    *added = (hafti_http_background_t){NULL, name, function, argument};
    *at = added;
    return 0;
}

void haft_http_server_set_log(haft_http_server_t *server, haft_http_log_t *log, void *argument) {
    server->log = log;
    server->log_argument = argument;
}

/* (Where the server has no log of its own, the default error handler prints the words.) */
int hafti_http_refuse(haft_http_server_t *server, int number, const char *function,
                      const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(server->mistake, sizeof server->mistake, format, arguments);
    va_end(arguments);
    if (server->log != print_line)
        hafti_http_log(server, "%s", server->mistake);
    return haft_io_refuse(number, function, "%s", server->mistake);
}

const char *haft_http_server_mistake(const haft_http_server_t *server) {
    return hafti_http_root_of(server)->mistake;
}

/* ---- Routes ---- */

static char *joined(const char *prefix, const char *path) {
    char *text = NULL;
    return asprintf(&text, "%s%s", prefix != NULL ? prefix : "", path) >= 0 ? text : NULL;
}

int haft_http_server_route(haft_http_server_t *server, const char *method, const char *path,
                           haft_http_handler_t *handler, void *argument) {
    hafti_http_text_t name = {method, method != NULL ? strlen(method) : 0};
    hafti_http_entry_t entry = {.method = hafti_http_method_of(name),
                                .handler = handler,
                                .argument = argument,
                                .owner = server};
    haft_http_server_t *root = hafti_http_root_of(server);
    const char *mistake = path == NULL ? "the path is NULL" : NULL;
    if (mistake == NULL && *path != '/' && !(*path == '\0' && server->parent != NULL))
        mistake = "a path begins with '/'";
    int code = mistake != NULL ? -EINVAL : 0;
    char *whole = code == 0 ? joined(server->prefix, path) : NULL;
    if (code == 0)
        code =
            whole != NULL ? hafti_http_routes_add(&root->routes, whole, &entry, &mistake) : -ENOMEM;
    free(whole);
    if (mistake != NULL)
        hafti_http_refuse(
            root, code, __func__, "no route %s %s%s: %s", method != NULL ? method : "NULL",
            server->prefix != NULL ? server->prefix : "", path != NULL ? path : "", mistake);
    return code;
}

int haft_http_server_any(haft_http_server_t *server, const char *path, haft_http_handler_t *handler,
                         void *argument) {
    for (int method = HTTP_DELETE; method < HTTP_SOURCE; method++) {
        const char *name = llhttp_method_name((llhttp_method_t)method);
        bool is_asked = hafti_http_method_of((hafti_http_text_t){name, strlen(name)}) == method &&
                        method != HTTP_CONNECT;
        int code = is_asked ? haft_http_server_route(server, name, path, handler, argument) : 0;
        if (code != 0)
            return code;
    }
    return 0;
}

int haft_http_server_on_connect(haft_http_server_t *server, haft_http_handler_t *handler,
                                void *argument) {
    if (handler == NULL)
        return haft_io_refuse(-EINVAL, __func__,
                              "the handler is NULL: write the function that answers CONNECT");
    if (server->connect.handler != NULL)
        return haft_io_refuse(-EEXIST, __func__,
                              "CONNECT has a handler already: let that one look at the target");
    server->connect = (hafti_http_entry_t){
        .method = HTTP_CONNECT, .handler = handler, .argument = argument, .owner = server};
    return 0;
}

static int add_around(haft_http_server_t *server, const hafti_http_around_t *added) {
    hafti_http_around_t *around = malloc(sizeof *around);
    if (around == NULL)
        return -ENOMEM;
    *around = *added;
    around->inner = server->around;
    server->around = around;
    return 0;
}

int haft_http_server_use(haft_http_server_t *server, haft_http_around_t *function, void *argument) {
    if (function == NULL)
        return haft_io_refuse(-EINVAL, __func__,
                              "the middleware is NULL: write a function that calls next->call, or "
                              "answers itself");
    return add_around(server, &(hafti_http_around_t){.function = function, .argument = argument});
}

int haft_http_server_handle(haft_http_server_t *server, const haft_handler_t *handler,
                            void *argument) {
    if (handler == NULL)
        return haft_io_refuse(-EINVAL, __func__,
                              "the handler is NULL: write one that HAFT_HANDLER has declared");
    for (uint32_t i = 0; i < handler->handles.count; i++)
        if (handler->handles.clauses[i].kind != HAFT_CLAUSE_TAIL)
            return haft_io_refuse(-EINVAL, __func__,
                                  "the clause of the effect '%s' takes its resumption, or leaves: "
                                  "write one that returns the result, HAFT_TAIL",
                                  handler->handles.clauses[i].effect->name);
    if (handler->on_return != NULL)
        return haft_io_refuse(-EINVAL, __func__,
                              "the handler has a clause for the return: leave it out, because the "
                              "answer is what the request's handler returns");
    return add_around(server, &(hafti_http_around_t){.handler = handler, .argument = argument});
}

haft_http_server_t *haft_http_server_group(haft_http_server_t *server, const char *prefix) {
    haft_http_server_t *group = calloc(1, sizeof *group);
    char *whole = prefix != NULL ? joined(server->prefix, prefix) : NULL;
    if (group == NULL || whole == NULL) {
        free(group);
        free(whole);
        return NULL;
    }
    *group = (haft_http_server_t){.parent = server, .sibling = server->groups, .prefix = whole};
    server->groups = group;
    return group;
}

/* ---- The connections ---- */

void hafti_http_server_enter(haft_http_server_t *server, hafti_http_link_t *link) {
    pthread_mutex_lock(&server->mutex);
    link->next = server->connections;
    link->back = &server->connections;
    if (link->next != NULL)
        link->next->back = &link->next;
    server->connections = link;
    pthread_mutex_unlock(&server->mutex);
}

void hafti_http_server_leave(haft_http_server_t *server, hafti_http_link_t *link) {
    pthread_mutex_lock(&server->mutex);
    *link->back = link->next;
    if (link->next != NULL)
        link->next->back = link->back;
    pthread_mutex_unlock(&server->mutex);
}

void hafti_http_server_on_stop(haft_http_server_t *server, hafti_http_link_t *link,
                               void (*stop)(void *argument), void *argument) {
    pthread_mutex_lock(&server->mutex);
    link->stop = stop;
    link->argument = argument;
    if (stop != NULL && atomic_load(&server->stopping))
        stop(argument);
    pthread_mutex_unlock(&server->mutex);
}

void hafti_http_leave_place(const hafti_http_accepted_t *accepted) {
    haft_http_server_t *server = accepted->server;
    hafti_http_addresses_leave(server, accepted->address);
    if (atomic_fetch_sub(&server->open, 1) == 1)
        haft_io_event_set(&server->ended);
    haft_io_semaphore_release(&server->places);
}

int haft_http_server_expect_proxy_header(haft_http_server_t *server, int listener) {
    if (server->announced_count == HAFTI_HTTP_LISTENERS)
        return -E2BIG;
    server->announced[server->announced_count++] = listener;
    return 0;
}

/* ---- Its end, and its port ---- */

void haft_http_server_stop(haft_http_server_t *server) {
    atomic_store(&server->is_told, true);
    if (atomic_load(&server->unready_time) == 0)
        haft_io_event_set(&server->stop);
    haft_io_event_set(&server->told); /* last: from then on the server may end, and serve again */
}

bool haft_http_server_is_stopping(const haft_http_server_t *server) {
    return atomic_load(&hafti_http_root_of(server)->is_told);
}

uint16_t haft_http_server_port(const haft_http_server_t *server) {
    return (uint16_t)atomic_load(&server->port);
}

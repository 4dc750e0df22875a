/* SPDX-License-Identifier: MIT */
/*
 * Tasks of handlers. The tasks of a request are in a scope of its own, which is opened when the
 * first is spawned and closed when the handler has returned; a request without tasks has none.
 * Tasks that outlive it are in the scope of the server (serving.c).
 */
#include "internal.h"

#include <stdlib.h>

struct hafti_http_tasks {
    haft_io_on_failure_t on_failure; /* must be first: the library passes its address */
    haft_io_scope_t *scope;
    const haft_http_server_t *server;
    atomic_bool have_failed;
};

/* The scope goes on by itself when a task fails, so the text can be logged where the task has
   failed. */
static void note_failure(haft_io_on_failure_t *self, const haft_io_failure_t *failure) {
    hafti_http_tasks_t *tasks = (hafti_http_tasks_t *)self;
    if (!atomic_exchange(&tasks->have_failed, true))
        hafti_http_log_failure(tasks->server, "a task of a request", failure);
    haft_io_scope_cancel(tasks->scope);
}

/* The scope is closed by the task that opens it, which has to be the handler's. */
haft_io_scope_t *haft_http_request_scope(haft_http_request_t *request) {
    if (request->tasks != NULL)
        return request->tasks->scope;
    if (haft_io_own_get() != request->served)
        return NULL;
    hafti_http_tasks_t *tasks = calloc(1, sizeof *tasks);
    if (tasks == NULL)
        return NULL;
    tasks->on_failure.failed = note_failure;
    tasks->server = request->server;
    tasks->scope = haft_io_scope_open(
        &(haft_io_scope_options_t){.name = "HTTP request", .on_failure = &tasks->on_failure},
        request->served->scope);
    if (tasks->scope == NULL) {
        free(tasks);
        return NULL;
    }
    request->tasks = tasks;
    return tasks->scope;
}

bool hafti_http_scope_of_spawns(haft_io_scope_t **scope) {
    const hafti_http_served_t *served = haft_io_own_get();
    if (served == NULL || served->request == NULL)
        return true;
    *scope = haft_http_request_scope(served->request);
    return *scope != NULL;
}

int hafti_http_tasks_end(haft_http_request_t *request, int code) {
    hafti_http_tasks_t *tasks = request->tasks;
    if (tasks == NULL)
        return code;
    request->tasks = NULL;
    haft_io_scope_close_until(tasks->scope, code == 0 ? HAFT_IO_FOREVER : 0);
    bool have_failed = atomic_load(&tasks->have_failed);
    free(tasks);
    if (!have_failed || code != 0)
        return code;
    haft_http_request_note_failure(request, "a task of the request has failed");
    return HAFT_IO_BY_EXCEPTION;
}

haft_io_scope_t *haft_http_server_scope(const haft_http_server_t *server) {
    return hafti_http_root_of(server)->scope;
}

haft_http_server_t *haft_http_request_server(const haft_http_request_t *request) {
    return request->server;
}

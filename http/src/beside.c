/* SPDX-License-Identifier: MIT */
/*
 * Pages for the operator on a thread of their own (haft_http_run_options_t.debug_listen): a server
 * in a run of one thread, which looks into the run of the service. So they are answered while a
 * task of the service holds its thread. The task that has begun them ends them before its run does.
 */
#include "beside.h"
#include "exposition.h"

#include <fcntl.h>
#include <signal.h>

static void *serve_pages(void *argument) {
    hafti_http_beside_t *beside = argument;
    size_t count = beside->listeners.count;
    beside->listeners.count = 0; /* they are the server's */
    haft_http_server_serve_all(beside->pages, beside->listeners.descriptors, count);
    return NULL;
}

static void *run_pages(void *beside) {
    haft_io_run(serve_pages, beside);
    return NULL;
}

/* The signals are for the threads of the program. */
static int start_thread(hafti_http_beside_t *beside) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = pthread_create(&beside->thread, NULL, run_pages, beside);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -code;
}

static haft_http_server_t *pages_of(haft_io_scope_t *run) {
    static const haft_http_limits_t limits = {.connections = 64, .grace = 50 * HAFT_IO_MILLISECOND};
    haft_http_server_t *pages = haft_http_server_new();
    if (pages == NULL)
        return NULL;
    haft_http_server_set_limits(pages, &limits);
    haft_http_server_t *group = haft_http_server_group(pages, "/debug");
    if (group != NULL && hafti_http_serve_run_pages(group, run) == 0)
        return pages;
    haft_http_server_free(pages);
    return NULL;
}

static void forget(hafti_http_beside_t *beside) {
    hafti_http_forget_listeners(&beside->listeners);
    haft_http_server_free(beside->pages);
    beside->pages = NULL;
}

/* Checks that the run may be looked into before anything is served. */
static int check(haft_http_server_t *server, haft_io_scope_t *run) {
    HAFT_IO_SCOPED_DESCRIPTOR int nowhere = haft_io_open("/dev/null", O_WRONLY | O_CLOEXEC, 0);
    int code = nowhere >= 0 ? haft_io_dump_run(run, NULL, nowhere) : nowhere;
    return code == -ENOTSUP
               ? hafti_http_refuse(server, -EINVAL, "haft_http_server_serve_with",
                                   "cannot serve: debug_listen needs a run that is observed: set "
                                   "haft_io_run_options_t.observed, or run several threads")
               : code;
}

int hafti_http_beside_begin(hafti_http_beside_t *beside, haft_http_server_t *server,
                            const char *place) {
    if (place == NULL || hafti_http_is_simulated())
        return 0;
    haft_io_scope_t *run = haft_io_run_scope();
    int code = check(server, run);
    if (code != 0)
        return code;
    beside->pages = pages_of(run);
    if (beside->pages == NULL)
        return -ENOMEM;
    code = hafti_http_listen(beside->pages, &(haft_http_run_options_t){.listen = place},
                             &beside->listeners);
    code = code == 0 ? start_thread(beside) : code;
    if (code == 0)
        return 0;
    forget(beside);
    return code == -EINVAL
               ? hafti_http_refuse(server, code, "haft_http_server_run",
                                   "cannot serve: debug_listen names no place: '%s': write one as "
                                   "in listen, such as 127.0.0.1:9090",
                                   place)
               : 0; /* the service goes on without them; the log has a line */
}

void hafti_http_beside_end(hafti_http_beside_t *beside) {
    if (beside->pages == NULL)
        return;
    haft_http_server_stop(beside->pages);
    pthread_join(beside->thread, NULL);
    forget(beside);
}

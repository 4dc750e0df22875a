/* SPDX-License-Identifier: MIT */
/*
 * Serving: accepts connections, each of which is a task, and ends. A stop cancels the scope in
 * which the server accepts. Then connections that are idle are shut, those that have had no request
 * yet a moment later, and the others end after their request. Connections that have not ended when
 * the time of grace is over are cancelled with the scope in which they run.
 */
#include "internal.h"

#include <poll.h>
#include <pthread.h>

/* Shuts idle connections. One that becomes idle later finds that the server stops. */
static void shut_idle_connections(haft_http_server_t *server, bool fresh_ones) {
    pthread_mutex_lock(&server->mutex);
    for (hafti_http_link_t *link = server->connections; link != NULL; link = link->next) {
        bool is_fresh = atomic_load(&link->is_fresh); /* which ends after it is idle */
        if (link->stop != NULL && !fresh_ones)
            link->stop(link->argument);
        else if (link->stop == NULL && (fresh_ones || !is_fresh) &&
                 atomic_exchange(&link->idle, false))
            link->stream->operations->shutdown(link->stream, SHUT_RD);
    }
    pthread_mutex_unlock(&server->mutex);
}

typedef struct {
    haft_io_on_failure_t on_failure; /* must be first: log_failure casts its address */
    haft_http_server_t *server;
    const int *listeners;
    size_t count; /* 0: they have been closed */
    haft_io_scope_t *connections, *background;
    int64_t deadline;  /* of the time of grace */
    bool has_notified; /* the service manager knows that the server stops */
    int code;
} serving_t;

/* Scopes of tasks that no connection owns. */
typedef struct {
    haft_io_on_failure_t on_failure; /* must be first: log_task casts its address */
    haft_http_server_t *server;
} of_tasks_t;

/* Accepts from one listener. */
typedef struct {
    serving_t *serving;
    size_t number;
} accepting_t;

/* A peer that is not trusted to announce its client is not served there, and takes no place. */
static bool may_enter(hafti_http_accepted_t *accepted) {
    haft_http_server_t *server = accepted->server;
    return (!accepted->is_announced ||
            hafti_http_is_from_proxy(server->proxies, accepted->descriptor)) &&
           hafti_http_addresses_enter(server, accepted->descriptor, &accepted->address);
}

/* The place of a connection that has come is left when it ends, or here. */
static void take(const serving_t *serving, int descriptor, bool is_announced) {
    haft_http_server_t *server = serving->server;
    hafti_http_accepted_t accepted = {server, NULL, descriptor, is_announced};
    atomic_fetch_add(&server->open, 1);
    if (server->counts && descriptor >= 0)
        atomic_fetch_add_explicit(&server->counters.accepted, 1, memory_order_relaxed);
    if (descriptor >= 0 && may_enter(&accepted) &&
        hafti_http_connection_spawn(&accepted, serving->connections) == 0)
        return;
    if (descriptor >= 0)
        haft_io_close(descriptor);
    hafti_http_leave_place(&accepted);
}

static void notify_stopping(serving_t *serving) {
    bool is_handed_over = atomic_load(&serving->server->is_handed_over);
    if (!serving->has_notified && !is_handed_over) /* that would end the service */
        hafti_http_notify(serving->server, "STOPPING=1");
    serving->has_notified = true;
}

/* Waits until the server has been told to stop, and balancers have had the time to see that it is
   not ready. A server that has been handed over has a successor, which is. */
static void *cancel_when_stopped(void *argument) {
    serving_t *serving = argument;
    haft_http_server_t *server = serving->server;
    haft_io_event_wait(&server->told);
    notify_stopping(serving);
    int64_t unready_time = atomic_load(&server->unready_time);
    if (unready_time != 0 && !atomic_load(&server->is_handed_over))
        haft_io_event_wait_until(&server->stop, hafti_http_deadline(haft_io_now(), unready_time));
    haft_io_event_set(&server->stop);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}

/* An error that belongs to one connection, which has gone before it was accepted, is not the
   listener's: accept(2). */
static bool is_of_connection(int code) {
    return code == -ECONNABORTED || code == -ENETDOWN || code == -EPROTO || code == -EHOSTDOWN ||
           code == -EHOSTUNREACH || code == -ENETUNREACH || code == -EPERM;
}

static bool is_of_proxies(const haft_http_server_t *server, int listener) {
    for (size_t i = 0; i < server->announced_count; i++)
        if (server->announced[i] == listener)
            return true;
    return false;
}

/* Accepts until the scope is cancelled, or the listener fails; then the others end, too. */
static void *accept_connections(void *argument) {
    const accepting_t *accepting = argument;
    serving_t *serving = accepting->serving;
    haft_http_server_t *server = serving->server;
    bool is_announced = is_of_proxies(server, serving->listeners[accepting->number]);
    for (;;) {
        haft_io_semaphore_acquire(&server->places);
        int descriptor = haft_io_accept(serving->listeners[accepting->number]);
        if (descriptor < 0 && !is_of_connection(descriptor)) {
            serving->code = descriptor == -ECANCELED ? 0 : descriptor; /* told to stop */
            break;
        }
        take(serving, descriptor, is_announced);
    }
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}

static void *call_on_listening(void *argument) {
    serving_t *serving = argument;
    haft_http_server_t *server = serving->server;
    serving->code = server->on_listening(server, server->on_listening_argument);
    return NULL;
}

/* Calls the program's function in a scope of its own, so that the server is ready when the tasks
   that the function has started have ended. */
static int begin(serving_t *serving) {
    haft_http_server_t *server = serving->server;
    if (server->on_listening != NULL) {
        int code = haft_io_scope_with(&(haft_io_scope_options_t){.name = "HTTP listening"},
                                      call_on_listening, serving, NULL);
        if (code != 0 || serving->code != 0)
            return serving->code != 0 ? serving->code : code;
    }
    for (const hafti_http_background_t *task = server->background; task != NULL;
         task = task->next) {
        haft_io_task_options_t how = {.scope = serving->background, .name = task->name};
        int code = haft_io_spawn_with(&how, task->function, task->argument);
        if (code != 0)
            return code;
    }
    haft_io_task_options_t how = {.scope = serving->background, .name = "HTTP watchdog"};
    int code = server->notifies ? haft_io_spawn_with(&how, hafti_http_notify_watchdog, server) : 0;
    if (code != 0)
        return code;
    hafti_http_notify(server, "READY=1");
    if (server->listening != NULL && !hafti_http_is_simulated())
        hafti_http_tell_ready();
    return 0;
}

static void *accept_from_all(void *argument) {
    accepting_t *first = argument;
    serving_t *serving = first->serving;
    int code = haft_io_spawn(cancel_when_stopped, serving);
    code = code == 0 ? begin(serving) : code;
    for (size_t i = 1; i < serving->count && code == 0; i++) {
        first[i] = (accepting_t){serving, i};
        code = haft_io_spawn(accept_connections, &first[i]);
    }
    if (code == 0)
        return accept_connections(first);
    serving->code = code == -ECANCELED ? 0 : code; /* told to stop */
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}

static void close_listeners(serving_t *serving) {
    while (serving->count != 0)
        haft_io_close(serving->listeners[--serving->count]);
}

/* Whether a connection waits. From then on the kernel accepts none by itself. */
static bool has_come(int listener) {
    struct pollfd entry = {listener, POLLIN, 0};
    return haft_io_poll(&entry, 1, 0) > 0;
}

/* Accepts without a wait, because another process may have taken the connection. It fails, too,
   where the task's turn is over. */
static int accept_at_once(int listener) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now());
    return haft_io_accept(listener);
}

/* Connections that the kernel has accepted and no task has taken yet: closed with the listener,
   their clients would get no answer. */
static void take_accepted(const serving_t *serving) {
    enum { MOST_IN_VAIN = 64 };
    haft_http_server_t *server = serving->server;
    for (size_t i = 0; i < serving->count; i++) {
        int listener = serving->listeners[i];
        bool is_announced = is_of_proxies(server, listener);
        for (int in_vain = 0; in_vain < MOST_IN_VAIN && has_come(listener) &&
                              haft_io_semaphore_try_acquire(&server->places);) {
            int descriptor = accept_at_once(listener);
            take(serving, descriptor, is_announced);
            in_vain = descriptor < 0 ? in_vain + 1 : 0;
        }
    }
}

static void accept_until_stopped(serving_t *serving) {
    accepting_t accepting[serving->count];
    accepting[0] = (accepting_t){serving, 0};
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "HTTP listeners"}, accept_from_all,
                       accepting, NULL);
    take_accepted(serving);
    close_listeners(serving);
}

/* Whether all connections have ended in time. */
static bool have_ended(haft_http_server_t *server, int64_t deadline) {
    while (atomic_load(&server->open) != 0) {
        haft_io_event_clear(&server->ended);
        if (atomic_load(&server->open) != 0 &&
            haft_io_event_wait_until(&server->ended, deadline) == -ETIMEDOUT)
            return false;
    }
    return true;
}

static void *serve_until_stopped(void *argument) {
    serving_t *serving = argument;
    haft_http_server_t *server = serving->server;
    serving->connections = haft_io_this_scope();
    accept_until_stopped(serving);
    atomic_store(&server->stopping, true);
    atomic_store(&server->is_told, true);
    haft_io_event_set(&server->stop); /* also where it has not been told to stop */
    notify_stopping(serving);
    int64_t deadline = hafti_http_deadline(haft_io_now(), server->limits.grace),
            fresh = hafti_http_fresh_until();
    serving->deadline = deadline;
    shut_idle_connections(server, false);
    if (!have_ended(server, fresh < deadline ? fresh : deadline))
        shut_idle_connections(server, true);
    if (!have_ended(server, deadline)) {
        atomic_store(&server->cutting, true);
        haft_io_scope_cancel(serving->connections);
        serving->code = -ETIMEDOUT;
    }
    return NULL;
}

static void log_failure(haft_io_on_failure_t *self, const haft_io_failure_t *failure) {
    hafti_http_log_failure(((const serving_t *)self)->server, "a handler", failure);
}

static void log_task(haft_io_on_failure_t *self, const haft_io_failure_t *failure) {
    hafti_http_log_failure(((const of_tasks_t *)self)->server, "a task of the server", failure);
}

/* Cancels tasks of a server that was not served to its end, which its scope shows. */
static void cut_tasks(of_tasks_t *tasks) {
    haft_io_scope_close_until(tasks->server->scope, 0);
    tasks->server->scope = NULL;
}

/* Cancels the background tasks, which have no end of their own. */
static void cut_background(serving_t *const *serving) {
    haft_io_scope_close_until((*serving)->background, 0);
    (*serving)->background = NULL;
}

/* Whether the tasks that outlive requests have ended in time. */
static bool have_tasks_ended(haft_http_server_t *server, int64_t deadline) {
    haft_io_scope_t *scope = server->scope;
    int code = haft_io_scope_close_until(scope, deadline);
    server->scope = NULL;
    return code != -ETIMEDOUT;
}

/* All that are served, for debuggers. */
static haft_http_server_t *served;
static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;

static void list_served(haft_http_server_t *server) {
    pthread_mutex_lock(&served_lock);
    server->next_served = served;
    served = server;
    pthread_mutex_unlock(&served_lock);
}

static void unlist_served(const haft_http_server_t *server) {
    pthread_mutex_lock(&served_lock);
    haft_http_server_t **place = &served;
    while (*place != NULL && *place != server)
        place = &(*place)->next_served;
    if (*place != NULL)
        *place = server->next_served;
    pthread_mutex_unlock(&served_lock);
}

/* Resets the server for the next time that it serves; also where this is cancelled. */
static void forget(haft_http_server_t *const *server) {
    unlist_served(*server);
    (*server)->announced_count = 0; /* their numbers may be other files' next time */
    atomic_store(&(*server)->port, 0);
    atomic_store(&(*server)->stopping, false);
    atomic_store(&(*server)->restarting, false);
    atomic_store(&(*server)->cutting, false);
    atomic_store(&(*server)->is_handed_over, false);
    atomic_store(&(*server)->is_told, false);
    (*server)->notifies = false;
    atomic_store(&(*server)->notify_code, 0);
    atomic_store(&(*server)->unready_time, 0);
    (*server)->listening = NULL;
    haft_io_event_clear(&(*server)->told);
    haft_io_event_clear(&(*server)->stop);
    atomic_store(&(*server)->is_served, false);
}

/* The first port that there is. */
static int port_of(const serving_t *serving) {
    int port = 0;
    for (size_t i = 0; i < serving->count && port <= 0; i++)
        port = haft_io_port(serving->listeners[i]);
    return port > 0 ? port : 0;
}

static haft_io_scope_t *open_scope(const char *name, of_tasks_t *tasks) {
    return haft_io_scope_open(
        &(haft_io_scope_options_t){.name = name, .on_failure = &tasks->on_failure}, NULL);
}

/* Refuses a context without a certificate, because every handshake would fail without a reason. */
static bool is_tls_ready(haft_http_server_t *server) {
    const char *mistake = server->tls != NULL ? hafti_http_secure_mistake(server->tls) : NULL;
    if (mistake != NULL)
        hafti_http_refuse(server, -EINVAL, "haft_http_server_serve", "%s", mistake);
    return mistake == NULL;
}

int haft_http_server_serve_all(haft_http_server_t *given, const int *listeners, size_t count) {
    return hafti_http_serve(given, listeners, count, NULL, NULL);
}

int hafti_http_serve(haft_http_server_t *given, const int *listeners, size_t count,
                     const haft_http_run_options_t *options, hafti_http_listeners_t *listening) {
    __attribute__((cleanup(close_listeners))) serving_t serving = {
        .on_failure = {log_failure}, .server = given, .listeners = listeners, .count = count};
    if (given->parent != NULL || count == 0)
        return haft_io_refuse(-EINVAL, "haft_http_server_serve", "%s",
                              count == 0
                                  ? "there is no listener: write one of haft_io_listen_tcp"
                                  : "a group is a part of a server: serve the server itself");
    if (!is_tls_ready(given))
        return -EINVAL;
    hafti_http_replay_if_asked(given);
    if (atomic_exchange(&given->is_served, true))
        return haft_io_refuse(-EBUSY, "haft_http_server_serve",
                              "another call serves the server: give all listeners to one "
                              "haft_http_server_serve_all, or make a second server");
    list_served(given);
    __attribute__((cleanup(forget))) haft_http_server_t *server = given;
    of_tasks_t tasks = {{log_task}, given};
    if (options != NULL) {
        server->notifies = options->notify;
        atomic_store(&server->unready_time, options->unready_time);
    }
    server->listening = listening;
    __attribute__((cleanup(cut_background))) serving_t *of_background = &serving;
    serving.background = open_scope("HTTP background", &tasks);
    __attribute__((cleanup(cut_tasks))) of_tasks_t of_server = tasks;
    server->scope = serving.background != NULL ? open_scope("HTTP tasks", &of_server) : NULL;
    if (server->scope == NULL)
        return -ENOMEM;
    haft_io_scope_options_t how = {.name = "HTTP server",
                                   .on_failure = &serving.on_failure,
                                   .scope_of_spawns = hafti_http_scope_of_spawns};
    atomic_store(&server->port, port_of(&serving));
    server->places = (haft_io_semaphore_t){.count = server->limits.connections};
    server->keeping = haft_io_keeps_requests() ? HAFTI_HTTP_KEEPS : HAFTI_HTTP_FORGETS;
    int code = haft_io_scope_with(&how, serve_until_stopped, &serving, NULL);
    if (code == 0 && !have_tasks_ended(server, serving.deadline) && serving.code == 0)
        serving.code = -ETIMEDOUT;
    cut_background(&of_background);
    return serving.code != 0 ? serving.code : code;
}

int haft_http_server_serve(haft_http_server_t *server, int listener) {
    return haft_http_server_serve_all(server, &listener, 1);
}

/* ---- For debuggers ---- */

static const haft_shown_t servers[] = {
    HAFT_SHOWN_ADDRESS("servers", served),
    HAFT_SHOWN_FIELD("server", haft_http_server_t, next_served),
    HAFT_SHOWN_FIELD("server", haft_http_server_t, port),
    HAFT_SHOWN_FIELD("server", haft_http_server_t, stopping),
    HAFT_SHOWN_FIELD("server", haft_http_server_t, connections),
    HAFT_SHOWN_FIELD("http_link", hafti_http_link_t, next),
    HAFT_SHOWN_FIELD("http_link", hafti_http_link_t, stream),
    HAFT_SHOWN_FIELD("http_link", hafti_http_link_t, idle),
    HAFT_SHOWN_FIELD("http_link", hafti_http_link_t, stop),
    HAFT_SHOWN_FIELD("http_link", hafti_http_link_t, argument),
    HAFT_SHOWN_FIELD("http_stream", hafti_http_stream_t, descriptor),
    HAFT_SHOWN_FIELD("http_stream", hafti_http_stream_t, tls),
    HAFT_SHOWN_FIELD("http_stream", hafti_http_stream_t, knows_peer),
    HAFT_SHOWN_FIELD("http_stream", hafti_http_stream_t, peer),
    HAFT_SHOWN_FIELD("served", hafti_http_served_t, request),
    HAFT_SHOWN_SIZE("request", haft_http_request_t),
    HAFT_SHOWN_FIELD("request", haft_http_request_t, method),
    HAFT_SHOWN_FIELD("request", haft_http_request_t, begun_at),
    HAFT_SHOWN_FIELD("request", haft_http_request_t, served),
    HAFT_SHOWN_FIELD("request", haft_http_request_t, answer.status),
    HAFT_SHOWN_FIELD("request", haft_http_request_t, message.block),
    HAFT_SHOWN_FIELD("request", haft_http_request_t, message.target),
    HAFT_SHOWN_FIELD("request", haft_http_request_t, message.target_size),
    HAFT_SHOWN_END};

HAFT_SHOWN_TABLE(hafti_http_shown, servers, hafti_http_shown_connections, hafti_http_shown_frames);

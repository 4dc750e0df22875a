/* SPDX-License-Identifier: MIT */
/* The services behind a reverse proxy: their turns, and which of them are out of use. */
#include "passing.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Making a proxy ---- */

static char *copy_of(const char *text) {
    return text != NULL ? strdup(text) : NULL;
}

static const char making[] = "haft_http_proxy_new_with";

static int check_upstream(const char *url) {
    hafti_http_url_t parsed;
    int code = url != NULL ? hafti_http_url_parse(url, &parsed) : -EINVAL;
    if (code == 0 && strpbrk(url, "?#") != NULL)
        code = -EINVAL; /* a request's path comes behind it */
    return code == 0 ? 0
                     : haft_io_refuse(code, making,
                                      "'%s' is no upstream: write http://host:port, or https://, "
                                      "without '?' and '#'",
                                      url != NULL ? url : "(NULL)");
}

static int read_upstream(hafti_http_upstream_t *upstream, const char *url) {
    upstream->url = strdup(url);
    if (upstream->url == NULL)
        return -ENOMEM;
    for (size_t size = strlen(url); upstream->url[size - 1] == '/'; size--)
        upstream->url[size - 1] = '\0';
    return 0;
}

static void set_time(int64_t *time, int64_t seconds) {
    if (*time == 0)
        *time = seconds * HAFT_IO_SECOND;
}

static void set_defaults(haft_http_proxy_t *proxy) {
    haft_http_proxy_options_t *options = &proxy->options;
    set_time(&options->out_of_use, 10);
    set_time(&options->connect_time, 5);
    set_time(&options->answer_time, 60);
    set_time(&options->health_pause, 5);
    set_time(&options->health_time, 2);
    options->attempts = options->attempts == 0                    ? 3
                        : options->attempts > HAFTI_HTTP_ATTEMPTS ? HAFTI_HTTP_ATTEMPTS
                                                                  : options->attempts;
    options->failures += options->failures == 0 ? 3 : 0;
    options->body = options->body != 0 ? options->body : UINT64_MAX;
    snprintf(proxy->made_up, sizeof proxy->made_up, "haft-%016llx",
             (unsigned long long)hafti_http_identifier());
    options->upstreams = NULL; /* the caller's */
}

static int check(const haft_http_proxy_options_t *options) {
    if (options == NULL || options->upstreams == NULL || options->upstream_count == 0)
        return haft_io_refuse(-EINVAL, making,
                              "there is no upstream: write URLs to .upstreams, and their number to "
                              ".upstream_count");
    if (options->name != NULL && !hafti_http_is_given_token(options->name))
        return haft_io_refuse(-EINVAL, making,
                              "'%s' is no name for the field Via: write letters, digits and '-'",
                              options->name);
    const int64_t times[] = {options->out_of_use, options->connect_time, options->answer_time,
                             options->health_pause, options->health_time};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < 0)
            return haft_io_refuse(-EINVAL, making,
                                  "a time is %lld ns: write a longer one, or 0 for the default",
                                  (long long)times[i]);
    if (options->health != NULL && *options->health != '/')
        return haft_io_refuse(-EINVAL, making,
                              "'%s' is no path to ask for: write one that begins with '/'",
                              options->health);
    int code = 0;
    for (size_t i = 0; i < options->upstream_count && code == 0; i++)
        code = check_upstream(options->upstreams[i]);
    return code;
}

static int copy_texts(haft_http_proxy_t *proxy, const haft_http_proxy_options_t *given) {
    haft_http_proxy_options_t *options = &proxy->options;
    options->strip = copy_of(given->strip);
    options->name = copy_of(given->name);
    options->health = copy_of(given->health);
    bool has_all = (options->strip != NULL || given->strip == NULL) &&
                   (options->name != NULL || given->name == NULL) &&
                   (options->health != NULL || given->health == NULL);
    return has_all ? 0 : -ENOMEM;
}

int haft_http_proxy_new_with(const haft_http_proxy_options_t *options, haft_http_proxy_t **result) {
    *result = NULL;
    int code = check(options);
    if (code != 0)
        return code;
    haft_http_proxy_t *proxy =
        calloc(1, sizeof *proxy + options->upstream_count * sizeof *proxy->upstreams);
    if (proxy == NULL)
        return -ENOMEM;
    proxy->options = *options;
    proxy->count = options->upstream_count;
    code = copy_texts(proxy, options);
    for (size_t i = 0; i < proxy->count && code == 0; i++)
        code = read_upstream(&proxy->upstreams[i], options->upstreams[i]);
    set_defaults(proxy);
    haft_http_client_options_t asks = {.kept = options->kept != 0 ? options->kept : 64,
                                       .kept_in_all = 64 * proxy->count,
                                       .redirects = -1,
                                       .tls = options->tls,
                                       .uncompressed = true,
                                       .proxy = "",
                                       .connections = options->connections};
    if (asks.kept > 64)
        asks.kept_in_all = asks.kept * proxy->count;
    if (code == 0 && (proxy->client = haft_http_client_new_with(&asks)) == NULL)
        code = -ENOMEM;
    if (code != 0) {
        haft_http_proxy_free(proxy);
        return code;
    }
    *result = proxy;
    return 0;
}

void haft_http_proxy_free(haft_http_proxy_t *proxy) {
    if (proxy == NULL)
        return;
    haft_http_client_free(proxy->client);
    for (size_t i = 0; i < proxy->count; i++)
        free(proxy->upstreams[i].url);
    free((char *)proxy->options.strip);
    free((char *)proxy->options.name);
    free((char *)proxy->options.health);
    free(proxy);
}

bool haft_http_proxy_upstream(const haft_http_proxy_t *proxy, size_t number,
                              haft_http_upstream_t *known) {
    if (number >= proxy->count)
        return false;
    const hafti_http_upstream_t *upstream = &proxy->upstreams[number];
    *known = (haft_http_upstream_t){
        .url = upstream->url,
        .is_used = !atomic_load(&upstream->is_unwell) &&
                   atomic_load(&upstream->out_until) <= haft_io_now(),
        .failures = atomic_load(&upstream->failures),
        .requests = atomic_load(&upstream->requests),
        .now = atomic_load(&upstream->now),
    };
    return true;
}

/* ---- Whose turn it is ---- */

static bool was_tried(const hafti_http_upstream_t *upstream, hafti_http_upstream_t *const *tried,
                      size_t count) {
    for (size_t i = 0; i < count; i++)
        if (tried[i] == upstream)
            return true;
    return false;
}

/* Failures alone do not leave a request without an upstream: where all are out of use, they may be
   back. An upstream whose health is bad is never chosen. */
hafti_http_upstream_t *hafti_http_upstream_choose(haft_http_proxy_t *proxy,
                                                  hafti_http_upstream_t *const *tried,
                                                  size_t count) {
    size_t first = atomic_fetch_add_explicit(&proxy->next, 1, memory_order_relaxed);
    hafti_http_upstream_t *out = NULL;
    int64_t now = haft_io_now();
    for (size_t i = 0; i < proxy->count; i++) {
        hafti_http_upstream_t *upstream = &proxy->upstreams[(first + i) % proxy->count];
        if (atomic_load_explicit(&upstream->is_unwell, memory_order_relaxed) ||
            was_tried(upstream, tried, count))
            continue;
        if (atomic_load_explicit(&upstream->out_until, memory_order_relaxed) <= now)
            return upstream;
        out = out != NULL ? out : upstream;
    }
    return out;
}

/* ---- Their states ---- */

void hafti_http_upstream_succeeded(const haft_http_server_t *server,
                                   hafti_http_upstream_t *upstream) {
    if (atomic_load_explicit(&upstream->failures, memory_order_relaxed) == 0)
        return;
    atomic_store(&upstream->failures, 0);
    if (atomic_exchange(&upstream->out_until, 0) != 0)
        hafti_http_log(server, "%s is in use again", upstream->url);
}

/* After its time it is tried again, and the next failure, which is one in the same row, puts it out
   of use at once. */
void hafti_http_upstream_failed(const haft_http_server_t *server, const haft_http_proxy_t *proxy,
                                hafti_http_upstream_t *upstream, const char *why) {
    unsigned failures = atomic_fetch_add(&upstream->failures, 1) + 1;
    if (failures < proxy->options.failures)
        return;
    int64_t until = hafti_http_deadline(haft_io_now(), proxy->options.out_of_use);
    if (atomic_exchange(&upstream->out_until, until) == 0)
        hafti_http_log(server, "%s is out of use: %s", upstream->url, why);
}

/* ---- Their health ---- */

typedef struct {
    haft_http_server_t *server;
    haft_http_proxy_t *proxy;
    haft_io_scope_t *scope;
} watch_t;

/* 0: it is well; or a status, or an error. */
static int health_of(const haft_http_proxy_t *proxy, const hafti_http_upstream_t *upstream) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    char url[strlen(upstream->url) + strlen(proxy->options.health) + 1];
    strcpy(stpcpy(url, upstream->url), proxy->options.health);
    haft_io_deadline_set(&limit, hafti_http_deadline(haft_io_now(), proxy->options.health_time));
    int code = haft_http_client_ask(proxy->client, &(haft_http_question_t){.url = url}, &reply);
    if (code != 0)
        return code;
    hafti_http_message_skip(&reply->message, HAFTI_HTTP_SKIPPED);
    int status = haft_http_reply_status(reply);
    return status / 100 == 2 ? 0 : status;
}

static void look_after(const watch_t *watch, hafti_http_upstream_t *upstream) {
    int health = health_of(watch->proxy, upstream);
    if (health == -ECANCELED || atomic_exchange(&upstream->is_unwell, health != 0) == (health != 0))
        return;
    if (health == 0)
        hafti_http_log(watch->server, "%s is well", upstream->url);
    else if (health < 0)
        hafti_http_log(watch->server, "%s is not well: %s", upstream->url,
                       haft_io_error_text(health));
    else
        hafti_http_log(watch->server, "%s is not well: status %d", upstream->url, health);
}

static void *watch_all(void *argument) {
    const watch_t *watch = argument;
    haft_http_proxy_t *proxy = watch->proxy;
    for (int code = 0; code == 0;) {
        for (size_t i = 0; i < proxy->count; i++)
            look_after(watch, &proxy->upstreams[i]);
        code = haft_io_sleep(proxy->options.health_pause);
    }
    return NULL;
}

static void *watch_until_stop(void *argument) {
    watch_t *watch = argument;
    watch->scope = haft_io_this_scope();
    haft_io_task_options_t options = {.scope = watch->scope, .name = "health of upstreams"};
    if (haft_io_spawn_with(&options, watch_all, watch) == 0)
        haft_io_event_wait(&watch->server->stop);
    haft_io_scope_cancel(watch->scope);
    return NULL;
}

static void stop_watching(haft_http_proxy_t *const *proxy) {
    atomic_store(&(*proxy)->is_watched, false);
}

/* A server that stops does not wait for it. */
static void *watch(void *argument) {
    watch_t watch = *(watch_t *)argument;
    __attribute__((cleanup(stop_watching), unused)) haft_http_proxy_t *watched = watch.proxy;
    free(argument);
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "upstreams"}, watch_until_stop, &watch,
                       NULL);
    return NULL;
}

void hafti_http_upstreams_watch(haft_http_server_t *server, haft_http_proxy_t *proxy) {
    if (proxy->options.health == NULL ||
        atomic_load_explicit(&proxy->is_watched, memory_order_relaxed) ||
        atomic_exchange(&proxy->is_watched, true))
        return;
    watch_t *argument = malloc(sizeof *argument);
    haft_io_task_options_t options = {.scope = haft_http_server_scope(server), .name = "upstreams"};
    if (argument != NULL)
        *argument = (watch_t){.server = server, .proxy = proxy};
    if (argument == NULL || options.scope == NULL ||
        haft_io_spawn_with(&options, watch, argument) != 0) {
        free(argument);
        atomic_store(&proxy->is_watched, false);
    }
}

/* SPDX-License-Identifier: MIT */
/* Pages for the operator: the counters, and the tasks of the run. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- Prometheus' text format ---- */

__attribute__((format(printf, 2, 3))) static void print(haft_http_request_t *request,
                                                        const char *format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    haft_http_answer_write(request, text, (size_t)size);
}

static void print_one(haft_http_request_t *request, const char *name, const char *type,
                      const char *help, uint64_t value) {
    print(request, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name,
          (unsigned long long)value);
}

static void print_requests(haft_http_request_t *request, const haft_http_counters_t *counters) {
    static const char name[] = "haft_http_requests_total";
    print(request, "# HELP %s Requests, by the class of their status.\n# TYPE %s counter\n", name,
          name);
    for (size_t i = 2; i < 6; i++)
        print(request, "%s{status=\"%zuxx\"} %llu\n", name, i,
              (unsigned long long)counters->requests[i]);
    print(request, "%s{status=\"none\"} %llu\n", name, (unsigned long long)counters->requests[0]);
}

/* A limit as C writes it, without the zeros at its end: "0.25". Locales write numbers otherwise. */
static void put_limit(double limit, char text[40]) {
    unsigned long long millionths = (unsigned long long)(limit * 1e6 + 0.5);
    int size = snprintf(text, 40, "%llu.%06llu", millionths / 1000000, millionths % 1000000);
    while (text[size - 1] == '0')
        text[--size] = '\0';
    if (text[size - 1] == '.')
        text[size - 1] = '\0';
}

static void print_durations(haft_http_request_t *request, const haft_http_counters_t *counters) {
    static const char name[] = "haft_http_request_duration_seconds";
    char limit[40];
    uint64_t sum = 0;
    print(request, "# HELP %s From the head of a request to its answer.\n# TYPE %s histogram\n",
          name, name);
    for (size_t i = 0; i < HAFT_HTTP_DURATIONS; i++) {
        sum += counters->durations[i];
        if (i + 1 == HAFT_HTTP_DURATIONS)
            break;
        put_limit(haft_http_duration_limits[i], limit);
        print(request, "%s_bucket{le=\"%s\"} %llu\n", name, limit, (unsigned long long)sum);
    }
    print(request, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %llu.%09llu\n%s_count %llu\n", name,
          (unsigned long long)sum, name, (unsigned long long)(counters->duration / HAFT_IO_SECOND),
          (unsigned long long)(counters->duration % HAFT_IO_SECOND), name, (unsigned long long)sum);
}

static void print_io(haft_http_request_t *request) {
    haft_io_counters_t io;
    if (haft_io_count(&io) != 0)
        return;
    print_one(request, "haft_io_tasks_total", "counter", "Tasks that have started.", io.tasks);
    print_one(request, "haft_io_steals_total", "counter",
              "Tasks that a thread took out of the queue of another.", io.steals);
    print_one(request, "haft_io_operations_total", "counter", "Operations on descriptors.",
              io.operations);
    print_one(request, "haft_io_polls_total", "counter", "Polls of the kernel.", io.polls);
    print_one(request, "haft_io_wakes_total", "counter", "Times that a thread woke another.",
              io.wakes);
}

static int show_counters(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_counters_t counters;
    haft_http_server_read_counters(request->server, &counters);
    int code = haft_http_answer_begin(request, 200, "text/plain; version=0.0.4; charset=utf-8",
                                      HAFT_HTTP_UNKNOWN_SIZE);
    if (code != 0)
        return code;
    print_one(request, "haft_http_connections", "gauge", "Open connections.", counters.connections);
    print_one(request, "haft_http_connections_accepted_total", "counter",
              "Connections that were accepted.", counters.connections_accepted);
    print_one(request, "haft_http_response_bytes_total", "counter",
              "Bytes of the bodies of answers.", counters.bytes);
    print_requests(request, &counters);
    print_one(request, "haft_http2_requests_total", "counter", "Requests over HTTP/2.",
              counters.http2_requests);
    print_durations(request, &counters);
    print_io(request);
    return 0;
}

int haft_http_server_serve_counters(haft_http_server_t *server, const char *path) {
    haft_http_server_count(server);
    return haft_http_server_get(server, path, show_counters, NULL);
}

/* ---- For balancers ---- */

static int show_readiness(haft_http_request_t *request, void *unused) {
    (void)unused;
    bool is_stopping = haft_http_server_is_stopping(request->server);
    int code = haft_http_answer_set_header(request, "Cache-Control", "no-store");
    return code != 0     ? code
           : is_stopping ? haft_http_answer_text(request, 503, "stopping\n")
                         : haft_http_answer_text(request, 200, "ready\n");
}

int haft_http_server_serve_readiness(haft_http_server_t *server, const char *path) {
    return haft_http_server_get(server, path, show_readiness, NULL);
}

/* ---- Pages ---- */

static int show_tasks(haft_http_request_t *request, void *unused) {
    (void)unused;
    HAFT_IO_SCOPED_DESCRIPTOR int text = memfd_create("tasks", MFD_CLOEXEC);
    if (text < 0)
        return -errno;
    int code = haft_io_dump_with(&(haft_io_dump_options_t){.backtraces = true}, text);
    if (code != 0)
        return code;
    off_t size = lseek(text, 0, SEEK_END);
    haft_http_answer_do_not_compress(request); /* its bytes are a file's */
    code = haft_http_answer_set_header(request, "Cache-Control", "no-store");
    code = code == 0
               ? haft_http_answer_begin(request, 200, "text/plain; charset=utf-8", (uint64_t)size)
               : code;
    return code == 0 ? hafti_http_write_file(request, text, 0, (uint64_t)size) : code;
}

static int show_list(haft_http_request_t *request, void *unused) {
    static const char page[] =
        "<!doctype html><title>Haft</title><ul>"
        "<li><a href=tasks>tasks</a><li><a href=counters>counters</a></ul>\n";
    (void)unused;
    return haft_http_answer(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

int haft_http_server_serve_debug_pages(haft_http_server_t *server, const char *prefix) {
    haft_http_server_t *group = haft_http_server_group(server, prefix);
    if (group == NULL)
        return -ENOMEM;
    int code = haft_http_server_get(group, "/", show_list, NULL);
    code = code == 0 ? haft_http_server_get(group, "/tasks", show_tasks, NULL) : code;
    return code == 0 ? haft_http_server_serve_counters(group, "/counters") : code;
}

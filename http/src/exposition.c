/* SPDX-License-Identifier: MIT */
/*
 * The page of counters, as Prometheus and its kin read it: in its text format 0.0.4, or, where the
 * client wants that more, as OpenMetrics 1.0. They differ in the name of a counter's family, in how
 * limits are written, and in the end.
 */
#include "exposition.h"
#include "metrics.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    hafti_http_text_page_t text;
    bool is_open;    /* OpenMetrics */
    locale_t locale; /* "C", in which numbers have a point */
} page_t;

/* ---- Words and numbers ---- */

static void put(const page_t *page, const char *text) {
    fputs(text, page->text.file);
}

#define print(page, ...) fprintf((page)->text.file, __VA_ARGS__)

/* Writes a label, or a help text, in which a quote stays as it is. */
static void put_escaped(const page_t *page, const char *text, bool with_quotes) {
    for (size_t size; *text != '\0'; text += size + (text[size] != '\0')) {
        size = strcspn(text, with_quotes ? "\\\"\n" : "\\\n");
        fwrite(text, 1, size, page->text.file);
        if (text[size] != '\0')
            put(page, text[size] == '\n' ? "\\n" : text[size] == '"' ? "\\\"" : "\\\\");
    }
}

/* Writes the number with the fewest digits that distinguish it. Nothing waits here, so the locale
   is the thread's. */
__attribute__((noinline)) static void format_number(double number, locale_t locale, char into[40]) {
    locale_t before = uselocale(locale);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(into, 40, "%.*g", digits, number);
        if (strtod(into, NULL) == number)
            break;
    }
    uselocale(before);
}

static void put_number(const page_t *page, double number) {
    char text[40];
    if (isnan(number) || isinf(number)) {
        put(page, isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf");
        return;
    }
    format_number(number, page->locale, text);
    put(page, text);
    if (page->is_open && text[strcspn(text, ".e")] == '\0')
        put(page, ".0");
}

/* ---- Families ---- */

/* A counter's samples end in _total; so does its family in the older format. */
static void put_family(const page_t *page, const char *name, const char *type, const char *help) {
    bool is_counter = strcmp(type, "counter") == 0 && !page->is_open;
    print(page, "# HELP %s%s ", name, is_counter ? "_total" : "");
    put_escaped(page, help, page->is_open);
    print(page, "\n# TYPE %s%s %s\n", name, is_counter ? "_total" : "", type);
}

static void put_counter(const page_t *page, const char *name, const char *help, uint64_t value) {
    put_family(page, name, "counter", help);
    print(page, "%s_total %llu\n", name, (unsigned long long)value);
}

static void put_gauge(const page_t *page, const char *name, const char *help, uint64_t value) {
    put_family(page, name, "gauge", help);
    print(page, "%s %llu\n", name, (unsigned long long)value);
}

/* ---- The library's counters ---- */

/* The labels of a route, or, for NULL, of the server: none. */
static void put_route(const page_t *page, const hafti_http_entry_t *route, const char *divider) {
    if (route == NULL)
        return;
    const char *method_end = strchr(route->title, ' ');
    print(page, "method=\"%.*s\",route=\"", (int)(method_end - route->title), route->title);
    put_escaped(page, route->pattern, true);
    print(page, "\"%s", divider);
}

static uint64_t read_one(const _Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void put_requests(const page_t *page, const char *name, const hafti_http_counts_t *counts,
                         const hafti_http_entry_t *route) {
    static const char *const classes[] = {"none", NULL, "2xx", "3xx", "4xx", "5xx"};
    for (size_t i = 0; i < 6; i++) {
        uint64_t count = read_one(&counts->requests[i]);
        if (classes[i] == NULL || (route != NULL && count == 0))
            continue;
        print(page, "%s_total{", name);
        put_route(page, route, ",");
        print(page, "status=\"%s\"} %llu\n", classes[i], (unsigned long long)count);
    }
}

static void put_labels_of(const page_t *page, const hafti_http_entry_t *route) {
    if (route == NULL)
        return;
    put(page, "{");
    put_route(page, route, "}");
}

static void put_durations(const page_t *page, const char *name, const hafti_http_counts_t *counts,
                          const hafti_http_entry_t *route) {
    uint64_t sum = 0, duration = read_one(&counts->duration);
    for (size_t i = 0; i < HAFT_HTTP_DURATIONS; i++) {
        bool is_last = i + 1 == HAFT_HTTP_DURATIONS;
        sum += read_one(&counts->durations[i]);
        print(page, "%s_bucket{", name);
        put_route(page, route, ",");
        put(page, "le=\"");
        put_number(page, is_last ? (double)INFINITY : haft_http_duration_limits[i]);
        print(page, "\"} %llu\n", (unsigned long long)sum);
    }
    print(page, "%s_sum", name);
    put_labels_of(page, route);
    print(page, " %llu.%09llu\n%s_count", (unsigned long long)(duration / HAFT_IO_SECOND),
          (unsigned long long)(duration % HAFT_IO_SECOND), name);
    put_labels_of(page, route);
    print(page, " %llu\n", (unsigned long long)sum);
}

static const char of_routes[] = "haft_http_route_requests",
                  durations_of_routes[] = "haft_http_route_duration_seconds";

static bool was_asked(const hafti_http_entry_t *route) {
    uint64_t all = 0;
    for (size_t i = 0; i < 6; i++)
        all += read_one(&route->counts->requests[i]);
    return all != 0;
}

static void put_route_requests(const hafti_http_entry_t *route, void *page) {
    put_requests(page, of_routes, route->counts, route);
}

static void put_route_durations(const hafti_http_entry_t *route, void *page) {
    if (was_asked(route))
        put_durations(page, durations_of_routes, route->counts, route);
}

static void put_server(page_t *page, const haft_http_server_t *server) {
    haft_http_counters_t counters;
    haft_http_server_read_counters(server, &counters);
    put_gauge(page, "haft_http_connections", "Open connections.", counters.connections);
    put_counter(page, "haft_http_connections_accepted", "Connections that were accepted.",
                counters.connections_accepted);
    put_counter(page, "haft_http_response_bytes", "Bytes of the bodies of answers.",
                counters.bytes);
    put_family(page, "haft_http_requests", "counter", "Requests, by the class of their status.");
    put_requests(page, "haft_http_requests", &server->counters, NULL);
    put_counter(page, "haft_http2_requests", "Requests over HTTP/2.", counters.http2_requests);
    put_family(page, "haft_http_request_duration_seconds", "histogram",
               "From the head of a request to its answer.");
    put_durations(page, "haft_http_request_duration_seconds", &server->counters, NULL);
    put_family(page, of_routes, "counter", "Requests for a route, by the class of their status.");
    hafti_http_routes_visit(server->routes, put_route_requests, page);
    put_family(page, durations_of_routes, "histogram",
               "From the head of a request for a route to its answer.");
    hafti_http_routes_visit(server->routes, put_route_durations, page);
}

static void put_io(const page_t *page) {
    haft_io_counters_t io;
    if (haft_io_count(&io) != 0)
        return;
    put_gauge(page, "haft_io_living_tasks", "Tasks that have not ended.", haft_io_living());
    put_counter(page, "haft_io_tasks", "Tasks that have started.", io.tasks);
    put_counter(page, "haft_io_steals", "Tasks that a thread took out of the queue of another.",
                io.steals);
    put_counter(page, "haft_io_operations", "Operations on descriptors.", io.operations);
    put_counter(page, "haft_io_polls", "Polls of the kernel.", io.polls);
    put_counter(page, "haft_io_wakes", "Times that a thread woke another.", io.wakes);
}

/* ---- The application's metrics ---- */

static void put_labels(const page_t *page, const haft_http_series_t *series, const double *limit) {
    const haft_http_metric_t *metric = series->metric;
    if (metric->label_count == 0 && limit == NULL)
        return;
    put(page, "{");
    for (size_t i = 0; i < metric->label_count; i++) {
        print(page, "%s%s=\"", i != 0 ? "," : "", metric->labels[i]);
        put_escaped(page, series->values[i], true);
        put(page, "\"");
    }
    if (limit != NULL) {
        print(page, "%sle=\"", metric->label_count != 0 ? "," : "");
        put_number(page, *limit);
        put(page, "\"");
    }
    put(page, "}");
}

static void put_histogram(const page_t *page, const haft_http_series_t *series) {
    const haft_http_metric_t *metric = series->metric;
    uint64_t sum = 0;
    for (size_t i = 0; i <= metric->limit_count; i++) {
        double limit = i < metric->limit_count ? metric->limits[i] : (double)INFINITY;
        sum += read_one(&series->within[i]);
        print(page, "%s_bucket", metric->name);
        put_labels(page, series, &limit);
        print(page, " %llu\n", (unsigned long long)sum);
    }
    print(page, "%s_sum", metric->name);
    put_labels(page, series, NULL);
    put(page, " ");
    put_number(page, hafti_http_series_number(series));
    print(page, "\n%s_count", metric->name);
    put_labels(page, series, NULL);
    print(page, " %llu\n", (unsigned long long)sum);
}

static void put_series(const page_t *page, const haft_http_series_t *series) {
    const haft_http_metric_t *metric = series->metric;
    if (metric->kind == HAFT_HTTP_HISTOGRAM) {
        put_histogram(page, series);
        return;
    }
    bool is_counter = metric->kind == HAFT_HTTP_COUNTER;
    print(page, "%s%s", metric->name, is_counter ? "_total" : "");
    put_labels(page, series, NULL);
    put(page, " ");
    if (is_counter)
        print(page, "%llu", (unsigned long long)read_one(&series->count));
    else
        put_number(page, hafti_http_series_number(series));
    put(page, "\n");
}

/* Whether it is the series for surplus values, and has none. */
static bool is_unused(const haft_http_metric_t *metric, const haft_http_series_t *series) {
    return series == metric->other && metric->label_count != 0 && metric->count < metric->most;
}

static void put_metric(const page_t *page, const haft_http_metric_t *metric) {
    static const char *const types[] = {"counter", "gauge", "histogram"};
    put_family(page, metric->name, types[metric->kind], metric->help);
    const haft_http_series_t *series = atomic_load(&metric->all);
    for (; series != NULL; series = series->next)
        if (!is_unused(metric, series))
            put_series(page, series);
}

/* ---- The page ---- */

static void end_page(page_t *page) {
    if (page->locale != (locale_t)0)
        freelocale(page->locale);
    hafti_http_text_page_end(&page->text);
}

int hafti_http_show_counters(haft_http_request_t *request, void *unused) {
    static const char *const types[] = {"text/plain", "application/openmetrics-text"};
    (void)unused;
    __attribute__((cleanup(end_page)))
    page_t page = {.is_open = haft_http_request_accepts(request, types, 2) == 1,
                   .locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0)};
    if (page.locale == (locale_t)0 || !hafti_http_text_page_begin(&page.text))
        return -ENOMEM;
    put_server(&page, request->server);
    put_io(&page);
    for (const haft_http_metric_t *metric = request->server->metrics; metric != NULL;
         metric = metric->next)
        put_metric(&page, metric);
    if (page.is_open)
        put(&page, "# EOF\n");
    int code = haft_http_answer_set_header(request, "Vary", "Accept");
    return code == 0
               ? hafti_http_text_page_answer(
                     &page.text, request,
                     page.is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                  : "text/plain; version=0.0.4; charset=utf-8")
               : code;
}

/* SPDX-License-Identifier: MIT */
/* Metrics of the application's own, those of routes, and the two formats in which a page shows
   them. */
#include "check_http.h"

#include <math.h>
#include <pthread.h>

static haft_http_server_t *server;
static haft_http_metric_t *sold, *open_carts, *weights, *crowded;
static char log_line[500];

static void note(void *unused, const char *line) {
    (void)unused;
    snprintf(log_line, sizeof log_line, "%s", line);
}

static int sell(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *values[] = {haft_http_request_route(request),
                            haft_http_request_path(request, "id")};
    haft_http_series_count(haft_http_metric_series(sold, values), 2);
    CHECK(strcmp(haft_io_task_name(haft_io_self()), "GET /sell/{id}") == 0);
    return haft_http_answer_text(request, 200, "sold");
}

static haft_io_event_t ends;

static int wait_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_event_wait(&ends);
    return haft_http_answer_text(request, 200, "");
}

static void check_mistake(haft_http_metric_options_t options, const char *words) {
    CHECK(haft_http_metric_new_with(&options, server) == NULL);
    CHECK(strstr(haft_http_server_mistake(server), words) != NULL);
}

static void check_mistakes(void) {
    static const char *const wrong[] = {"le"}, *const spaced[] = {"a b"};
    static const double falling[] = {2, 1};
    check_mistake((haft_http_metric_options_t){0}, "no metric NULL: a name is made of letters");
    check_mistake((haft_http_metric_options_t){.name = "1a"}, "no metric 1a: a name is");
    check_mistake((haft_http_metric_options_t){.name = "a b"}, "a name is made of letters");
    check_mistake((haft_http_metric_options_t){.name = "haft_a"}, "does not begin with haft_");
    check_mistake((haft_http_metric_options_t){.name = "shop_sold"}, "one of this name already");
    check_mistake((haft_http_metric_options_t){.name = "a", .labels = wrong, .label_count = 1},
                  "not called le");
    check_mistake((haft_http_metric_options_t){.name = "a", .labels = spaced, .label_count = 1},
                  "a label is made of letters");
    check_mistake((haft_http_metric_options_t){.name = "a", .label_count = 9}, "at most 8 labels");
    check_mistake((haft_http_metric_options_t){.name = "a", .limits = falling, .limit_count = 2},
                  "ascending order");
}

static void make_server(void) {
    static const char *const labels[] = {"route", "id"}, *const one[] = {"name"};
    static const double limits[] = {0.5, 1, 2.5};
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    CHECK(haft_http_server_get(server, "/sell/{id}", sell, NULL) == 0);
    CHECK(haft_http_server_serve_counters(server, "/counters") == 0);
    CHECK(haft_http_server_get(server, "/wait/{id}", wait_long, NULL) == 0);
    CHECK(haft_http_server_serve_debug_pages(server, "/debug") == 0);
    sold =
        haft_http_metric_new_with(&(haft_http_metric_options_t){.name = "shop_sold",
                                                                .help = "Sold\nthings \\ \"all\"",
                                                                .labels = labels,
                                                                .label_count = 2},
                                  server);
    open_carts = haft_http_metric_new_with(
        &(haft_http_metric_options_t){.kind = HAFT_HTTP_GAUGE, .name = "shop_carts"}, server);
    weights = haft_http_metric_new_with(
        &(haft_http_metric_options_t){
            .kind = HAFT_HTTP_HISTOGRAM, .name = "shop_weight", .limits = limits, .limit_count = 3},
        server);
    crowded = haft_http_metric_new_with(
        &(haft_http_metric_options_t){
            .name = "shop_crowded", .labels = one, .label_count = 1, .most = 2},
        server);
    CHECK(sold != NULL && open_carts != NULL && weights != NULL && crowded != NULL);
    check_mistakes();
    haft_http_series_set(haft_http_metric_series(open_carts, NULL), 3);
    haft_http_series_add(haft_http_metric_series(open_carts, NULL), -0.75);
    static const double values[] = {0.25, 0.5, 0.75, 2, 100, -1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        haft_http_series_observe(haft_http_metric_series(weights, NULL), values[i]);
    for (int i = 0; i < 1000; i++) {
        char name[20];
        snprintf(name, sizeof name, "%d", i);
        haft_http_series_count(haft_http_metric_series(crowded, (const char *const[]){name}), 1);
    }
}

static const char *const in_both[] = {
    "shop_sold_total{route=\"/sell/{id}\",id=\"a\\\"\\\\\\nb\"} 2\n",
    "shop_sold_total{route=\"/sell/{id}\",id=\"7\"} 4\n",
    "# TYPE shop_carts gauge\nshop_carts 2.25\n",
    "shop_weight_sum 102.5\nshop_weight_count 6\n",
    "shop_crowded_total{name=\"0\"} 1\n",
    "shop_crowded_total{name=\"1\"} 1\n",
    "shop_crowded_total{name=\"other\"} 998\n",
    "haft_http_route_requests_total{method=\"GET\",route=\"/sell/{id}\",status=\"2xx\"} 3\n",
    "haft_http_route_duration_seconds_count{method=\"GET\",route=\"/sell/{id}\"} 3\n",
    "haft_http_requests_total{status=\"4xx\"} 1\n",
    "# TYPE haft_io_living_tasks gauge\nhaft_io_living_tasks ",
};
static const char *const in_text[] = {
    "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
    "# HELP shop_sold_total Sold\\nthings \\\\ \"all\"\n# TYPE shop_sold_total counter\n",
    "shop_weight_bucket{le=\"0.5\"} 3\nshop_weight_bucket{le=\"1\"} 4\n",
    "shop_weight_bucket{le=\"2.5\"} 5\nshop_weight_bucket{le=\"+Inf\"} 6\n",
    "# TYPE haft_http_requests_total counter\n",
};
static const char *const in_open[] = {
    "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n",
    "# HELP shop_sold Sold\\nthings \\\\ \\\"all\\\"\n# TYPE shop_sold counter\n",
    "shop_weight_bucket{le=\"0.5\"} 3\nshop_weight_bucket{le=\"1.0\"} 4\n",
    "# TYPE haft_http_requests counter\n",
    "# EOF\n",
};

/* Answers of HTTP/1.0 have no chunks. */
static const char *ask(uint16_t port, const char *line, const char *fields) {
    static char heard[200000];
    char says[1000];
    int size = snprintf(says, sizeof says, "%s HTTP/1.0\r\nHost: here\r\n%s\r\n", line, fields);
    say_and_hear(port, says, (size_t)size, false, heard, sizeof heard);
    return heard;
}

static void check_has(const char *page, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strstr(page, words[i]) == NULL) {
            fprintf(stderr, "no %s in\n%s\n", words[i], page);
            abort();
        }
}
#define CHECK_HAS(page, words) check_has(page, words, sizeof(words) / sizeof *(words))

/* Headers that Prometheus 2 and 3 send. */
static const char *const wants_open[] = {
    "Accept: application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version="
    "0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2\r\n",
    "Accept: application/openmetrics-text; version=1.0.0\r\n",
};
static const char *const wants_text[] = {"", "Accept: */*\r\n", "Accept: text/plain\r\n",
                                         "Accept: text/html\r\n"};

static void *scrape(void *unused) {
    uint16_t port = start_server(server);
    for (int i = 0; i < 2; i++)
        CHECK(strstr(ask(port, "GET /sell/7", ""), "sold") != NULL);
    CHECK(strstr(ask(port, "GET /sell/a%22%5C%0Ab", ""), "sold") != NULL);
    CHECK(strstr(ask(port, "GET /nowhere", ""), "404") != NULL);
    for (size_t i = 0; i < sizeof wants_text / sizeof *wants_text; i++) {
        const char *page = ask(port, "GET /counters", wants_text[i]);
        CHECK_HAS(page, in_text);
        CHECK_HAS(page, in_both);
        CHECK(strstr(page, "# EOF") == NULL);
    }
    for (size_t i = 0; i < sizeof wants_open / sizeof *wants_open; i++) {
        const char *page = ask(port, "GET /counters", wants_open[i]);
        CHECK_HAS(page, in_open);
        CHECK_HAS(page, in_both);
        CHECK(strcmp(page + strlen(page) - 6, "# EOF\n") == 0);
    }
    CHECK(haft_io_living() >= 2); /* this one, and the server's */
    haft_http_server_stop(server);
    return unused;
}

/* ---- What the page of tasks shows of many that are the same ---- */

enum { WAITING = 20 };

static void *show_tasks(void *unused) {
    uint16_t port = start_server(server);
    int connections[WAITING];
    for (int i = 0; i < WAITING; i++) {
        char says[100];
        int size = snprintf(says, sizeof says, "GET /wait/%d HTTP/1.1\r\nHost: here\r\n\r\n", i);
        connections[i] = haft_io_connect_tcp("127.0.0.1", port);
        CHECK(haft_io_write_all(connections[i], says, (size_t)size) == 0);
        haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    const char *page, *at;
    do
        page = ask(port, "GET /debug/tasks", "");
    while ((at = strstr(page, "20 times: task 'GET /wait/{id}' waits for: an event, ")) == NULL);
    int least, most;
    CHECK(sscanf(strstr(at, "event, "), "event, %d to %d ms\n", &least, &most) == 2);
    CHECK(least <= most && times_in(page, "'GET /wait/{id}'") == 1);
    CHECK(strstr(page, "task 'GET /debug/tasks' runs") != NULL ||
          strstr(page, "tasks that have not waited yet") != NULL);
    haft_io_event_set(&ends);
    for (int i = 0; i < WAITING; i++)
        haft_io_close(connections[i]);
    haft_http_server_stop(server);
    return unused;
}

/* Threads that find, add and count the same series lose nothing. */
enum { THREADS = 4, TIMES = 5000, NAMES = 97 };
static haft_http_metric_t *shared, *summed;

static void *count_much(void *unused) {
    char name[20];
    for (int i = 0; i < TIMES; i++) {
        snprintf(name, sizeof name, "%d", i % NAMES);
        haft_http_series_count(haft_http_metric_series(shared, (const char *const[]){name}), 1);
        haft_http_series_add(haft_http_metric_series(summed, NULL), 0.5);
    }
    return unused;
}

static void *read_counts(void *unused) {
    uint16_t port = start_server(server);
    const char *page = ask(port, "GET /counters", ""), *at = page;
    unsigned long long all = 0, one;
    int names = 0;
    while ((at = strstr(at, "shared_total{")) != NULL) {
        CHECK(sscanf(strchr(at, ' '), "%llu", &one) == 1);
        all += one;
        names++;
        at++;
    }
    CHECK(names == NAMES && all == (unsigned long long)THREADS * TIMES);
    CHECK(strstr(page, "\nsummed 10000\n") != NULL);
    haft_http_server_stop(server);
    return unused;
}

static void count_on_threads(void) {
    static const char *const labels[] = {"name"};
    pthread_t threads[THREADS];
    shared = haft_http_metric_new_with(
        &(haft_http_metric_options_t){.name = "shared", .labels = labels, .label_count = 1},
        server);
    summed = haft_http_metric_new_with(
        &(haft_http_metric_options_t){.kind = HAFT_HTTP_GAUGE, .name = "summed"}, server);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_much, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(haft_io_simulate_with(&(haft_io_simulation_options_t){.network = true}, read_counts,
                                NULL) == 0);
}

int main(void) {
    for (int round = 0; round < 2; round++) {
        make_server();
        if (round == 0)
            CHECK(haft_io_simulate_with(&(haft_io_simulation_options_t){.network = true}, scrape,
                                        NULL) == 0);
        else
            CHECK(haft_io_run(scrape, NULL) == 0);
        if (round == 1)
            count_on_threads();
        haft_io_event_clear(&ends);
        CHECK(haft_io_run(show_tasks, NULL) == 0);
        haft_http_server_free(server);
    }
    CHECK(haft_io_living() == 0);
    return 0;
}

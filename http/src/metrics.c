/* SPDX-License-Identifier: MIT */
/*
 * An application's own metrics. A series is found in a table with open addresses, which has twice
 * as many places as there may be series, so it never grows: to look takes no lock.
 */
#include "metrics.h"

#include <stdlib.h>

/* ---- Making one ---- */

static bool is_name(const char *name, bool with_colons) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (name == NULL || *name == '\0')
        return false;
    for (const char *at = name; *at != '\0'; at++)
        if (strchr(letters, *at) == NULL && !(with_colons && *at == ':') &&
            !(at != name && *at >= '0' && *at <= '9'))
            return false;
    return true;
}

static bool is_there(const haft_http_server_t *server, const char *name) {
    const haft_http_metric_t *metric = server->metrics;
    while (metric != NULL && strcmp(metric->name, name) != 0)
        metric = metric->next;
    return metric != NULL;
}

static bool are_limits(const haft_http_metric_options_t *options) {
    for (size_t i = 1; options->limits != NULL && i < options->limit_count; i++)
        if (!(options->limits[i - 1] < options->limits[i]))
            return false;
    return options->limit_count <= HAFT_HTTP_METRIC_LIMITS;
}

/* NULL: nothing. */
static const char *mistake_of(const haft_http_metric_options_t *options,
                              const haft_http_server_t *server) {
    if (!is_name(options->name, true) || strncmp(options->name, "haft_", 5) == 0)
        return "a name is made of letters, digits, '_' and ':', and does not begin with haft_";
    if (is_there(server, options->name))
        return "there is one of this name already";
    if (options->label_count > HAFT_HTTP_LABELS)
        return "a metric has at most 8 labels";
    for (size_t i = 0; i < options->label_count; i++)
        if (!is_name(options->labels[i], false) || strcmp(options->labels[i], "le") == 0)
            return "a label is made of letters, digits and '_', and is not called le";
    return are_limits(options) ? NULL : "limits are in ascending order, 64 at most";
}

static void metric_free(haft_http_metric_t *metric) {
    haft_http_series_t *series = atomic_load(&metric->all);
    while (series != NULL) {
        haft_http_series_t *next = series->next;
        free((void *)(uintptr_t)series->values);
        free(series);
        series = next;
    }
    for (size_t i = 0; i < metric->label_count; i++)
        free(metric->labels[i]);
    pthread_mutex_destroy(&metric->lock);
    free(metric->name);
    free(metric->help);
    free(metric);
}

static void free_owned(hafti_http_owned_t *owned) {
    metric_free((haft_http_metric_t *)owned);
}

/* The texts of the values stand behind the pointers to them. */
static const char *const *copy_values(size_t count, const char *const *values) {
    size_t size = (count + 1) * sizeof *values;
    for (size_t i = 0; i < count; i++)
        size += strlen(values[i]) + 1;
    const char **copies = malloc(size);
    char *to = (char *)(copies + count + 1);
    for (size_t i = 0; i < count && copies != NULL; i++) {
        copies[i] = to;
        to = stpcpy(to, values[i]) + 1;
    }
    return copies;
}

static haft_http_series_t *series_new(haft_http_metric_t *metric, const char *const *values) {
    size_t within = metric->kind == HAFT_HTTP_HISTOGRAM ? metric->limit_count + 1 : 0;
    haft_http_series_t *series = calloc(1, sizeof *series + within * sizeof *series->within);
    if (series == NULL)
        return NULL;
    series->metric = metric;
    series->values = copy_values(metric->label_count, values);
    if (series->values == NULL) {
        free(series);
        return NULL;
    }
    series->next = atomic_load(&metric->all);
    atomic_store(&metric->all, series);
    return series;
}

static void set_limits(haft_http_metric_t *metric, const haft_http_metric_options_t *options) {
    const double *limits = options->limits != NULL ? options->limits : haft_http_duration_limits;
    metric->limit_count = options->limits != NULL ? options->limit_count : HAFT_HTTP_DURATIONS - 1;
    memcpy(metric->limits, limits, metric->limit_count * sizeof *limits);
}

static bool set_texts(haft_http_metric_t *metric, const haft_http_metric_options_t *options) {
    metric->name = strdup(options->name);
    metric->help = strdup(options->help != NULL ? options->help : "");
    bool has_all = metric->name != NULL && metric->help != NULL;
    for (; metric->label_count < options->label_count && has_all; metric->label_count++)
        has_all = (metric->labels[metric->label_count] =
                       strdup(options->labels[metric->label_count])) != NULL;
    return has_all;
}

/* The first series is made at once, so it needs no memory later: the only one of a metric without
   labels; of others, the one for values that are too many. */
static bool set_first(haft_http_metric_t *metric) {
    const char *values[HAFT_HTTP_LABELS];
    for (size_t i = 0; i < HAFT_HTTP_LABELS; i++)
        values[i] = "other";
    metric->other = series_new(metric, values);
    return metric->other != NULL;
}

haft_http_metric_t *haft_http_metric_new_with(const haft_http_metric_options_t *options,
                                              haft_http_server_t *server) {
    server = hafti_http_root_of(server);
    const char *mistake = mistake_of(options, server);
    if (mistake != NULL) {
        hafti_http_refuse(server, -EINVAL, "haft_http_metric_new", "no metric %s: %s",
                          options->name != NULL ? options->name : "NULL", mistake);
        return NULL;
    }
    size_t most = options->most != 0 ? options->most : 1000, places = 2;
    while (places < 2 * most)
        places *= 2;
    haft_http_metric_t *metric = calloc(1, sizeof *metric + places * sizeof *metric->places);
    if (metric == NULL)
        return NULL;
    metric->kind = options->kind;
    metric->most = most;
    metric->place_count = places;
    pthread_mutex_init(&metric->lock, NULL);
    set_limits(metric, options);
    if (!set_texts(metric, options) || !set_first(metric)) {
        metric_free(metric);
        return NULL;
    }
    haft_http_metric_t **last = &server->metrics;
    while (*last != NULL)
        last = &(*last)->next;
    *last = metric;
    metric->owned.free = free_owned;
    hafti_http_own(server, &metric->owned);
    return metric;
}

/* ---- Series ---- */

/* FNV-1a. */
static uint64_t hash_of(size_t count, const char *const *values) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < count; i++)
        for (const char *at = values[i];; at++) {
            hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
            if (*at == '\0')
                break;
        }
    return hash;
}

static bool has_values(const haft_http_series_t *series, const char *const *values) {
    for (size_t i = 0; i < series->metric->label_count; i++)
        if (strcmp(series->values[i], values[i]) != 0)
            return false;
    return true;
}

/* The place of the series with these values, or the free one where it would be. */
static size_t place_of(const haft_http_metric_t *metric, const char *const *values) {
    size_t mask = metric->place_count - 1;
    size_t place = (size_t)hash_of(metric->label_count, values) & mask;
    const haft_http_series_t *series;
    while ((series = atomic_load_explicit(&metric->places[place], memory_order_acquire)) != NULL &&
           !has_values(series, values))
        place = (place + 1) & mask;
    return place;
}

static haft_http_series_t *add_series(haft_http_metric_t *metric, const char *const *values) {
    pthread_mutex_lock(&metric->lock);
    size_t place = place_of(metric, values);
    haft_http_series_t *series = atomic_load(&metric->places[place]);
    if (series == NULL && metric->count < metric->most &&
        (series = series_new(metric, values)) != NULL) {
        metric->count++;
        atomic_store_explicit(&metric->places[place], series, memory_order_release);
    }
    pthread_mutex_unlock(&metric->lock);
    return series != NULL ? series : metric->other;
}

haft_http_series_t *haft_http_metric_series(haft_http_metric_t *metric, const char *const *values) {
    const char *given[HAFT_HTTP_LABELS];
    if (metric->label_count == 0)
        return metric->other;
    for (size_t i = 0; i < metric->label_count; i++)
        given[i] = values != NULL && values[i] != NULL ? values[i] : "";
    size_t place = place_of(metric, given);
    haft_http_series_t *series = atomic_load_explicit(&metric->places[place], memory_order_acquire);
    return series != NULL ? series : add_series(metric, given);
}

static double double_of(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

double hafti_http_series_number(const haft_http_series_t *series) {
    return double_of(atomic_load_explicit(&series->number, memory_order_relaxed));
}

void haft_http_series_count(haft_http_series_t *counter, uint64_t more) {
    atomic_fetch_add_explicit(&counter->count, more, memory_order_relaxed);
}

void haft_http_series_set(haft_http_series_t *gauge, double value) {
    atomic_store_explicit(&gauge->number, bits_of(value), memory_order_relaxed);
}

void haft_http_series_add(haft_http_series_t *gauge, double more) {
    uint64_t before = atomic_load_explicit(&gauge->number, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&gauge->number, &before,
                                                  bits_of(double_of(before) + more),
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

void haft_http_series_observe(haft_http_series_t *histogram, double value) {
    const haft_http_metric_t *metric = histogram->metric;
    size_t limit = 0;
    if (metric->kind != HAFT_HTTP_HISTOGRAM)
        return;
    while (limit < metric->limit_count && !(value <= metric->limits[limit]))
        limit++;
    atomic_fetch_add_explicit(&histogram->within[limit], 1, memory_order_relaxed);
    haft_http_series_add(histogram, value);
}

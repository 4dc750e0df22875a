/* SPDX-License-Identifier: MIT */
/*
 * Haft HTTP: metrics of the application's own, which haft_http_server_serve_counters shows beside
 * those of the library. haft/http.h includes this file.
 *
 *     static const char *const labels[] = {"route"};
 *     haft_http_metric_t *sold = haft_http_metric_new_with(
 *         &(haft_http_metric_options_t){.name = "shop_sold", .help = "Things that were sold.",
 *                                       .labels = labels, .label_count = 1}, server);
 *     ...
 *     const char *values[] = {haft_http_request_route(request)};
 *     haft_http_series_count(haft_http_metric_series(sold, values), 1);
 */
#ifndef HAFT_HTTP_METRICS_H
#define HAFT_HTTP_METRICS_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_http_metric haft_http_metric_t;
/* The numbers of a metric for certain values of its labels. */
typedef struct haft_http_series haft_http_series_t;

typedef enum haft_http_metric_kind {
    HAFT_HTTP_COUNTER,   /* goes up only */
    HAFT_HTTP_GAUGE,     /* is what it was set to last */
    HAFT_HTTP_HISTOGRAM, /* counts how many numbers are up to each of some limits */
} haft_http_metric_kind_t;

enum { HAFT_HTTP_LABELS = 8, HAFT_HTTP_METRIC_LIMITS = 64 }; /* of a metric, at most */

typedef struct haft_http_metric_options {
    haft_http_metric_kind_t kind;
    const char *name; /* of letters, digits, '_' and ':', such as "shop_sold"; a counter is shown as
                         "shop_sold_total". A unit, such as "_seconds", stands at its end */
    const char *help; /* a line of text; NULL: "" */
    const char *const *labels; /* their names, of letters, digits and '_' */
    size_t label_count;
    const double *limits; /* of a histogram, in ascending order; NULL: those of
                             haft_http_duration_limits, for seconds */
    size_t limit_count;
    size_t most; /* series (1000). Further values of labels share one, in which each is "other":
                    so a label that clients choose costs no more memory than that */
} haft_http_metric_options_t;

/* A metric of a server, with which it is freed; all texts are copied. Before the server serves.
   NULL: a name is none, or there already, or a limit is not greater than the one before, which
   haft_http_server_mistake has in words; or there is no memory. */
haft_http_metric_t *haft_http_metric_new_with(const haft_http_metric_options_t *options,
                                              haft_http_server_t *server);

/*
 * The series for these values of the labels, as many as there are; NULL in place of one is "". A
 * value is copied when it is new; later calls take no lock. `values` may be NULL for a metric
 * without labels. It lives as long as the metric, so it may be kept. Never NULL. This and the
 * functions below may be called on any thread; those cost an atomic addition each.
 */
haft_http_series_t *haft_http_metric_series(haft_http_metric_t *metric, const char *const *values);
void haft_http_series_count(haft_http_series_t *counter, uint64_t more);
void haft_http_series_set(haft_http_series_t *gauge, double value);
void haft_http_series_add(haft_http_series_t *gauge, double more); /* which may be negative */
void haft_http_series_observe(haft_http_series_t *histogram, double value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

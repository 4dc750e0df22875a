/* SPDX-License-Identifier: MIT */
/* The part of an application's metrics (metrics.c) that the page of counters reads. */
#ifndef HAFTI_HTTP_METRICS_H
#define HAFTI_HTTP_METRICS_H

#include "internal.h"

struct haft_http_series {
    haft_http_series_t *next; /* of all */
    const haft_http_metric_t *metric;
    const char *const *values; /* of the labels */
    _Atomic uint64_t count;    /* of a counter, or of all that was observed */
    _Atomic uint64_t number;   /* the bits of a double: a gauge, or the sum of a histogram */
    _Atomic uint64_t within[]; /* as many as there are limits, and one more */
};

/* Series are added to the front of `all`, and to a free place of `places`, under the lock, and
   never removed; readers take no lock. */
struct haft_http_metric {
    hafti_http_owned_t owned; /* must be first: free_owned casts its address */
    haft_http_metric_t *next;
    haft_http_metric_kind_t kind;
    char *name, *help;
    size_t label_count, limit_count, most;
    char *labels[HAFT_HTTP_LABELS];
    double limits[HAFT_HTTP_METRIC_LIMITS];
    pthread_mutex_t lock;
    size_t count, place_count; /* a power of two */
    haft_http_series_t *_Atomic all, *other;
    haft_http_series_t *_Atomic places[];
};

double hafti_http_series_number(const haft_http_series_t *series);

#endif

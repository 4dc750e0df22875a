/* SPDX-License-Identifier: MIT */
/* The counters of a server. */
#include "internal.h"

const double haft_http_duration_limits[HAFT_HTTP_DURATIONS] = {0.001, 0.0025, 0.005, 0.01, 0.025,
                                                               0.05,  0.1,    0.5,   2.5,  0};

static void count(_Atomic uint64_t *counter, uint64_t more) {
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static size_t bucket_of(int64_t duration) {
    size_t bucket = 0;
    while (bucket + 1 < HAFT_HTTP_DURATIONS &&
           (double)duration > haft_http_duration_limits[bucket] * 1e9)
        bucket++;
    return bucket;
}

void hafti_http_count_request(hafti_http_counts_t *counts, const haft_http_request_t *request,
                              const haft_http_access_t *access) {
    count(&counts->requests[access->status / 100], 1);
    count(&counts->http2_requests, request->message.parser.http_major == 2);
    count(&counts->bytes, access->size);
    count(&counts->duration, (uint64_t)access->duration);
    count(&counts->durations[bucket_of(access->duration)], 1);
}

void haft_http_server_count(haft_http_server_t *server) {
    server = hafti_http_root_of(server);
    server->counts = server->notes_requests = true;
}

static uint64_t read_one(const _Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void haft_http_server_read_counters(const haft_http_server_t *server,
                                    haft_http_counters_t *counters) {
    const hafti_http_counts_t *counts = &server->counters;
    counters->connections_accepted = read_one(&counts->accepted);
    counters->connections = atomic_load(&server->open);
    counters->http2_requests = read_one(&counts->http2_requests);
    counters->bytes = read_one(&counts->bytes);
    counters->duration = read_one(&counts->duration);
    for (size_t i = 0; i < 6; i++)
        counters->requests[i] = read_one(&counts->requests[i]);
    for (size_t i = 0; i < HAFT_HTTP_DURATIONS; i++)
        counters->durations[i] = read_one(&counts->durations[i]);
}

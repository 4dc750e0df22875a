/* SPDX-License-Identifier: MIT */
/*
 * How many connections a client keeps, and how long: those of HTTP/1.1, which wait in the pool, and
 * those of HTTP/2 that no task uses. A client has no task of its own, so it looks when it asks: too
 * old ones are closed before another is opened and when an answer has been read.
 */
#include "client.h"

/* How many wait, and since when the oldest does. */
static size_t count(haft_http_client_t *client, int64_t *oldest) {
    int64_t other;
    size_t all =
        hafti_http_pool_count(client->pool, oldest) + hafti_http2_count_idle(client, &other);
    if (other < *oldest)
        *oldest = other;
    return all;
}

static void close_idle(haft_http_client_t *client, int64_t until) {
    hafti_http_pool_close_idle(client->pool, until, SIZE_MAX);
    hafti_http2_close_idle(client, until, SIZE_MAX);
}

bool hafti_http_kept_close_oldest(haft_http_client_t *client) {
    int64_t oldest, other;
    hafti_http_pool_count(client->pool, &oldest);
    hafti_http2_count_idle(client, &other);
    if (oldest == HAFT_IO_FOREVER && other == HAFT_IO_FOREVER)
        return false;
    if (oldest <= other)
        hafti_http_pool_close_idle(client->pool, oldest, 1);
    else
        hafti_http2_close_idle(client, other, 1);
    return true;
}

void hafti_http_kept_trim(haft_http_client_t *client, size_t most) {
    int64_t oldest, last = haft_io_now() - client->kept_time;
    size_t all = count(client, &oldest);
    if (all != 0 && oldest <= last)
        close_idle(client, last);
    while (all > most && count(client, &oldest) > most)
        hafti_http_kept_close_oldest(client);
}

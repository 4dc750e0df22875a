/* SPDX-License-Identifier: MIT */
/* A client's connections that wait for a question: a list, the last used first, so that few are
   kept busy, and the oldest are the last in it. */
#include "client.h"

#include <stdlib.h>

typedef struct kept {
    struct kept *next;
    hafti_http_url_t url; /* the origin's; its texts are gone */
    hafti_http_stream_t stream;
    int64_t since;
} kept_t;

struct hafti_http_pool {
    pthread_mutex_t mutex; /* never held over a wait */
    size_t most;           /* of an origin */
    kept_t *first;
};

hafti_http_pool_t *hafti_http_pool_new(size_t most) {
    hafti_http_pool_t *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pool->most = most;
    return pool;
}

static void drop(kept_t *kept) {
    hafti_http_stream_send_end(&kept->stream);
    hafti_http_stream_close(&kept->stream);
    free(kept);
}

static void drop_all(kept_t *kept) {
    while (kept != NULL) {
        kept_t *next = kept->next;
        drop(kept);
        kept = next;
    }
}

void hafti_http_pool_free(hafti_http_pool_t *pool) {
    if (pool == NULL)
        return;
    drop_all(pool->first);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

size_t hafti_http_pool_count(hafti_http_pool_t *pool, int64_t *oldest) {
    size_t count = 0;
    *oldest = HAFT_IO_FOREVER;
    pthread_mutex_lock(&pool->mutex);
    for (const kept_t *kept = pool->first; kept != NULL; kept = kept->next, count++)
        *oldest = kept->since;
    pthread_mutex_unlock(&pool->mutex);
    return count;
}

void hafti_http_pool_close_idle(hafti_http_pool_t *pool, int64_t until, size_t most) {
    size_t old = 0;
    pthread_mutex_lock(&pool->mutex);
    for (const kept_t *kept = pool->first; kept != NULL; kept = kept->next)
        old += kept->since <= until;
    kept_t **at = &pool->first, *dropped;
    while (*at != NULL && ((*at)->since > until || old-- > most))
        at = &(*at)->next;
    dropped = *at;
    *at = NULL;
    pthread_mutex_unlock(&pool->mutex);
    drop_all(dropped);
}

static kept_t *unlink_first(hafti_http_pool_t *pool, const hafti_http_url_t *url) {
    pthread_mutex_lock(&pool->mutex);
    kept_t **at = &pool->first, *kept;
    while (*at != NULL && !hafti_http_same_origin(&(*at)->url, url))
        at = &(*at)->next;
    kept = *at;
    if (kept != NULL)
        *at = kept->next;
    pthread_mutex_unlock(&pool->mutex);
    return kept;
}

/* Whether nothing can be read there: neither an end, nor an answer without a question. */
static bool is_quiet(int descriptor) {
    char byte;
    return haft_io_receive(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -EAGAIN;
}

bool hafti_http_pool_take(hafti_http_pool_t *pool, const hafti_http_url_t *url,
                          hafti_http_stream_t *stream) {
    for (kept_t *kept; (kept = unlink_first(pool, url)) != NULL; drop(kept))
        if (is_quiet(kept->stream.descriptor)) {
            *stream = kept->stream;
            free(kept);
            return true;
        }
    return false;
}

void hafti_http_pool_drop(hafti_http_pool_t *pool, const hafti_http_url_t *url) {
    for (kept_t *kept; (kept = unlink_first(pool, url)) != NULL;)
        drop(kept);
}

/* Adds it, if there is room: the one that has waited longest goes, which is the origin's last in
   the list. */
static kept_t *link_first(hafti_http_pool_t *pool, kept_t *kept) {
    size_t count = 0;
    kept_t *dropped = NULL;
    pthread_mutex_lock(&pool->mutex);
    kept->next = pool->first;
    pool->first = kept;
    for (kept_t **at = &pool->first; *at != NULL; at = &(*at)->next)
        if (hafti_http_same_origin(&(*at)->url, &kept->url) && ++count > pool->most) {
            dropped = *at;
            *at = dropped->next;
            break;
        }
    pthread_mutex_unlock(&pool->mutex);
    return dropped;
}

void hafti_http_pool_give(hafti_http_pool_t *pool, const hafti_http_url_t *url,
                          const hafti_http_stream_t *stream) {
    kept_t *kept = malloc(sizeof *kept);
    if (kept == NULL) {
        stream->operations->close((hafti_http_stream_t *)stream);
        return;
    }
    kept->url = *url;
    kept->stream = *stream;
    kept->since = haft_io_now();
    kept_t *dropped = link_first(pool, kept);
    if (dropped != NULL)
        drop(dropped);
}

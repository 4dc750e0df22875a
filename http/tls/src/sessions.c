/* SPDX-License-Identifier: MIT */
/*
 * Sessions that a client keeps, so that later streams to the same host and port resume: a list, the
 * newest first. A session of TLS 1.3 is used once (RFC 8446, appendix C.4): two streams that resume
 * the same one could be recognised as the same client's. Before 1.3 a server gives no new one to a
 * stream that resumes.
 */
#include "internal.h"

enum { ORIGIN_MOST = 4, MOST = 1024 };

static void drop(hafti_tls_session_t *kept) {
    SSL_SESSION_free(kept->session);
    free(kept);
}

static hafti_tls_session_t *take(haft_tls_context_t *context, const char *origin) {
    pthread_mutex_lock(&context->mutex);
    hafti_tls_session_t **at = &context->sessions, *kept;
    while (*at != NULL && strcmp((*at)->origin, origin) != 0)
        at = &(*at)->next;
    kept = *at;
    if (kept != NULL)
        *at = kept->next;
    pthread_mutex_unlock(&context->mutex);
    return kept;
}

/* Removes the session that is one too many, of its origin or in all. */
static hafti_tls_session_t *trim(haft_tls_context_t *context, const char *origin) {
    size_t count = 0, of_origin = 0;
    for (hafti_tls_session_t **at = &context->sessions; *at != NULL; at = &(*at)->next) {
        hafti_tls_session_t *kept = *at;
        of_origin += strcmp(kept->origin, origin) == 0;
        if (++count > MOST || of_origin > ORIGIN_MOST) {
            *at = kept->next;
            return kept;
        }
    }
    return NULL;
}

static void put(haft_tls_context_t *context, hafti_tls_session_t *kept) {
    pthread_mutex_lock(&context->mutex);
    kept->next = context->sessions;
    context->sessions = kept;
    hafti_tls_session_t *dropped = trim(context, kept->origin);
    pthread_mutex_unlock(&context->mutex);
    if (dropped != NULL)
        drop(dropped);
}

int hafti_tls_session_keep(SSL *openssl, SSL_SESSION *session) {
    const haft_tls_t *stream = SSL_get_app_data(openssl);
    if (SSL_SESSION_is_resumable(session) == 0)
        return 0;
    size_t size = strlen(stream->origin) + 1;
    hafti_tls_session_t *kept = malloc(sizeof *kept + size);
    if (kept == NULL)
        return 0;
    kept->session = session;
    memcpy(kept->origin, stream->origin, size);
    put(stream->context, kept);
    return 1;
}

void hafti_tls_session_resume(haft_tls_t *stream) {
    hafti_tls_session_t *kept = take(stream->context, stream->origin);
    if (kept == NULL)
        return;
    SSL_set_session(stream->openssl, kept->session);
    if (SSL_SESSION_get_protocol_version(kept->session) < TLS1_3_VERSION)
        put(stream->context, kept);
    else
        drop(kept);
}

void hafti_tls_sessions_free(haft_tls_context_t *context) {
    while (context->sessions != NULL) {
        hafti_tls_session_t *kept = context->sessions;
        context->sessions = kept->next;
        drop(kept);
    }
}

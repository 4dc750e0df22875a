/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of libhaft-tls share. The files, each above those before it: room.c
 * (where OpenSSL runs), chance.c, errors.c (codes and texts), bytes.c (what OpenSSL reads and
 * writes), certificates.c (this side's), trust.c (the peer's), sessions.c (sessions that can be
 * resumed), context.c, stream.c.
 *
 * OpenSSL never waits: it takes bytes that have arrived from memory, and leaves bytes to be sent in
 * memory (bytes.c). So none of its frames is on a stack that is unwound by a cancel, and each of
 * its calls begins and ends on one thread.
 */
#ifndef HAFTI_TLS_INTERNAL_H
#define HAFTI_TLS_INTERNAL_H

#include <haft/io_binding.h>
#include <haft/tls.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HAFTI_TLS_TEXT = 512 }; /* bytes of the reason of a failure */

/* ---- room.c --------------------------------------------------------------------------------- */

/* Calls the function on a stack with room for OpenSSL. 0 or -ENOMEM. */
int hafti_tls_call(void (*function)(void *), void *argument);
/* The same in the pool, for what reads files. Errors of haft_io_call_blocking, too. */
int hafti_tls_call_blocking(void (*function)(void *), void *argument);

/* ---- chance.c ------------------------------------------------------------------------------- */

/* In a simulation: makes OpenSSL's random bytes those of the seed. */
void hafti_tls_draw_by_seed(void);

/* ---- errors.c ------------------------------------------------------------------------------- */

/* The code of OpenSSL's last error on this thread, which is described in `text`. */
int hafti_tls_openssl_error(char text[HAFTI_TLS_TEXT]);

/* ---- bytes.c: between OpenSSL and the descriptor --------------------------------------------- */

/*
 * `at` to `end` in `input` have arrived, and OpenSSL has not taken them. `start` to `stop` in
 * `output` are to be sent. Both are memory of haft_io_lend, given back when they are empty, so a
 * stream that is idle has neither.
 */
typedef struct {
    const char *at, *end;
    const void *input;
    char *output;
    size_t start, stop;
} hafti_tls_bytes_t;

BIO *hafti_tls_bytes_bio(hafti_tls_bytes_t *bytes);
/* Notes that so many bytes more have been sent. */
void hafti_tls_bytes_sent(hafti_tls_bytes_t *bytes, size_t count);
void hafti_tls_bytes_end(hafti_tls_bytes_t *bytes);

/* ---- certificates.c, sessions.c, context.c --------------------------------------------------- */

typedef struct hafti_tls_certificate {
    struct hafti_tls_certificate *next;
    char *chain_file, *key_file;
    X509 *certificate;
    STACK_OF(X509) * chain; /* those behind it */
    EVP_PKEY *key;
} hafti_tls_certificate_t;

typedef struct hafti_tls_session {
    struct hafti_tls_session *next;
    SSL_SESSION *session;
    char origin[]; /* host and port */
} hafti_tls_session_t;

struct haft_tls_context {
    SSL_CTX *openssl;
    atomic_size_t uses; /* the context's owner, and streams */
    bool is_server;
    char *protocols; /* as ALPN has them */
    size_t protocols_size;
    pthread_mutex_t mutex; /* of what follows; never held over a wait */
    hafti_tls_certificate_t *certificates;
    hafti_tls_session_t *sessions; /* the last used first */
    char failure[HAFTI_TLS_TEXT];
};

/* NULL: no memory. */
hafti_tls_certificate_t *hafti_tls_certificate_new(const char *chain, const char *key);
/* Reads the two files: 0 or an error, described in `failure`. */
int hafti_tls_certificate_read(hafti_tls_certificate_t *certificate, char failure[HAFTI_TLS_TEXT]);
/* Returns 1 for success, like OpenSSL's functions. */
int hafti_tls_certificate_use(SSL *openssl, const hafti_tls_certificate_t *certificate);
/* A list of them. */
void hafti_tls_certificates_free(hafti_tls_certificate_t *certificates);
/* Adds those of a file. Errors are as of hafti_tls_certificate_read. */
int hafti_tls_read_certificates(const char *name, STACK_OF(X509) * certificates,
                                char failure[HAFTI_TLS_TEXT]);
/* Called by OpenSSL when it needs the own certificate. */
int hafti_tls_choose_certificates(SSL *openssl, void *context);

/* For a client's stream: uses a session that an earlier one to its origin has left. */
void hafti_tls_session_resume(haft_tls_t *stream);
/* Called by OpenSSL with a session that can be resumed. */
int hafti_tls_session_keep(SSL *openssl, SSL_SESSION *session);
void hafti_tls_sessions_free(haft_tls_context_t *context);

/* ---- trust.c -------------------------------------------------------------------------------- */

/* Called by OpenSSL with what it has found out about a certificate of the peer's chain. */
int hafti_tls_verified(int is_good, X509_STORE_CTX *verification);
/* Verifies the peer as this host. */
int hafti_tls_expect_host(SSL *openssl, const char *host);
/* To be freed; NULL: no memory. */
char *hafti_tls_subject(X509 *certificate);

/* ---- context.c ------------------------------------------------------------------------------ */

/* Makes the list of ALPN (RFC 7301, section 3.1), to be freed. 0; -EINVAL: a protocol has no bytes,
   or more than 255; -ENOMEM. */
int hafti_tls_list_protocols(const char *const protocols[], size_t count, char **list,
                             size_t *size);

/* ---- stream.c ------------------------------------------------------------------------------- */

/*
 * `agreeing` is held by the task that does the handshake; `calling` while OpenSSL works on the
 * stream or `bytes` is changed, never over a wait; `sending` by the task that sends what is in
 * `bytes.output`, until that is empty. A task that reads leaves bytes that OpenSSL has to send
 * meanwhile (an answer to an update of keys) to the task that has `sending`, and to later calls.
 */
struct haft_tls {
    haft_tls_context_t *context;
    SSL *openssl;
    int descriptor;
    haft_io_mutex_t agreeing, sending;
    pthread_mutex_t calling;
    atomic_flag reading;
    atomic_bool is_agreed; /* the handshake is done */
    bool is_shut;          /* the own direction; of the task that has `sending` */
    atomic_int code;       /* of an error of TLS; sticky */
    char *host;            /* of a client */
    char *origin;          /* of a client: host and port */
    char *peer;            /* see haft_tls_peer */
    char *protocol;        /* see haft_tls_protocol */
    hafti_tls_bytes_t bytes;
    char failure[HAFTI_TLS_TEXT];
};

#endif

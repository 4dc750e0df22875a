/* SPDX-License-Identifier: MIT */
/* Contexts: what streams have in common, and how OpenSSL is set up for them. */
#include "internal.h"

static void free_parts(void *argument) {
    haft_tls_context_t *context = argument;
    hafti_tls_certificates_free(context->certificates);
    hafti_tls_sessions_free(context);
    SSL_CTX_free(context->openssl);
    pthread_mutex_destroy(&context->mutex);
    free(context->protocols);
    free(context);
}

void haft_tls_context_free(haft_tls_context_t *context) {
    if (context != NULL && atomic_fetch_sub(&context->uses, 1) == 1)
        hafti_tls_call(free_parts, context);
}

/* Chooses the protocol. A server that has none in common with its client refuses with an alert (RFC
   7301, section 3.2). */
static int choose_protocol(SSL *openssl, const unsigned char **chosen, unsigned char *size,
                           const unsigned char *offered, unsigned offered_size, void *argument) {
    const haft_tls_context_t *context = argument;
    (void)openssl;
    if (context->protocols == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    unsigned char *found;
    int result = SSL_select_next_proto(&found, size, (const unsigned char *)context->protocols,
                                       (unsigned)context->protocols_size, offered, offered_size);
    *chosen = found;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* A session of TLS 1.2 keeps a name only if it is accepted here; the certificate for it is looked
   up later. */
static int take_name(SSL *openssl, int *alert, void *unused) {
    (void)alert, (void)unused;
    return SSL_get_servername(openssl, TLSEXT_NAMETYPE_host_name) != NULL ? SSL_TLSEXT_ERR_OK
                                                                          : SSL_TLSEXT_ERR_NOACK;
}

static bool is_strong(const SSL_CIPHER *cipher) {
    int bytes = SSL_CIPHER_get_cipher_nid(cipher);
    return SSL_CIPHER_get_kx_nid(cipher) == NID_kx_ecdhe &&
           (bytes == NID_aes_128_gcm || bytes == NID_aes_256_gcm || bytes == NID_chacha20_poly1305);
}

/* RFC 9325, section 4.2: chooses the ciphers that are recommended and that the system's
   configuration allows, in its order. TLS 1.3 has ciphers of its own, and alone remains where none
   is left. */
static bool choose_ciphers(SSL_CTX *openssl) {
    enum { NAME = 64 };
    STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(openssl);
    int count = sk_SSL_CIPHER_num(all);
    char *names = calloc((size_t)(count > 0 ? count : 0) + 1, NAME), *to = names;
    if (names == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(all, i);
        if (is_strong(cipher))
            to +=
                snprintf(to, NAME, "%s%.50s", to != names ? ":" : "", SSL_CIPHER_get_name(cipher));
    }
    int code = to != names ? SSL_CTX_set_cipher_list(openssl, names)
                           : SSL_CTX_set_min_proto_version(openssl, TLS1_3_VERSION);
    free(names);
    return code == 1;
}

static bool set_up(haft_tls_context_t *context) {
    static const unsigned char name[] = "Haft";
    SSL_CTX *openssl = SSL_CTX_new(context->is_server ? TLS_server_method() : TLS_client_method());
    context->openssl = openssl;
    if (openssl == NULL || SSL_CTX_set_min_proto_version(openssl, TLS1_2_VERSION) != 1 ||
        !choose_ciphers(openssl) || SSL_CTX_set_session_id_context(openssl, name, sizeof name) != 1)
        return false;
    SSL_CTX_set_options(openssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(openssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_cert_cb(openssl, hafti_tls_choose_certificates, context);
    if (context->is_server) {
        SSL_CTX_set_session_cache_mode(openssl, SSL_SESS_CACHE_OFF); /* there are tickets */
        SSL_CTX_set_alpn_select_cb(openssl, choose_protocol, context);
        SSL_CTX_set_tlsext_servername_callback(openssl, take_name);
        return true;
    }
    SSL_CTX_set_session_cache_mode(openssl,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(openssl, hafti_tls_session_keep);
    SSL_CTX_set_verify(openssl, SSL_VERIFY_PEER, hafti_tls_verified);
    return SSL_CTX_set_default_verify_paths(openssl) == 1;
}

typedef struct {
    haft_tls_context_t *context;
    const char *file, *key_file;
    hafti_tls_certificate_t *made;
    int code;
} work_t;

static void set_up_context(void *argument) {
    work_t *work = argument;
    work->code = set_up(work->context) ? 0 : -ENOMEM;
    ERR_clear_error();
}

static haft_tls_context_t *new_context(bool is_server) {
    haft_tls_context_t *context = calloc(1, sizeof *context);
    if (context == NULL)
        return NULL;
    context->uses = 1;
    context->is_server = is_server;
    pthread_mutex_init(&context->mutex, NULL);
    work_t work = {.context = context};
    bool returned = haft_io_return_cancels(true);
    int code = hafti_tls_call_blocking(set_up_context, &work);
    haft_io_return_cancels(returned);
    if (code == 0 && work.code == 0)
        return context;
    haft_tls_context_free(context);
    return NULL;
}

haft_tls_context_t *haft_tls_server_context(void) {
    return new_context(true);
}

haft_tls_context_t *haft_tls_client_context(void) {
    return new_context(false);
}

bool haft_tls_is_for_servers(const haft_tls_context_t *context) {
    return context->is_server;
}

/* ---- Certificates ---- */

size_t haft_tls_certificate_count(const haft_tls_context_t *context) {
    size_t count = 0;
    const hafti_tls_certificate_t *certificate = context->certificates;
    for (; certificate != NULL; certificate = certificate->next)
        count++;
    return count;
}

/* Whether OpenSSL takes it: its key may be too short for the system's rules. */
static int try_certificate(haft_tls_context_t *context, const hafti_tls_certificate_t *made) {
    SSL *openssl = SSL_new(context->openssl);
    if (openssl == NULL)
        return -ENOMEM;
    ERR_clear_error();
    int code = 0;
    if (hafti_tls_certificate_use(openssl, made) != 1) {
        char text[HAFTI_TLS_TEXT];
        hafti_tls_openssl_error(text);
        snprintf(context->failure, HAFTI_TLS_TEXT, "%.200s: %.200s", made->chain_file, text);
        code = -EINVAL;
    }
    ERR_clear_error();
    SSL_free(openssl);
    return code;
}

/* Reads a certificate: `*made`, or an error. */
static int make_certificate(haft_tls_context_t *context, const char *chain, const char *key,
                            hafti_tls_certificate_t **made) {
    *made = hafti_tls_certificate_new(chain, key);
    int code = *made != NULL ? hafti_tls_certificate_read(*made, context->failure) : -ENOMEM;
    if (code == 0)
        code = try_certificate(context, *made);
    if (code == 0)
        return 0;
    hafti_tls_certificates_free(*made);
    *made = NULL;
    return code;
}

static void append(hafti_tls_certificate_t **list, hafti_tls_certificate_t *made) {
    while (*list != NULL)
        list = &(*list)->next;
    *list = made;
}

static void add_certificate(void *argument) {
    work_t *work = argument;
    haft_tls_context_t *context = work->context;
    work->code = make_certificate(context, work->file, work->key_file, &work->made);
    if (work->code != 0)
        return;
    pthread_mutex_lock(&context->mutex);
    append(&context->certificates, work->made);
    pthread_mutex_unlock(&context->mutex);
}

static void reload(void *argument) {
    work_t *work = argument;
    haft_tls_context_t *context = work->context;
    hafti_tls_certificate_t *all = NULL, *next = context->certificates;
    for (; next != NULL && work->code == 0; next = next->next) {
        work->code = make_certificate(context, next->chain_file, next->key_file, &work->made);
        append(&all, work->made);
    }
    if (work->code == 0) {
        hafti_tls_certificate_t *before = context->certificates;
        pthread_mutex_lock(&context->mutex);
        context->certificates = all;
        pthread_mutex_unlock(&context->mutex);
        all = before;
    }
    hafti_tls_certificates_free(all);
}

/* ---- Trust ---- */

static int trust_all(haft_tls_context_t *context, STACK_OF(X509) * authorities) {
    X509_STORE *store = SSL_CTX_get_cert_store(context->openssl);
    for (int i = 0; i < sk_X509_num(authorities); i++) {
        X509 *authority = sk_X509_value(authorities, i);
        if (X509_STORE_add_cert(store, authority) != 1 ||
            (context->is_server && SSL_CTX_add_client_CA(context->openssl, authority) != 1))
            return -ENOMEM;
    }
    return 0;
}

static void trust(void *argument) {
    work_t *work = argument;
    STACK_OF(X509) *authorities = sk_X509_new_null();
    work->code = authorities == NULL
                     ? -ENOMEM
                     : hafti_tls_read_certificates(work->file, authorities, work->context->failure);
    if (work->code == 0)
        work->code = trust_all(work->context, authorities);
    sk_X509_pop_free(authorities, X509_free);
    ERR_clear_error();
}

static void trust_nobody(void *argument) {
    work_t *work = argument;
    X509_STORE *store = X509_STORE_new();
    if (store == NULL)
        work->code = -ENOMEM;
    else
        SSL_CTX_set_cert_store(work->context->openssl, store);
}

/* ---- Settings ---- */

/* Does the work in the pool, where files may be slow to read. */
static int change(void (*function)(void *), work_t *work) {
    haft_tls_context_t *context = work->context;
    *context->failure = '\0';
    int code = hafti_tls_call_blocking(function, work);
    if (code == 0)
        code = work->code;
    if (code != 0 && *context->failure == '\0')
        snprintf(context->failure, HAFTI_TLS_TEXT, "%s", haft_io_error_text(code));
    return code;
}

int haft_tls_add_certificate(haft_tls_context_t *context, const char *chain, const char *key) {
    return change(add_certificate, &(work_t){.context = context, .file = chain, .key_file = key});
}

int haft_tls_reload(haft_tls_context_t *context) {
    return change(reload, &(work_t){.context = context});
}

int haft_tls_trust(haft_tls_context_t *context, const char *authorities) {
    return change(trust, &(work_t){.context = context, .file = authorities});
}

int haft_tls_trust_nobody(haft_tls_context_t *context) {
    return change(trust_nobody, &(work_t){.context = context});
}

int haft_tls_set_verify(haft_tls_context_t *context, haft_tls_verify_t verify) {
    static const int modes[] = {SSL_VERIFY_NONE, SSL_VERIFY_PEER,
                                SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT};
    if ((unsigned)verify > HAFT_TLS_REQUIRED)
        return haft_io_refuse(
            -EINVAL, __func__,
            "%d is no way to verify: write HAFT_TLS_NOT_VERIFIED, HAFT_TLS_IF_GIVEN or "
            "HAFT_TLS_REQUIRED",
            (int)verify);
    SSL_CTX_set_verify(context->openssl, modes[verify], hafti_tls_verified);
    return 0;
}

int hafti_tls_list_protocols(const char *const protocols[], size_t count, char **list,
                             size_t *size) {
    *size = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(protocols[i]);
        if (length == 0 || length > 255)
            return haft_io_refuse(
                -EINVAL, "haft_tls_set_protocols",
                "the protocol '%.60s' has %zu bytes: write names of 1 to 255, such "
                "as \"h2\"",
                protocols[i], length);
        *size += 1 + length;
    }
    char *at = *list = malloc(*size + 1);
    if (at == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(protocols[i]);
        *at++ = (char)length;
        at = (char *)memcpy(at, protocols[i], length) + length;
    }
    return 0;
}

int haft_tls_set_protocols(haft_tls_context_t *context, const char *const protocols[],
                           size_t count) {
    char *list;
    size_t size;
    int code = hafti_tls_list_protocols(protocols, count, &list, &size);
    if (code != 0)
        return code;
    if (!context->is_server &&
        SSL_CTX_set_alpn_protos(context->openssl, (unsigned char *)list, (unsigned)size) != 0) {
        free(list);
        return -ENOMEM;
    }
    free(context->protocols);
    context->protocols = list;
    context->protocols_size = size;
    return 0;
}

const char *haft_tls_context_failure(const haft_tls_context_t *context) {
    return context->failure;
}

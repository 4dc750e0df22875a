/* SPDX-License-Identifier: MIT */
/* The certificates of this side: read from files, and chosen by the name that a client asks for. */
#include "internal.h"

static FILE *open_file(const char *name, char failure[HAFTI_TLS_TEXT], int *code) {
    FILE *file = fopen(name, "re");
    *code = file != NULL ? 0 : -errno;
    if (file == NULL)
        snprintf(failure, HAFTI_TLS_TEXT, "%s: %s", name, haft_io_error_text(*code));
    return file;
}

/* The callback for passwords: asks for none. */
static int no_password(char *password, int size, int writes, void *unused) {
    (void)password, (void)size, (void)writes, (void)unused;
    return -1;
}

int hafti_tls_read_certificates(const char *name, STACK_OF(X509) * certificates,
                                char failure[HAFTI_TLS_TEXT]) {
    int code;
    FILE *file = open_file(name, failure, &code);
    if (file == NULL)
        return code;
    ERR_clear_error();
    X509 *next;
    while (code == 0 && (next = PEM_read_X509(file, NULL, no_password, NULL)) != NULL)
        if (sk_X509_push(certificates, next) == 0) {
            X509_free(next);
            code = -ENOMEM;
        }
    fclose(file);
    bool is_read = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (code == 0 && (!is_read || sk_X509_num(certificates) == 0))
        code = -EINVAL;
    if (code != 0)
        snprintf(failure, HAFTI_TLS_TEXT, "%s: %s", name,
                 code == -ENOMEM ? "no memory"
                 : is_read       ? "the file has no certificate"
                                 : "the file has a certificate that cannot be read");
    return code;
}

static int read_key(hafti_tls_certificate_t *certificate, char failure[HAFTI_TLS_TEXT]) {
    int code;
    FILE *file = open_file(certificate->key_file, failure, &code);
    if (file == NULL)
        return code;
    certificate->key = PEM_read_PrivateKey(file, NULL, no_password, NULL);
    fclose(file);
    ERR_clear_error();
    if (certificate->key != NULL)
        return 0;
    snprintf(failure, HAFTI_TLS_TEXT, "%s: the file has no private key without a password",
             certificate->key_file);
    return -EINVAL;
}

int hafti_tls_certificate_read(hafti_tls_certificate_t *certificate, char failure[HAFTI_TLS_TEXT]) {
    certificate->chain = sk_X509_new_null();
    if (certificate->chain == NULL)
        return -ENOMEM;
    int code = hafti_tls_read_certificates(certificate->chain_file, certificate->chain, failure);
    if (code != 0)
        return code;
    certificate->certificate = sk_X509_shift(certificate->chain);
    code = read_key(certificate, failure);
    if (code != 0)
        return code;
    if (X509_check_private_key(certificate->certificate, certificate->key) == 1)
        return 0;
    ERR_clear_error();
    snprintf(failure, HAFTI_TLS_TEXT, "the key in %s does not belong to the certificate in %s",
             certificate->key_file, certificate->chain_file);
    return -EINVAL;
}

hafti_tls_certificate_t *hafti_tls_certificate_new(const char *chain, const char *key) {
    hafti_tls_certificate_t *certificate = calloc(1, sizeof *certificate);
    if (certificate == NULL)
        return NULL;
    certificate->chain_file = strdup(chain);
    certificate->key_file = strdup(key);
    if (certificate->chain_file != NULL && certificate->key_file != NULL)
        return certificate;
    hafti_tls_certificates_free(certificate);
    return NULL;
}

void hafti_tls_certificates_free(hafti_tls_certificate_t *certificates) {
    while (certificates != NULL) {
        hafti_tls_certificate_t *next = certificates->next;
        X509_free(certificates->certificate);
        sk_X509_pop_free(certificates->chain, X509_free);
        EVP_PKEY_free(certificates->key);
        free(certificates->chain_file);
        free(certificates->key_file);
        free(certificates);
        certificates = next;
    }
}

int hafti_tls_certificate_use(SSL *openssl, const hafti_tls_certificate_t *certificate) {
    return SSL_use_cert_and_key(openssl, certificate->certificate, certificate->key,
                                certificate->chain, 1);
}

static bool is_for(const hafti_tls_certificate_t *certificate, const char *name) {
    return X509_check_host(certificate->certificate, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                           NULL) == 1;
}

/* Several may be for one name, with keys of different kinds: OpenSSL then chooses among them. */
static int use_certificates_for(SSL *openssl, const haft_tls_context_t *context, const char *name) {
    int used = 0;
    for (const hafti_tls_certificate_t *certificate = context->certificates; certificate != NULL;
         certificate = certificate->next)
        if (is_for(certificate, name))
            used |= hafti_tls_certificate_use(openssl, certificate);
    return used;
}

int hafti_tls_choose_certificates(SSL *openssl, void *argument) {
    haft_tls_context_t *context = argument;
    const char *name =
        context->is_server ? SSL_get_servername(openssl, TLSEXT_NAMETYPE_host_name) : NULL;
    int used = 0;
    pthread_mutex_lock(&context->mutex);
    const hafti_tls_certificate_t *first = context->certificates;
    if (name != NULL)
        used = use_certificates_for(openssl, context, name);
    if (used == 0 && first != NULL)
        used = hafti_tls_certificate_use(openssl, first);
    pthread_mutex_unlock(&context->mutex);
    return used != 0 || first == NULL;
}

/* SPDX-License-Identifier: MIT */
/* Verifies the peer's certificate: OpenSSL decides, and this file describes the certificate that is
   not good, and the reason. */
#include "internal.h"

#include <arpa/inet.h>
#include <stdarg.h>

/* ---- Texts ---- */

/* A text as far as it is written; it may be cut off. */
typedef struct {
    char *text;
    size_t size;
} text_t;

static size_t left_of(const text_t *text) {
    return HAFTI_TLS_TEXT - text->size;
}

__attribute__((format(printf, 2, 3))) static void print(text_t *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text->text + text->size, left_of(text), format, arguments);
    va_end(arguments);
    if (size > 0)
        text->size += (size_t)size < left_of(text) ? (size_t)size : left_of(text) - 1;
}

static void print_bio(text_t *text, BIO *bio) {
    char *bytes = NULL;
    long size = BIO_get_mem_data(bio, &bytes);
    print(text, "%.*s", (int)size, bytes != NULL ? bytes : "");
}

static void print_name(text_t *text, const X509_NAME *name) {
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL)
        return;
    X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253);
    print_bio(text, bio);
    BIO_free(bio);
}

static void print_time(text_t *text, const ASN1_TIME *time) {
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL)
        return;
    ASN1_TIME_print(bio, time);
    print_bio(text, bio);
    BIO_free(bio);
}

static void print_address(text_t *text, const ASN1_OCTET_STRING *address) {
    char digits[INET6_ADDRSTRLEN];
    bool is_old = ASN1_STRING_length(address) == 4;
    if (inet_ntop(is_old ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), digits,
                  sizeof digits) != NULL)
        print(text, "%s", digits);
}

/* The hosts that a certificate is for. */
static void print_hosts(text_t *text, X509 *certificate) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    const char *divider = "";
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_DNS && name->type != GEN_IPADD)
            continue;
        print(text, "%s", divider);
        divider = ", ";
        if (name->type == GEN_DNS)
            print(text, "%.*s", ASN1_STRING_length(name->d.dNSName),
                  (const char *)ASN1_STRING_get0_data(name->d.dNSName));
        else
            print_address(text, name->d.iPAddress);
    }
    if (*divider == '\0')
        print(text, "no host");
    GENERAL_NAMES_free(names);
}

/* A certificate may name itself with bytes that a terminal would obey. */
static void make_printable(char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

static void describe(haft_tls_t *stream, X509_STORE_CTX *verification) {
    int error = X509_STORE_CTX_get_error(verification);
    X509 *certificate = X509_STORE_CTX_get_current_cert(verification);
    text_t text = {.text = stream->failure};
    *text.text = '\0';
    if (certificate == NULL) {
        print(&text, "%s", X509_verify_cert_error_string(error));
        return;
    }
    print(&text, "the certificate '");
    print_name(&text, X509_get_subject_name(certificate));
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        print(&text, "' has expired on ");
        print_time(&text, X509_get0_notAfter(certificate));
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        print(&text, "' is not valid before ");
        print_time(&text, X509_get0_notBefore(certificate));
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        print(&text, "' is for ");
        print_hosts(&text, certificate);
        print(&text, ", not for the host %s", stream->host);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        print(&text, "' is signed by itself, and not trusted");
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        print(&text, "' is of an issuer that is not trusted: ");
        print_name(&text, X509_get_issuer_name(certificate));
        break;
    default:
        print(&text, "': %s", X509_verify_cert_error_string(error));
    }
    make_printable(stream->failure);
}

/* ---- Verifying ---- */

int hafti_tls_verified(int is_good, X509_STORE_CTX *verification) {
    int index = SSL_get_ex_data_X509_STORE_CTX_idx();
    if (is_good == 0)
        describe(SSL_get_app_data((SSL *)X509_STORE_CTX_get_ex_data(verification, index)),
                 verification);
    return is_good;
}

int hafti_tls_expect_host(SSL *openssl, const char *host) {
    X509_VERIFY_PARAM *expected = SSL_get0_param(openssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(expected, host) == 1)
        return 1;
    ERR_clear_error();
    /* RFC 9110, section 4.3.4: a common name is no host. */
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return X509_VERIFY_PARAM_set1_host(expected, host, 0) == 1 &&
           SSL_set_tlsext_host_name(openssl, host) == 1;
}

char *hafti_tls_subject(X509 *certificate) {
    char subject[HAFTI_TLS_TEXT];
    text_t text = {.text = subject};
    *subject = '\0';
    print_name(&text, X509_get_subject_name(certificate));
    make_printable(subject);
    return strdup(subject);
}

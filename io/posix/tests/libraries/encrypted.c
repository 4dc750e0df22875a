/* SPDX-License-Identifier: MIT */
/* A hundred encrypted connections at once, server and clients in one process, with OpenSSL as it
   is. */
#include "served.h"

#include <haft/posix.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

enum { QUESTIONS = 10, LONG_VALUE = 1 << 18 };
static SSL_CTX *of_server, *of_client;
static _Atomic int together;
static char value[LONG_VALUE];

/* Not OpenSSL's own: of two threads that first ask for an algorithm at once, one may lose what its
   table of algorithms had (40 bytes each, once in 100 runs of this test). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libcrypto";
}

/* ---- A certificate by itself ---- */

static void certify(void) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
    CHECK_EQUAL(SSL_CTX_use_certificate(of_server, certificate), 1);
    CHECK_EQUAL(SSL_CTX_use_PrivateKey(of_server, key), 1);
    CHECK_EQUAL(X509_STORE_add_cert(SSL_CTX_get_cert_store(of_client), certificate), 1);
    SSL_CTX_set_verify(of_client, SSL_VERIFY_PEER, NULL);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* ---- The two ends ---- */

static SSL *begin(SSL_CTX *context, int connection) {
    SSL *session = SSL_new(context);
    CHECK(session != NULL);
    CHECK_EQUAL(SSL_set_fd(session, connection), 1);
    return session;
}

static void end(SSL *session, int connection) {
    SSL_shutdown(session);
    SSL_free(session);
    CHECK_EQUAL(close(connection), 0);
}

static void *echo(void *argument) {
    int connection = (int)(intptr_t)argument, size;
    SSL *session = begin(of_server, connection);
    CHECK_EQUAL(SSL_accept(session), 1);
    char buffer[4096];
    while ((size = SSL_read(session, buffer, sizeof buffer)) > 0)
        CHECK_EQUAL(SSL_write(session, buffer, size), size);
    CHECK_EQUAL(SSL_get_error(session, size), SSL_ERROR_ZERO_RETURN);
    end(session, connection);
    return NULL;
}

static void expect(SSL *session, const char *bytes, int size) {
    char piece[4096];
    for (int got = 0, more; got < size; got += more) {
        more = SSL_read(session, piece, sizeof piece);
        CHECK(more > 0 && more <= size - got);
        if (more <= 0)
            return;
        CHECK(memcmp(piece, bytes + got, (size_t)more) == 0);
    }
}

static void *send_value(void *session) {
    for (int i = 0; i < LONG_VALUE; i += 4096)
        CHECK_EQUAL(SSL_write(session, value + i, 4096), 4096);
    return NULL;
}

static void *ask(void *argument) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&address, sizeof address), 0);
    SSL *session = begin(of_client, connection);
    CHECK_EQUAL(SSL_connect(session), 1);
    CHECK_EQUAL(SSL_get_verify_result(session), X509_V_OK);
    together++;
    while (together < CLIENTS)
        usleep(1000);
    char question[64];
    for (int i = 0; i < QUESTIONS; i++) {
        int size = snprintf(question, sizeof question, "%d asks %d", (int)(intptr_t)argument, i);
        CHECK_EQUAL(SSL_write(session, question, size), size);
        expect(session, question, size);
    }
    if ((intptr_t)argument == 1) {
        send_value(session);
        expect(session, value, LONG_VALUE);
    }
    end(session, connection);
    return NULL;
}

BODY(talk) {
    serve_clients(echo, ask);
    return NULL;
}
static void talk_on(const haft_io_run_options_t *options) {
    together = 0;
    CHECK_EQUAL(haft_io_run_with(options, talk, NULL), 0);
}
static void a_hundred_encrypted_connections_are_open_at_once(void) {
    check_everywhere_twice(talk_on);
}

/* ---- Errors, of which OpenSSL keeps a queue for each thread ---- */

static void *keeps_its_error(void *argument) {
    int reason = 100 + (int)(intptr_t)argument;
    for (int i = 0; i < QUESTIONS; i++) {
        ERR_raise(ERR_LIB_USER, reason);
        usleep(100);
        CHECK_EQUAL(ERR_GET_REASON(ERR_get_error()), reason);
        CHECK_EQUAL(ERR_get_error(), 0);
    }
    return NULL;
}
BODY(keep_errors) {
    for (intptr_t i = 0; i < CLIENTS; i++)
        haft_io_spawn(keeps_its_error, check_number(i));
    return NULL;
}
static void keep_errors_on(const haft_io_run_options_t *options) {
    if (options->own_thread_locals)
        CHECK_EQUAL(haft_io_run_with(options, keep_errors, NULL), 0);
}
static void a_queue_of_errors_is_the_tasks_with_thread_locals_of_its_own(void) {
    check_everywhere_twice(keep_errors_on);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    check_backend();
    CHECK(haft_posix_answers());
    of_server = SSL_CTX_new(TLS_server_method());
    of_client = SSL_CTX_new(TLS_client_method());
    for (int i = 0; i < LONG_VALUE; i++)
        value[i] = (char)(i * 7 + i / 4096);
    certify();
    RUN(a_hundred_encrypted_connections_are_open_at_once);
    RUN(a_queue_of_errors_is_the_tasks_with_thread_locals_of_its_own);
    SSL_CTX_free(of_server);
    SSL_CTX_free(of_client);
    return check_end();
}

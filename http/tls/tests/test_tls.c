/* SPDX-License-Identifier: MIT */
/* Streams of TLS, on every back end and in simulations. */
#include "check_tls.h"

#include "../../../core/tests/teaching.h"

#include <netinet/in.h>
#include <openssl/x509_vfy.h>

static issued_t authority, other_authority, server, other_server, expired, early, alone, client,
    localhost;
static haft_tls_context_t *servers, *clients;

static haft_tls_context_t *server_with(const issued_t *issued) {
    haft_tls_context_t *context = haft_tls_server_context();
    CHECK_EQUAL(haft_tls_add_certificate(context, issued->chain_file, issued->key_file), 0);
    return context;
}

static haft_tls_context_t *client_that_trusts(const issued_t *issued) {
    haft_tls_context_t *context = haft_tls_client_context();
    CHECK_EQUAL(haft_tls_trust_nobody(context), 0);
    if (issued != NULL)
        CHECK_EQUAL(haft_tls_trust(context, issued->chain_file), 0);
    return context;
}

/* ---- Pairs of streams ---- */

typedef struct pair {
    haft_tls_context_t *servers, *clients;
    const char *host;
    void *(*serve)(void *pair), *(*ask)(void *pair);
    haft_tls_t *server, *client;
    int server_code, client_code; /* of the handshakes */
    haft_io_event_t is_refused;   /* the server's writes were */
} pair_t;

static void *serve_pair(void *argument) {
    pair_t *pair = argument;
    pair->server_code = haft_tls_handshake(pair->server);
    if (pair->serve != NULL)
        pair->serve(pair);
    return NULL;
}

static void *ask_pair(void *argument) {
    pair_t *pair = argument;
    pair->client_code = haft_tls_handshake(pair->client);
    if (pair->ask != NULL)
        pair->ask(pair);
    return NULL;
}

static void close_pair(pair_t *pair) {
    haft_tls_close(pair->client);
    haft_tls_close(pair->server);
    pair->client = pair->server = NULL;
}

static void open_pair(pair_t *pair) {
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pair->server = haft_tls_new(pair->servers != NULL ? pair->servers : servers, ends[0], NULL);
    pair->client = haft_tls_new(pair->clients != NULL ? pair->clients : clients, ends[1],
                                pair->host != NULL ? pair->host : "localhost");
}

/* Both shake hands, and then do what the pair asks for. */
static void join_pair(pair_t *pair) {
    haft_io_call_t calls[] = {{serve_pair, pair, NULL}, {ask_pair, pair, NULL}};
    CHECK_EQUAL(haft_io_all(calls, 2), 0);
}

static void run_pair(pair_t *pair) {
    open_pair(pair);
    join_pair(pair);
}

static void *say_nothing(void *argument) {
    pair_t *pair = argument;
    char byte;
    haft_tls_read(pair->server, &byte, 1);
    return NULL;
}

/* ---- What a client accepts ---- */

static void check_refused(const issued_t *of, const char *host, int error, const char *text) {
    haft_tls_context_t *context = server_with(of);
    pair_t pair = {.servers = context, .host = host, .serve = say_nothing};
    run_pair(&pair);
    CHECK_EQUAL(pair.client_code, HAFT_TLS_ERROR_OF_CERTIFICATE - error);
    const char *said = haft_tls_failure(pair.client);
    if (strstr(said, text) == NULL) {
        fprintf(stderr, "said: %s\nnot:  %s\n", said, text);
        CHECK(false);
    }
    CHECK_EQUAL(haft_tls_read(pair.client, &pair, 1), pair.client_code);
    /* The server is told. */
    CHECK(strstr(haft_tls_failure(pair.server), "the peer has refused to go on: ") != NULL);
    close_pair(&pair);
    haft_tls_context_free(context);
}

BODY(says_which_certificate_and_why) {
    check_refused(&expired, NULL, X509_V_ERR_CERT_HAS_EXPIRED,
                  "the certificate 'CN=expired' has expired on ");
    check_refused(&early, NULL, X509_V_ERR_CERT_NOT_YET_VALID,
                  "the certificate 'CN=early' is not valid before ");
    check_refused(&server, "elsewhere.example", X509_V_ERR_HOSTNAME_MISMATCH,
                  "the certificate 'CN=server' is for localhost, *.example.org, 127.0.0.1, not for "
                  "the host elsewhere.example");
    check_refused(&server, "a.b.example.org", X509_V_ERR_HOSTNAME_MISMATCH, "not for the host");
    check_refused(&server, "127.0.0.2", X509_V_ERR_IP_ADDRESS_MISMATCH,
                  "not for the host 127.0.0.2");
    check_refused(&localhost, NULL, X509_V_ERR_HOSTNAME_MISMATCH,
                  "the certificate 'CN=localhost' is for no host, not for the host localhost");
    check_refused(&alone, NULL, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
                  "the certificate 'CN=alone' is signed by itself, and not trusted");
    check_refused(&other_server, NULL, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
                  "the certificate 'CN=other authority' is signed by itself, and not trusted");
    CHECK(strcmp(haft_tls_error_text(HAFT_TLS_ERROR_OF_CERTIFICATE - X509_V_ERR_CERT_HAS_EXPIRED),
                 "certificate has expired") == 0);
    CHECK(strcmp(haft_tls_error_text(HAFT_TLS_ERROR_OF_ALERT - 45), "certificate expired") == 0);
    CHECK(strcmp(haft_tls_error_text(HAFT_TLS_ERROR_OF_ALERT - 116), "certificate required") == 0);
    CHECK(strcmp(haft_tls_error_text(-ECONNRESET), haft_io_error_text(-ECONNRESET)) == 0);
    return NULL;
}

BODY(verifies_hosts_and_addresses) {
    static const char *const hosts[] = {"localhost", "LOCALHOST.", "a.example.org", "127.0.0.1"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        pair_t pair = {.host = hosts[i]};
        run_pair(&pair);
        CHECK_EQUAL(pair.client_code, 0);
        CHECK_EQUAL(pair.server_code, 0);
        CHECK(strcmp(haft_tls_peer(pair.client), "CN=server") == 0);
        CHECK(haft_tls_peer(pair.server) == NULL);
        CHECK(strcmp(haft_tls_version(pair.client), "TLSv1.3") == 0);
        CHECK(haft_tls_cipher(pair.server) != NULL && haft_tls_protocol(pair.server) == NULL);
        bool is_name = *hosts[i] != '1';
        CHECK((haft_tls_server_name(pair.server) != NULL) == is_name);
        close_pair(&pair);
    }
    char too_long[300];
    memset(too_long, 'a', sizeof too_long);
    too_long[sizeof too_long - 1] = '\0';
    const char *const wrong[] = {"", ".", ".localhost", ".example.org", too_long, NULL};
    for (int i = 0; i < 6; i++) {
        int ends[2];
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        HAFT_TLS_SCOPED haft_tls_t *stream = haft_tls_new(clients, ends[0], wrong[i]);
        CHECK_EQUAL(haft_tls_handshake(stream), -EINVAL);
        CHECK_EQUAL(haft_tls_write_all(stream, "x", 1), -EINVAL);
        CHECK(strstr(haft_tls_failure(stream), "needs a host whose certificate") != NULL);
        haft_io_close(ends[1]);
    }
    CHECK_EQUAL(haft_tls_read(NULL, NULL, 0), -ENOMEM);
    CHECK_EQUAL(haft_tls_write_all(NULL, NULL, 0), -ENOMEM);
    return NULL;
}

/* With TLS 1.2 the other side offers, or chooses from, these: 0, or an alert. */
static void check_ciphers(const char *list, int most, bool is_client, int code) {
    pair_t pair = {.serve = say_nothing};
    open_pair(&pair);
    SSL *other = haft_tls_ssl(is_client ? pair.client : pair.server);
    CHECK_EQUAL(SSL_set_max_proto_version(other, most), 1);
    CHECK_EQUAL(SSL_set_cipher_list(other, list), 1);
    pair.serve = NULL;
    join_pair(&pair);
    CHECK_EQUAL(is_client ? pair.server_code : pair.client_code, code);
    close_pair(&pair);
}

/* RFC 9325, section 4. */
BODY(agrees_on_strong_ciphers_alone) {
    const STACK_OF(SSL_CIPHER) * all;
    pair_t pair = {.servers = NULL};
    open_pair(&pair);
    haft_tls_t *streams[] = {pair.client, pair.server};
    for (int i = 0; i < 2; i++) {
        all = SSL_get_ciphers(haft_tls_ssl(streams[i]));
        CHECK(sk_SSL_CIPHER_num(all) > 3);
        for (int j = 0; j < sk_SSL_CIPHER_num(all); j++) {
            const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(all, j);
            CHECK(SSL_CIPHER_is_aead(cipher) == 1);
            CHECK(SSL_CIPHER_get_kx_nid(cipher) == NID_kx_ecdhe ||
                  SSL_CIPHER_get_kx_nid(cipher) == NID_kx_any /* of TLS 1.3 */);
        }
    }
    close_pair(&pair);
    check_ciphers("ECDHE-ECDSA-AES128-SHA", TLS1_2_VERSION, true, -EPROTO);
    check_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256", TLS1_2_VERSION, true, 0);
    check_ciphers("ECDHE-ECDSA-AES128-SHA", TLS1_3_VERSION, true, 0);
    return NULL;
}

BODY(trusts_nobody_unless_told) {
    haft_tls_context_t *context = client_that_trusts(NULL), *anybody = client_that_trusts(NULL);
    pair_t pair = {.clients = context, .serve = say_nothing};
    run_pair(&pair);
    CHECK(pair.client_code < HAFT_TLS_ERROR_OF_CERTIFICATE);
    close_pair(&pair);
    haft_tls_set_verify(anybody, HAFT_TLS_NOT_VERIFIED);
    pair.clients = anybody;
    pair.serve = NULL;
    run_pair(&pair);
    CHECK_EQUAL(pair.client_code, 0);
    haft_tls_context_free(context);
    haft_tls_context_free(anybody); /* while it is used */
    close_pair(&pair);
    return NULL;
}

/* ---- Clients' certificates ---- */

static void *read_end(void *argument) {
    pair_t *pair = argument;
    char byte;
    ssize_t got = haft_tls_read(pair->client, &byte, 1);
    if (pair->client_code == 0)
        pair->client_code = (int)got;
    return NULL;
}

static void *say_goodbye(void *argument) {
    pair_t *pair = argument;
    if (pair->server_code == 0)
        CHECK_EQUAL(haft_tls_shutdown(pair->server), 0);
    return NULL;
}

BODY(asks_for_clients_certificates) {
    haft_tls_context_t *context = server_with(&server), *known = client_that_trusts(&authority),
                       *stranger = client_that_trusts(&authority);
    CHECK_EQUAL(haft_tls_trust(context, authority.chain_file), 0);
    haft_tls_set_verify(context, HAFT_TLS_REQUIRED);
    CHECK_EQUAL(haft_tls_add_certificate(known, client.chain_file, client.key_file), 0);
    CHECK_EQUAL(haft_tls_add_certificate(stranger, alone.chain_file, alone.key_file), 0);
    struct {
        haft_tls_context_t *clients;
        haft_tls_verify_t verify;
        bool is_accepted;
    } cases[] = {{known, HAFT_TLS_REQUIRED, true},       {stranger, HAFT_TLS_REQUIRED, false},
                 {clients, HAFT_TLS_REQUIRED, false},    {known, HAFT_TLS_IF_GIVEN, true},
                 {stranger, HAFT_TLS_IF_GIVEN, false},   {clients, HAFT_TLS_IF_GIVEN, true},
                 {stranger, HAFT_TLS_NOT_VERIFIED, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        haft_tls_set_verify(context, cases[i].verify);
        pair_t pair = {
            .servers = context, .clients = cases[i].clients, .serve = say_goodbye, .ask = read_end};
        run_pair(&pair);
        CHECK_EQUAL(pair.server_code == 0, cases[i].is_accepted);
        CHECK_EQUAL(pair.client_code == 0, cases[i].is_accepted);
        if (cases[i].is_accepted && cases[i].clients == known)
            CHECK(strcmp(haft_tls_peer(pair.server), "CN=client") == 0);
        if (!cases[i].is_accepted)
            CHECK(pair.client_code < HAFT_TLS_ERROR_OF_ALERT);
        if (!cases[i].is_accepted && cases[i].clients == stranger)
            CHECK(strstr(haft_tls_failure(pair.server), "'CN=alone' is signed by itself") != NULL);
        close_pair(&pair);
    }
    haft_tls_context_free(context);
    haft_tls_context_free(known);
    haft_tls_context_free(stranger);
    return NULL;
}

/* ---- ALPN and SNI ---- */

static void check_protocol(const char *offered, int server_code, const char *protocol) {
    static const char *const spoken[] = {"h2", "http/1.1"};
    haft_tls_context_t *context = server_with(&server), *asking = client_that_trusts(&authority);
    CHECK_EQUAL(haft_tls_set_protocols(context, spoken, 2), 0);
    const char *const offers[] = {"other", offered};
    if (offered != NULL)
        CHECK_EQUAL(haft_tls_set_protocols(asking, offers, 2), 0);
    pair_t pair = {.servers = context, .clients = asking};
    run_pair(&pair);
    CHECK_EQUAL(pair.server_code == 0, server_code == 0);
    if (server_code != 0)
        CHECK_EQUAL(pair.client_code, HAFT_TLS_ERROR_OF_ALERT - TLS1_AD_NO_APPLICATION_PROTOCOL);
    const char *chosen = haft_tls_protocol(pair.client), *seen = haft_tls_protocol(pair.server);
    CHECK(protocol != NULL ? strcmp(chosen, protocol) == 0 && strcmp(seen, protocol) == 0
                           : chosen == NULL && seen == NULL);
    close_pair(&pair);
    haft_tls_context_free(context);
    haft_tls_context_free(asking);
}

BODY(agrees_on_a_protocol) {
    check_protocol("h2", 0, "h2");
    check_protocol("http/1.1", 0, "http/1.1");
    check_protocol(NULL, 0, NULL);
    check_protocol("strange", -EPROTO, NULL);
    const char *const empty = "";
    CHECK_EQUAL(haft_tls_set_protocols(clients, &empty, 1), -EINVAL);
    return NULL;
}

BODY(chooses_the_certificate_by_name) {
    issued_t b = issue((issue_t){.name = "b", .hosts = "DNS:b.example", .issuer = &authority});
    haft_tls_context_t *context = server_with(&server);
    CHECK_EQUAL(haft_tls_add_certificate(context, b.chain_file, b.key_file), 0);
    static const char *const hosts[] = {"b.example", "localhost", "x.example.org"};
    for (int i = 0; i < 3; i++) {
        pair_t pair = {.servers = context, .host = hosts[i]};
        run_pair(&pair);
        CHECK_EQUAL(pair.client_code, 0);
        CHECK(strcmp(haft_tls_peer(pair.client), i == 0 ? "CN=b" : "CN=server") == 0);
        CHECK(strcmp(haft_tls_server_name(pair.server), hosts[i]) == 0);
        close_pair(&pair);
    }
    haft_tls_context_free(context);
    forget(&b);
    return NULL;
}

BODY(reloads_certificates) {
    issued_t before = issue((issue_t){.name = "r", .hosts = "DNS:before", .issuer = &authority});
    haft_tls_context_t *context = server_with(&before);
    pair_t pair = {.servers = context, .host = "before"};
    run_pair(&pair);
    CHECK_EQUAL(pair.client_code, 0);
    X509_free(before.certificate);
    EVP_PKEY_free(before.key);
    issued_t after = issue((issue_t){.name = "r", .hosts = "DNS:after", .issuer = &authority});
    CHECK_EQUAL(haft_tls_reload(context), 0);
    pair_t again = {.servers = context, .host = "after"};
    run_pair(&again);
    CHECK_EQUAL(again.client_code, 0);
    /* The first stream goes on. */
    char text[6] = "";
    CHECK_EQUAL(haft_tls_write_all(pair.server, "hello", 5), 0);
    CHECK_EQUAL(haft_tls_read(pair.client, text, 5), 5);
    close_pair(&pair);
    close_pair(&again);

    /* A file that cannot be read changes nothing. */
    FILE *file = fopen(after.key_file, "we");
    fputs("no key\n", file);
    fclose(file);
    CHECK_EQUAL(haft_tls_reload(context), -EINVAL);
    CHECK(strstr(haft_tls_context_failure(context), "r.key: ") != NULL);
    run_pair(&again);
    CHECK_EQUAL(again.client_code, 0);
    close_pair(&again);
    haft_tls_context_free(context);
    forget(&after);
    return NULL;
}

BODY(says_which_file_and_why) {
    haft_tls_context_t *context = haft_tls_server_context();
    struct {
        const char *chain, *key;
        int code;
        const char *text;
    } cases[] = {
        {"/nowhere/a", server.key_file, -ENOENT, "/nowhere/a: No such file or directory"},
        {server.chain_file, "/nowhere/b", -ENOENT, "/nowhere/b: No such file or directory"},
        {server.key_file, server.key_file, -EINVAL, "server.key: the file has no certificate"},
        {server.chain_file, server.chain_file, -EINVAL, "server.pem: the file has no private key"},
        {server.chain_file, client.key_file, -EINVAL, "client.key does not belong to"},
        {server.chain_file, server.key_file, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQUAL(haft_tls_add_certificate(context, cases[i].chain, cases[i].key), cases[i].code);
        if (strstr(haft_tls_context_failure(context), cases[i].text) == NULL) {
            fprintf(stderr, "said: %s\n", haft_tls_context_failure(context));
            CHECK(false);
        }
    }
    CHECK_EQUAL(haft_tls_trust(context, "/nowhere/c"), -ENOENT);
    CHECK_EQUAL(haft_tls_trust(context, server.key_file), -EINVAL);
    haft_tls_context_free(context);
    return NULL;
}

/* ---- Bytes ---- */

enum { MANY = 1 << 20 };

static char byte_at(size_t place, char salt) {
    return (char)(place * 31 + place / 251 + (size_t)salt);
}

static int write_many(haft_tls_t *stream, char salt) {
    static const size_t pieces[] = {1, 16384, 100, 70000, 16385, 5000};
    char *buffer = malloc(70000);
    int code = 0;
    for (size_t at = 0, turn = 0; at < MANY && code == 0; turn++) {
        size_t size = pieces[turn % 6] < MANY - at ? pieces[turn % 6] : MANY - at;
        for (size_t i = 0; i < size; i++)
            buffer[i] = byte_at(at + i, salt);
        code = haft_tls_write_all(stream, buffer, size);
        at += size;
    }
    free(buffer);
    return code == 0 ? haft_tls_shutdown(stream) : code;
}

static void read_many(haft_tls_t *stream, char salt, bool lent) {
    size_t at = 0;
    bool differs = false;
    ssize_t got;
    char buffer[10000];
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    while ((got = lent ? haft_tls_read_lent(stream, &bytes)
                       : haft_tls_read(stream, buffer, sizeof buffer)) > 0)
        for (ssize_t i = 0; i < got; i++, at++)
            differs |= ((const char *)(lent ? bytes : buffer))[i] != byte_at(at, salt);
    CHECK_EQUAL(got, 0);
    CHECK_EQUAL(at, MANY);
    CHECK(!differs);
}

static void *write_as_server(void *argument) {
    CHECK_EQUAL(write_many(((pair_t *)argument)->server, 's'), 0);
    return NULL;
}
static void *write_as_client(void *argument) {
    CHECK_EQUAL(write_many(((pair_t *)argument)->client, 'c'), 0);
    return NULL;
}
static void *read_as_server(void *argument) {
    read_many(((pair_t *)argument)->server, 'c', true);
    return NULL;
}
static void *read_as_client(void *argument) {
    read_many(((pair_t *)argument)->client, 's', false);
    return NULL;
}
/* Asks for new keys, both of its own and of the peer's. */
static void *update_keys(void *argument) {
    pair_t *pair = argument;
    CHECK_EQUAL(haft_tls_handshake(pair->client), 0);
    CHECK_EQUAL(SSL_key_update(haft_tls_ssl(pair->client), SSL_KEY_UPDATE_REQUESTED), 1);
    return NULL;
}

BODY(reads_and_writes_at_once) {
    pair_t pair = {.servers = NULL};
    open_pair(&pair);
    haft_io_call_t calls[] = {{write_as_server, &pair, NULL},
                              {write_as_client, &pair, NULL},
                              {read_as_server, &pair, NULL},
                              {read_as_client, &pair, NULL}};
    CHECK_EQUAL(haft_io_all(calls, 4), 0);
    char byte = 0;
    CHECK_EQUAL(haft_tls_read(pair.client, &byte, 1), 0);
    CHECK_EQUAL(haft_tls_write_all(pair.client, &byte, 1), -EPIPE);
    CHECK_EQUAL(haft_tls_shutdown(pair.server), -EPIPE);
    close_pair(&pair);
    return NULL;
}

BODY(updates_keys_while_both_write) {
    pair_t pair = {.servers = NULL};
    run_pair(&pair);
    update_keys(&pair);
    haft_io_call_t calls[] = {{write_as_server, &pair, NULL},
                              {write_as_client, &pair, NULL},
                              {read_as_server, &pair, NULL},
                              {read_as_client, &pair, NULL}};
    CHECK_EQUAL(haft_io_all(calls, 4), 0);
    close_pair(&pair);
    return NULL;
}

static void *echo_until_error(void *argument) {
    haft_tls_t *stream = ((pair_t *)argument)->server;
    char buffer[1000];
    ssize_t got;
    while ((got = haft_tls_read(stream, buffer, sizeof buffer)) > 0)
        if (haft_tls_write_all(stream, buffer, (size_t)got) != 0)
            break;
    return NULL;
}
static void *ask_and_check(void *argument) {
    haft_tls_t *stream = ((pair_t *)argument)->client;
    char said[40000], heard[40000];
    /* The server can send back what a simulated stream holds before this reads. */
    size_t most = haft_io_seed() != 0 ? 4000 : sizeof said;
    for (size_t size = 1; size < most; size = size * 3 + 1) {
        memset(said, (int)size, size);
        CHECK_EQUAL(haft_tls_write_all(stream, said, size), 0);
        for (size_t at = 0; at < size;) {
            ssize_t got = haft_tls_read(stream, heard + at, size - at);
            CHECK(got > 0);
            if (got <= 0)
                return NULL;
            at += (size_t)got;
        }
        CHECK(memcmp(said, heard, size) == 0);
    }
    CHECK_EQUAL(haft_tls_shutdown(stream), 0);
    return NULL;
}
static void *say_little(void *argument) {
    pair_t *pair = argument;
    char said[2000], heard[2000];
    memset(said, 'l', sizeof said);
    int code = haft_tls_write_all(pair->client, said, sizeof said);
    for (size_t at = 0; at < sizeof said && code == 0;) {
        ssize_t got = haft_tls_read(pair->client, heard + at, sizeof said - at);
        code = got > 0 ? 0 : -1;
        at += got > 0 ? (size_t)got : 0;
    }
    if (code == 0)
        CHECK(memcmp(said, heard, sizeof said) == 0);
    haft_tls_shutdown(pair->client);
    return NULL;
}
BODY(answers) {
    pair_t pair = {.serve = echo_until_error, .ask = ask_and_check};
    run_pair(&pair);
    close_pair(&pair);
    return NULL;
}

/* ---- Ends ---- */

static void *write_and_vanish(void *argument) {
    pair_t *pair = argument;
    CHECK_EQUAL(haft_tls_write_all(pair->client, "whole?", 6), 0);
    haft_tls_close(pair->client);
    pair->client = NULL;
    return NULL;
}
static void *read_what_is_cut_off(void *argument) {
    pair_t *pair = argument;
    char text[10];
    CHECK_EQUAL(haft_tls_read(pair->server, text, sizeof text), 6);
    for (int i = 0; i < 2; i++) {
        ssize_t got = haft_tls_read(pair->server, text, sizeof text);
        CHECK_EQUAL(got, -ECONNRESET);
        CHECK(*haft_tls_failure(pair->server) != '\0');
    }
    return NULL;
}
BODY(an_end_without_notice_is_an_error) {
    pair_t pair = {.serve = read_what_is_cut_off, .ask = write_and_vanish};
    run_pair(&pair);
    close_pair(&pair);
    return NULL;
}

/* The peer sends the text instead of a handshake, and then ends. */
static int shake_hands_with(const char *text, size_t size, char failure[200]) {
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    HAFT_TLS_SCOPED haft_tls_t *stream = haft_tls_new(servers, ends[0], NULL);
    CHECK_EQUAL(haft_io_write_all(ends[1], text, size), 0);
    haft_io_shutdown(ends[1], SHUT_WR);
    int code = haft_tls_handshake(stream);
    snprintf(failure, 200, "%s", haft_tls_failure(stream));
    haft_io_close(ends[1]);
    return code;
}
BODY(a_peer_that_vanishes_or_speaks_otherwise) {
    char failure[200];
    CHECK_EQUAL(shake_hands_with("", 0, failure), -ECONNRESET);
    CHECK_EQUAL(shake_hands_with("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 11, failure),
                -ECONNRESET);
    CHECK_EQUAL(shake_hands_with("GET / HTTP/1.1\r\n\r\n", 18, failure), -EPROTO);
    CHECK(strcmp(failure, "http request") == 0);
    CHECK_EQUAL(shake_hands_with("SSH-2.0-OpenSSH_9.2\r\n", 21, failure), -EPROTO);
    return NULL;
}

/* The one that is refused lets the other end. */
static void *read_or_write(void *argument) {
    pair_t *pair = argument;
    char byte;
    ssize_t got = haft_tls_read(pair->server, &byte, 1);
    CHECK(got == 1 || got == -EBUSY);
    if (got == 1)
        return NULL;
    REFUSES(got, EBUSY,
            "haft_tls_read: another task reads the stream: let one task read, and pass the bytes "
            "on by a channel, or lock a mutex around it");
    CHECK_EQUAL(haft_tls_write_all(pair->client, "x", 1), 0);
    return NULL;
}
/* SIGPIPE would end the program here. */
static void *write_until_reset(void *argument) {
    static const char much[100000];
    pair_t *pair = argument;
    for (int i = 0; i < 2; i++) {
        int code;
        do
            code = haft_tls_write_all(pair->server, much, sizeof much);
        while (code == 0);
        CHECK(code == -EPIPE || code == -ECONNRESET);
    }
    return NULL;
}
static void *read_little_and_reset(void *argument) {
    pair_t *pair = argument;
    char piece[100];
    CHECK(haft_tls_read(pair->client, piece, sizeof piece) > 0);
    haft_tls_close(pair->client);
    pair->client = NULL;
    return NULL;
}
BODY(a_reset_sends_no_signal) {
    for (int i = 0; i < 5; i++) {
        pair_t pair = {.serve = write_until_reset, .ask = read_little_and_reset};
        run_pair(&pair);
        close_pair(&pair);
    }
    return NULL;
}

BODY(of_two_readers_one_is_refused) {
    pair_t pair = {.servers = NULL};
    run_pair(&pair);
    haft_io_call_t calls[] = {{read_or_write, &pair, NULL}, {read_or_write, &pair, NULL}};
    CHECK_EQUAL(haft_io_all(calls, 2), 0);
    close_pair(&pair);
    return NULL;
}

/* ---- Resuming ---- */

BODY(resumes) {
    static const struct {
        bool is_old, is_other, resumes;
    } cases[] = {{false, false, true}, {true, false, true}, {false, true, false}};
    for (int i = 0; i < 3; i++) {
        haft_tls_context_t *context = server_with(&server),
                           *asking = client_that_trusts(&authority);
        int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
        for (int times = 0; times < 3; times++) {
            pair_t pair = {.serve = say_goodbye, .ask = read_end};
            int connection = haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
            pair.client =
                haft_tls_new(asking, connection,
                             times == 2 && cases[i].is_other ? "x.example.org" : "localhost");
            pair.server = haft_tls_new(context, haft_io_accept(listener), NULL);
            if (cases[i].is_old)
                SSL_set_max_proto_version(haft_tls_ssl(pair.client), TLS1_2_VERSION);
            join_pair(&pair);
            CHECK_EQUAL(pair.client_code, 0);
            bool expected = times == 1 || (times == 2 && cases[i].resumes);
            CHECK_EQUAL(haft_tls_resumed(pair.client), expected);
            CHECK_EQUAL(haft_tls_resumed(pair.server), expected);
            CHECK(strcmp(haft_tls_server_name(pair.server),
                         times == 2 && cases[i].is_other ? "x.example.org" : "localhost") == 0);
            CHECK(strcmp(haft_tls_peer(pair.client), "CN=server") == 0);
            close_pair(&pair);
        }
        haft_io_close(listener);
        haft_tls_context_free(context);
        haft_tls_context_free(asking);
    }
    return NULL;
}

/* ---- Deadlines ---- */

static void *serve_slowly(void *argument) {
    pair_t *pair = argument;
    haft_io_sleep(3 * HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_tls_handshake(pair->server), 0);
    for (int i = 0; i < 3; i++) {
        haft_io_sleep(3 * HAFT_IO_MILLISECOND);
        CHECK_EQUAL(haft_tls_write_all(pair->server, "late", 4), 0);
    }
    CHECK_EQUAL(haft_tls_shutdown(pair->server), 0);
    return NULL;
}
static void *ask_impatiently(void *argument) {
    pair_t *pair = argument;
    char text[12];
    int patience = 0;
    size_t at = 0;
    for (ssize_t got = 1; got != 0;) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
        haft_io_deadline_set(&deadline, haft_io_now() + HAFT_IO_MILLISECOND);
        got = haft_tls_read(pair->client, text + at, sizeof text - at + (at == sizeof text));
        CHECK(got >= 0 || got == -ETIMEDOUT);
        if (got < 0)
            patience++;
        else
            at += (size_t)got;
        if (got < 0 && got != -ETIMEDOUT)
            break;
    }
    CHECK(patience != 0 || haft_io_seed() == 0); /* time is what it seems in simulations only */
    CHECK_EQUAL(at, sizeof text);
    CHECK(memcmp(text, "latelatelate", sizeof text) == 0);
    return NULL;
}
BODY(goes_on_after_a_deadline) {
    pair_t pair = {.servers = NULL};
    open_pair(&pair);
    haft_io_call_t calls[] = {{serve_slowly, &pair, NULL}, {ask_impatiently, &pair, NULL}};
    CHECK_EQUAL(haft_io_all(calls, 2), 0);
    close_pair(&pair);
    return NULL;
}

/* Until it does not wait any more. */
static ssize_t repeat_write(haft_tls_t *stream, const char *bytes, size_t size) {
    for (;;) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
        haft_io_deadline_set(&deadline, haft_io_now() + HAFT_IO_MILLISECOND);
        ssize_t done =
            size != 0 ? haft_tls_write(stream, bytes, size) : haft_tls_write_all(stream, NULL, 0);
        if (done != -ETIMEDOUT)
            return done;
    }
}
enum { NUMBERS = 1000000 };
static void *write_by_records(void *argument) {
    pair_t *pair = argument;
    char *numbers = malloc(NUMBERS);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (char)(i % 251);
    for (size_t at = 0; at < NUMBERS;) {
        ssize_t done = repeat_write(pair->server, numbers + at, NUMBERS - at);
        CHECK(done > 0 && done <= 16384);
        at += done > 0 ? (size_t)done : NUMBERS;
    }
    CHECK_EQUAL(repeat_write(pair->server, NULL, 0), 0);
    CHECK_EQUAL(haft_tls_shutdown(pair->server), 0);
    free(numbers);
    return NULL;
}
static void *read_numbers_slowly(void *argument) {
    pair_t *pair = argument;
    char block[100000];
    ssize_t got, at = 0;
    while ((got = haft_tls_read(pair->client, block, sizeof block)) > 0) {
        for (ssize_t i = 0; i < got; i++)
            CHECK(block[i] == (char)((at + i) % 251));
        if (at / 100000 != (at + got) / 100000)
            haft_io_sleep(3 * HAFT_IO_MILLISECOND);
        at += got;
    }
    CHECK_EQUAL(at, NUMBERS);
    return NULL;
}
BODY(a_record_is_written_again_after_a_deadline) {
    pair_t pair = {.serve = write_by_records, .ask = read_numbers_slowly};
    run_pair(&pair);
    close_pair(&pair);
    return NULL;
}

/* A write whose deadline passes while the peer does not read leaves whole records. */
static void *write_against_a_wall(void *argument) {
    pair_t *pair = argument;
    char block[50000];
    memset(block, 'w', sizeof block);
    for (int refused = 0; refused < 3;) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
        haft_io_deadline_set(&deadline, haft_io_now() + HAFT_IO_MILLISECOND);
        int code = haft_tls_write_all(pair->server, block, sizeof block);
        CHECK(code == 0 || code == -ETIMEDOUT);
        refused += code != 0;
    }
    haft_io_event_set(&pair->is_refused);
    return NULL;
}
static void *read_all_of_it(void *argument) {
    pair_t *pair = argument;
    char block[5000];
    ssize_t got;
    haft_io_event_wait(&pair->is_refused);
    while ((got = haft_tls_read(pair->client, block, sizeof block)) > 0)
        for (ssize_t i = 0; i < got; i++)
            CHECK(block[i] == 'w');
    CHECK_EQUAL(got, 0);
    return NULL;
}
static void *write_and_end(void *argument) {
    pair_t *pair = argument;
    write_against_a_wall(pair);
    CHECK_EQUAL(haft_tls_shutdown(pair->server), 0);
    return NULL;
}
BODY(a_write_that_is_too_late_leaves_whole_records) {
    pair_t pair = {.serve = write_and_end, .ask = read_all_of_it};
    run_pair(&pair);
    close_pair(&pair);
    return NULL;
}

/* ---- A slow peer ---- */

typedef struct relay {
    int from, to;
} relay_t;
static void *relay_bytes(void *argument) {
    const relay_t *relay = argument;
    char byte;
    while (haft_io_read(relay->from, &byte, 1) == 1 && haft_io_write(relay->to, &byte, 1) == 1)
        continue;
    haft_io_shutdown(relay->to, SHUT_WR);
    return NULL;
}
static void *converse(void *argument) {
    pair_t *pair = argument;
    pair->serve = echo_until_error;
    pair->ask = say_little;
    join_pair(pair);
    close_pair(pair);
    return NULL;
}
BODY(takes_byte_after_byte) {
    int near[2], far[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, near), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, far), 0);
    pair_t pair = {.server = haft_tls_new(servers, near[0], NULL),
                   .client = haft_tls_new(clients, far[0], "localhost")};
    relay_t there = {near[1], far[1]}, back = {far[1], near[1]};
    haft_io_call_t calls[] = {
        {relay_bytes, &there, NULL}, {relay_bytes, &back, NULL}, {converse, &pair, NULL}};
    CHECK_EQUAL(haft_io_all(calls, 3), 0);
    CHECK_EQUAL(pair.client_code, 0);
    haft_io_close(near[1]);
    haft_io_close(far[1]);
    return NULL;
}

/* ---- Many ---- */

static haft_io_event_t all_are_there;
static int are_there, listener, connections;

/* All are open at once. */
static void wait_for_all(void) {
    if (__atomic_add_fetch(&are_there, 1, __ATOMIC_RELAXED) == 2 * connections)
        haft_io_event_set(&all_are_there);
    haft_io_event_wait(&all_are_there);
}
static void *serve_one(void *argument) {
    HAFT_TLS_SCOPED haft_tls_t *stream = haft_tls_new(servers, (int)(intptr_t)argument, NULL);
    char text[5];
    CHECK_EQUAL(haft_tls_handshake(stream), 0);
    wait_for_all();
    CHECK_EQUAL(haft_tls_read(stream, text, sizeof text), 5);
    CHECK_EQUAL(haft_tls_write_all(stream, text, sizeof text), 0);
    return NULL;
}
static void *ask_one(__attribute__((unused)) void *argument) {
    HAFT_TLS_SCOPED haft_tls_t *stream = NULL;
    char text[5];
    CHECK_EQUAL(haft_tls_connect(clients, "127.0.0.1", (uint16_t)haft_io_port(listener), &stream),
                0);
    wait_for_all();
    CHECK_EQUAL(haft_tls_write_all(stream, "hello", 5), 0);
    CHECK_EQUAL(haft_tls_read(stream, text, 5), 5);
    return NULL;
}
static void *accept_many(void *argument) {
    for (int i = 0; i < connections; i++)
        haft_io_spawn_with(argument, serve_one, check_number(haft_io_accept(listener)));
    return NULL;
}
static void *connect_many(void *argument) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    are_there = 0;
    haft_io_event_clear(&all_are_there);
    haft_io_spawn(accept_many, argument);
    for (int i = 0; i < connections; i++)
        haft_io_spawn_with(argument, ask_one, NULL);
    return NULL;
}
/* On stacks of the usual size, and on the smallest that the program itself can have. */
static void *many_at_once(__attribute__((unused)) void *argument) {
    static bool usual = true; /* the first time */
    haft_io_task_options_t stacks = {.stack_size = usual ? 0 : check_bare() ? 16384 : 65536};
    connections = check_times(usual ? 1000 : 50);
    usual = false;
    CHECK_EQUAL(haft_io_scope(connect_many, &stacks, NULL), 0);
    haft_io_close(listener);
    return NULL;
}

/* ---- Cancels ---- */

static int steps;
static void *cancel_after_steps(__attribute__((unused)) void *argument) {
    for (int i = 0; i < steps; i++)
        haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static bool has_ended_by_itself;
static void *converse_to_the_end(void *argument) {
    haft_io_spawn(cancel_after_steps, NULL);
    HAFT_TLS_SCOPED haft_tls_t *server_end = NULL;
    (void)argument;
    HAFT_TLS_SCOPED haft_tls_t *client_end = NULL;
    pair_t pair = {.serve = echo_until_error, .ask = say_little};
    open_pair(&pair);
    server_end = pair.server;
    client_end = pair.client;
    join_pair(&pair);
    has_ended_by_itself = true;
    return NULL;
}
static void cancel_everywhere(int most, int stride) {
    has_ended_by_itself = false;
    for (steps = 0; !has_ended_by_itself && steps < most; steps += stride) {
        int code = haft_io_scope(converse_to_the_end, NULL, NULL);
        CHECK(code == 0 || code == -ECANCELED);
    }
}
/* On two threads the steps are not those of the others, so fewer do. */
static void *is_cancelled_at_every_wait(void *argument) {
    const haft_io_run_options_t *options = argument;
    int before = check_descriptors();
    cancel_everywhere(5000, options->threads == 1 ? 1 : 5);
    CHECK(has_ended_by_itself);
    CHECK_EQUAL(check_descriptors(), before);
    return NULL;
}
BODY(is_cancelled_in_a_simulation) {
    cancel_everywhere(2000, 1);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}
/* A failure is reported, and a stream reported as whole is whole. */
static void *converse_with_faults(__attribute__((unused)) void *argument) {
    int ends[2];
    if (haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return NULL;
    pair_t pair = {.server = haft_tls_new(servers, ends[0], NULL),
                   .client = haft_tls_new(clients, ends[1], "localhost"),
                   .serve = echo_until_error,
                   .ask = say_little};
    join_pair(&pair);
    close_pair(&pair);
    return NULL;
}
BODY(faults) {
    haft_io_scope(converse_with_faults, NULL, NULL);
    CHECK_EQUAL(haft_io_simulated_count(), 0);
    return NULL;
}

/* ---- A seed repeats ---- */

/* The beginning of what each end sends: its hello, with its random bytes and its key. */
enum { HELLO = 120 };
typedef struct hello {
    int from, to;
    char bytes[HELLO];
    size_t size;
} hello_t;
static void *pass_on(void *argument) {
    hello_t *hello = argument;
    char buffer[1000];
    ssize_t got;
    while ((got = haft_io_read(hello->from, buffer, sizeof buffer)) > 0) {
        size_t room = HELLO - hello->size, kept = (size_t)got < room ? (size_t)got : room;
        memcpy(hello->bytes + hello->size, buffer, kept);
        hello->size += kept;
        if (haft_io_write_all(hello->to, buffer, (size_t)got) != 0)
            break;
    }
    haft_io_shutdown(hello->to, SHUT_WR);
    return NULL;
}
static void *greet(void *pair) {
    join_pair(pair);
    close_pair(pair);
    return NULL;
}
static void *keep_hellos(void *argument) {
    hello_t *hellos = argument;
    int client_end[2], server_end[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, client_end), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, server_end), 0);
    hellos[0] = (hello_t){.from = client_end[1], .to = server_end[1]};
    hellos[1] = (hello_t){.from = server_end[1], .to = client_end[1]};
    pair_t pair = {.server = haft_tls_new(servers, server_end[0], NULL),
                   .client = haft_tls_new(clients, client_end[0], "localhost")};
    haft_io_call_t calls[] = {
        {pass_on, &hellos[0], NULL}, {pass_on, &hellos[1], NULL}, {greet, &pair, NULL}};
    CHECK_EQUAL(haft_io_all(calls, 3), 0);
    CHECK(pair.client_code == 0 && pair.server_code == 0);
    CHECK(hellos[0].size == HELLO && hellos[1].size == HELLO);
    CHECK_EQUAL(haft_io_close(client_end[1]) + haft_io_close(server_end[1]), 0);
    return NULL;
}
static void a_seed_repeats_a_handshake(void) {
    static hello_t hellos[3][2];
    for (uint64_t i = 0; i < 3; i++) {
        haft_io_simulation_options_t how = {.seed = 1 + i / 2, .network = true};
        CHECK_EQUAL(haft_io_simulate_with(&how, keep_hellos, hellos[i]), 0);
    }
    for (int end = 0; end < 2; end++) {
        CHECK(memcmp(hellos[0][end].bytes, hellos[1][end].bytes, HELLO) == 0);
        CHECK(memcmp(hellos[1][end].bytes, hellos[2][end].bytes, HELLO) != 0);
    }
    unsigned char one[16], other[16]; /* elsewhere chance is OpenSSL's */
    CHECK(RAND_bytes(one, 16) == 1 && RAND_bytes(other, 16) == 1 && memcmp(one, other, 16) != 0);
}

/* ---- All ---- */

static const struct {
    void *(*body)(void *);
    const char *name;
} bodies[] = {
#define ENTRY(name)                                                                                \
    { name, #name }
    ENTRY(says_which_certificate_and_why),
    ENTRY(verifies_hosts_and_addresses),
    ENTRY(agrees_on_strong_ciphers_alone),
    ENTRY(trusts_nobody_unless_told),
    ENTRY(asks_for_clients_certificates),
    ENTRY(agrees_on_a_protocol),
    ENTRY(chooses_the_certificate_by_name),
    ENTRY(reloads_certificates),
    ENTRY(reads_and_writes_at_once),
    ENTRY(updates_keys_while_both_write),
    ENTRY(answers),
    ENTRY(an_end_without_notice_is_an_error),
    ENTRY(a_peer_that_vanishes_or_speaks_otherwise),
    ENTRY(a_reset_sends_no_signal),
    ENTRY(of_two_readers_one_is_refused),
    ENTRY(goes_on_after_a_deadline),
    ENTRY(a_record_is_written_again_after_a_deadline),
    ENTRY(a_write_that_is_too_late_leaves_whole_records),
    ENTRY(takes_byte_after_byte),
};

static void begin_test(const char *name) {
    check_running = name;
    check_tests++;
}

static void in_simulations(void) {
    haft_io_simulation_options_t how = {.network = true};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (how.switches_one_in = 0; how.switches_one_in < 4; how.switches_one_in += 3) {
            begin_test(bodies[i].name);
            check_seeds(bodies[i].body, 2, how);
        }
    begin_test("is_cancelled_in_a_simulation");
    how.switches_one_in = 2;
    check_seeds(is_cancelled_in_a_simulation, check_times(4), how);
    begin_test("faults");
    how.faults_one_in = 20;
    check_seeds(faults, check_times(100), how);
}

static void on_a_back_end(const haft_io_run_options_t *options) {
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        begin_test(bodies[i].name);
        CHECK_EQUAL(haft_io_run_with(options, bodies[i].body, NULL), 0);
    }
    begin_test("resumes");
    CHECK_EQUAL(haft_io_run_with(options, resumes, NULL), 0);
    begin_test("many_at_once");
    CHECK_EQUAL(haft_io_run_with(options, many_at_once, NULL), 0);
    begin_test("is_cancelled_at_every_wait");
    CHECK_EQUAL(haft_io_run_with(options, is_cancelled_at_every_wait, (void *)options), 0);
}

static void make_certificates(void) {
    CHECK(mkdtemp(folder) != NULL);
    authority = issue((issue_t){.name = "authority"});
    other_authority = issue((issue_t){.name = "other authority"});
    server = issue((issue_t){.name = "server",
                             .hosts = "DNS:localhost,DNS:*.example.org,IP:127.0.0.1",
                             .issuer = &authority});
    other_server = issue(
        (issue_t){.name = "other server", .hosts = "DNS:localhost", .issuer = &other_authority});
    expired = issue(
        (issue_t){.name = "expired", .hosts = "DNS:localhost", .issuer = &authority, .days = -1});
    early = issue(
        (issue_t){.name = "early", .hosts = "DNS:localhost", .issuer = &authority, .begins = 1});
    alone = issue((issue_t){.name = "alone", .hosts = "DNS:localhost"});
    localhost = issue((issue_t){.name = "localhost", .hosts = "", .issuer = &authority});
    client = issue((issue_t){.name = "client", .hosts = "DNS:client", .issuer = &authority});
}

static void forget_certificates(void) {
    issued_t *all[] = {&authority, &other_authority, &server, &other_server, &expired,
                       &early,     &alone,           &client, &localhost};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        forget(all[i]);
    rmdir(folder);
}

int main(void) {
    haft_set_error_handler(note_refusal);
    signal(SIGPIPE, SIG_DFL);
    make_certificates();
    servers = server_with(&server);
    clients = client_that_trusts(&authority);
    says_which_file_and_why(NULL); /* also without tasks */
    in_simulations();
    RUN(a_seed_repeats_a_handshake);
    check_everywhere(on_a_back_end);
    haft_tls_context_free(servers);
    haft_tls_context_free(clients);
    forget_certificates();
    return check_end();
}

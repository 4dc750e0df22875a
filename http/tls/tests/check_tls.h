/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of libhaft-tls: certificates, made in a folder of the test's own. */
#ifndef CHECK_TLS_H
#define CHECK_TLS_H

#include "../../../io/tests/check_io.h"

#include <haft/tls.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <stdio.h>

typedef struct issued {
    X509 *certificate;
    EVP_PKEY *key;
    char chain_file[100], key_file[100];
} issued_t;

typedef struct request_for {
    const char *name;       /* of the files, and the common name */
    const char *hosts;      /* "DNS:a,IP:127.0.0.1"; "": none; NULL: an authority */
    const issued_t *issuer; /* NULL: itself */
    long days;              /* from now until it expires; 0: 10. Negative: it has expired */
    long begins;            /* in days */
} issue_t;

static char folder[] = "/tmp/haft-tls-XXXXXX";

static inline void add_extension(X509 *certificate, int kind, const char *value) {
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
    CHECK(extension != NULL && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static inline void write_files(issued_t *made, const issued_t *issuer, const char *name) {
    snprintf(made->chain_file, sizeof made->chain_file, "%s/%s.pem", folder, name);
    snprintf(made->key_file, sizeof made->key_file, "%s/%s.key", folder, name);
    FILE *chain = fopen(made->chain_file, "we"), *key = fopen(made->key_file, "we");
    CHECK(PEM_write_X509(chain, made->certificate) == 1);
    if (issuer != NULL)
        CHECK(PEM_write_X509(chain, issuer->certificate) == 1);
    CHECK(PEM_write_PrivateKey(key, made->key, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(chain);
    fclose(key);
}

static inline issued_t issue(issue_t what) {
    static long serial = 1;
    const long day = 24L * 60 * 60;
    issued_t made = {X509_new(), EVP_EC_gen("P-256"), "", ""};
    X509 *certificate = made.certificate;
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)what.name, -1,
                               -1, 0);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate),
                    (what.begins != 0 ? what.begins : -100) * day);
    X509_gmtime_adj(X509_getm_notAfter(certificate), (what.days != 0 ? what.days : 10) * day);
    X509_set_pubkey(certificate, made.key);
    X509_set_issuer_name(certificate, what.issuer != NULL
                                          ? X509_get_subject_name(what.issuer->certificate)
                                          : subject);
    add_extension(certificate, NID_basic_constraints,
                  what.hosts == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    if (what.hosts != NULL && *what.hosts != '\0')
        add_extension(certificate, NID_subject_alt_name, what.hosts);
    CHECK(X509_sign(certificate, what.issuer != NULL ? what.issuer->key : made.key, EVP_sha256()) !=
          0);
    write_files(&made, what.issuer, what.name);
    return made;
}

static inline void forget(issued_t *made) {
    unlink(made->chain_file);
    unlink(made->key_file);
    X509_free(made->certificate);
    EVP_PKEY_free(made->key);
}

#endif

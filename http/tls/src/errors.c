/* SPDX-License-Identifier: MIT */
/* Codes, and what they mean in words. */
#include "internal.h"

enum { ALERTS = 256, ALERT_REASONS = 1000 /* SSL_AD_REASON_OFFSET */ };

static bool is_of_alert(int code) {
    return code <= HAFT_TLS_ERROR_OF_ALERT && code > HAFT_TLS_ERROR_OF_ALERT - ALERTS;
}

static bool is_of_certificate(int code) {
    return code <= HAFT_TLS_ERROR_OF_CERTIFICATE && code > HAFT_TLS_ERROR_OF_ALERT;
}

/* The words for an alert. OpenSSL has none for those that are new in TLS 1.3 (RFC 8446, section
   6.2). */
static const char *text_of_alert(int alert) {
    return alert == SSL_AD_CERTIFICATE_REQUIRED ? "certificate required"
           : alert == SSL_AD_MISSING_EXTENSION  ? "missing extension"
                                                : SSL_alert_desc_string_long(alert);
}

const char *haft_tls_error_text(int code) {
    if (is_of_certificate(code))
        return X509_verify_cert_error_string(HAFT_TLS_ERROR_OF_CERTIFICATE - code);
    if (is_of_alert(code))
        return text_of_alert(HAFT_TLS_ERROR_OF_ALERT - code);
    return haft_io_error_text(code);
}

int hafti_tls_openssl_error(char text[HAFTI_TLS_TEXT]) {
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_REASON(error);
    const char *said = ERR_reason_error_string(error);
    if (reason == ERR_R_MALLOC_FAILURE || error == 0) {
        snprintf(text, HAFTI_TLS_TEXT, "no memory");
        return -ENOMEM;
    }
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason >= ALERT_REASONS &&
        reason < ALERT_REASONS + ALERTS) {
        int alert = reason - ALERT_REASONS;
        snprintf(text, HAFTI_TLS_TEXT, "the peer has refused to go on: %s (alert %d)",
                 text_of_alert(alert), alert);
        return HAFT_TLS_ERROR_OF_ALERT - alert;
    }
    snprintf(text, HAFTI_TLS_TEXT, "%s", said != NULL ? said : "Protocol error");
    return -EPROTO;
}

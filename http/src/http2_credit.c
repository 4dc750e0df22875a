/* SPDX-License-Identifier: MIT */
/*
 * Limits on what a peer of HTTP/2 may cost: frames that are small to send may be much to handle,
 * and the protocol has no limit for most of them. So each frame takes a credit. Bytes of bodies, in
 * either direction, and answers give credits back, and so does time. A connection without credit is
 * closed with ENHANCE_YOUR_CALM.
 */
#include "http2_frames.h"

enum { MOST = 1000, A_SECOND = 100 };

void hafti_http2_credit_begin(hafti_http2_credit_t *credit) {
    *credit = (hafti_http2_credit_t){.left = MOST, .reckoned_at = haft_io_now()};
}

void hafti_http2_earn(hafti_http2_t *connection, int64_t credit) {
    connection->credit.left += credit;
    if (connection->credit.left > MOST)
        connection->credit.left = MOST;
}

static bool has_credit(hafti_http2_t *connection) {
    hafti_http2_credit_t *credit = &connection->credit;
    if (--credit->left >= 0)
        return true;
    int64_t now = haft_io_now();
    hafti_http2_earn(connection, (now - credit->reckoned_at) / (HAFT_IO_SECOND / A_SECOND));
    credit->reckoned_at = now;
    return credit->left >= 0;
}

bool hafti_http2_pay(hafti_http2_t *connection) {
    if (!has_credit(connection))
        connection->complaint = NGHTTP2_ENHANCE_YOUR_CALM;
    return connection->complaint == NGHTTP2_NO_ERROR;
}

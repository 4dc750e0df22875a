/* SPDX-License-Identifier: MIT */
/* Computes how long a peer may still be waited for: stream.h has the rule. */
#include "stream.h"

/* The nanoseconds that so many bytes pay for. */
static int64_t paid_by(uint64_t size, uint64_t least_rate) {
    uint64_t seconds = size / least_rate, rest = size % least_rate;
    const uint64_t most = HAFT_IO_FOREVER / HAFT_IO_SECOND - 1;
    double part = (double)rest / (double)least_rate * (double)HAFT_IO_SECOND;
    return seconds < most ? (int64_t)seconds * HAFT_IO_SECOND + (int64_t)part : HAFT_IO_FOREVER;
}

static void pay(hafti_http_patience_t *patience, int64_t time) {
    patience->owed = patience->owed > time ? patience->owed - time : 0;
}

void hafti_http_patience_begin(hafti_http_patience_t *patience, int64_t now) {
    pay(patience, now - patience->looked_at);
    patience->looked_at = now;
}

int64_t hafti_http_patience_left(hafti_http_patience_t *patience, int64_t most, uint64_t least_rate,
                                 uint64_t moved, int64_t now) {
    patience->owed += now - patience->looked_at;
    patience->looked_at = now;
    if (moved > patience->moved)
        pay(patience, paid_by(moved - patience->moved, least_rate));
    patience->moved = moved;
    return patience->owed < most ? most - patience->owed : 0;
}

int64_t hafti_http_patience_look(int64_t most, int64_t now) {
    enum { LOOKS = 4 };
    return most != HAFT_IO_FOREVER ? hafti_http_deadline(now, most / LOOKS) : HAFT_IO_FOREVER;
}

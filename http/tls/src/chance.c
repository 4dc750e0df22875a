/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL's random bytes in a simulation. The seed of its own generator includes the time, the
 * process and the processor's counter, so a handshake would not be repeated. The first stream of a
 * simulation gives the process another generator: it asks the simulation's seed, or OpenSSL's own
 * generator wherever no simulation runs.
 */
/* (RAND_METHOD is deprecated; a provider would take ten times as much code.) */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "internal.h"

#include <openssl/rand.h>

static int draw(unsigned char *bytes, int size) {
    return haft_io_seed() != 0 ? haft_io_random(bytes, (size_t)size) == 0
                               : RAND_OpenSSL()->bytes(bytes, size);
}

static int is_ready(void) {
    return haft_io_seed() != 0 || RAND_OpenSSL()->status();
}

static void choose(void) {
    static const RAND_METHOD by_seed = {.bytes = draw, .pseudorand = draw, .status = is_ready};
    RAND_set_rand_method(&by_seed);
}

void hafti_tls_draw_by_seed(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (haft_io_seed() != 0)
        pthread_once(&once, choose);
}

/* SPDX-License-Identifier: MIT */
/* A call that reads or writes, as one thing (transfer.c). */
#ifndef HAFTI_POSIX_TRANSFER_H
#define HAFTI_POSIX_TRANSFER_H

#include "internal.h"

typedef struct hafti_posix_transfer {
    int descriptor;
    bool outward;
    bool by_socket;         /* by recv and send instead of read and write */
    int flags;              /* of recv and send */
    struct msghdr *message; /* of by_socket: address and control data, or NULL */
    size_t control_size;    /* their sizes as given, for a receive */
    const struct iovec *parts;
    size_t count;
    int64_t offset; /* of pread and pwrite; otherwise -1 */
} hafti_posix_transfer_t;

static inline size_t hafti_posix_size_of(const struct iovec *parts, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    return size;
}

/* The result of the whole call, which sets errno. */
ssize_t hafti_posix_transfer(hafti_posix_transfer_t *transfer);
/* The rest of a call, from its first try on, which has given `done`. `before` is errno as the
   caller left it. */
ssize_t hafti_posix_finish_transfer(hafti_posix_transfer_t *transfer, int before, ssize_t done);

/* Descriptors whose writes block the thread (haft_posix_block_writes), a bit for each. */
extern uint32_t hafti_posix_blocking_writes;
static inline bool hafti_posix_write_blocks(int descriptor) {
    return descriptor >= 0 && descriptor < 32 &&
           (__atomic_load_n(&hafti_posix_blocking_writes, __ATOMIC_RELAXED) >> descriptor & 1) != 0;
}

#endif

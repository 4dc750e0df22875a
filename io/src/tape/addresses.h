/* SPDX-License-Identifier: MIT */
/*
 * The system by way of a tape. The addresses of a name, as an answer of a tape, have for each its
 * flags, family, type, protocol and size (4 bytes each), and the address; then the canonical name,
 * if there is one.
 */
#ifndef HAFTI_IO_ADDRESSES_H
#define HAFTI_IO_ADDRESSES_H

#include "../system.h"
#include "replaying.h"

#include <netdb.h>

extern const hafti_io_system_t hafti_io_taped;

/* Keeps the addresses, or why there are none; returns the code. */
int hafti_io_tape_addresses(hafti_io_taped_call_t *call, int code,
                            const struct addrinfo *addresses);
/* Gives them back, in memory that freeaddrinfo(3) takes. */
int hafti_io_taped_addresses(const hafti_io_entry_t *entry, struct addrinfo **result);

#endif

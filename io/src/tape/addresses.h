/* SPDX-License-Identifier: MIT */
/*
 * The calls of the system in a run with a tape. The addresses of a name, as an answer on a tape:
 * for each its flags, family, type, protocol and size (4 bytes each), and the address; then the
 * canonical name, if there is one.
 */
#ifndef HAFTI_IO_ADDRESSES_H
#define HAFTI_IO_ADDRESSES_H

#include "replaying.h"

#include <netdb.h>

/* The table of a run with a tape. */
const haft_io_calls_t *hafti_io_taped_calls(void);

/* In a replay: returns a descriptor that the tape gives, or an error. */
int hafti_io_taped_descriptor(int descriptor);
/* Keeps the names in a directory, or the error; returns the count. */
int hafti_io_tape_names(hafti_io_taped_call_t *call, int count, struct dirent **entries);
int hafti_io_taped_names(const hafti_io_entry_t *entry, struct dirent ***entries);
/* Keeps the addresses, or why there are none; returns the code. */
int hafti_io_tape_addresses(hafti_io_taped_call_t *call, int code,
                            const struct addrinfo *addresses);
/* Makes them again from the tape, in memory that freeaddrinfo(3) takes. */
int hafti_io_taped_addresses(const hafti_io_entry_t *entry, struct addrinfo **result);

#endif

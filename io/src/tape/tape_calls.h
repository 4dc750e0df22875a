/* SPDX-License-Identifier: MIT */
/*
 * The tape, for libhaft-posix, which keeps there what the C library's functions answer. It is the
 * only caller, and belongs to the same version of libhaft-io.
 */
#ifndef HAFTI_IO_TAPE_CALLS_H
#define HAFTI_IO_TAPE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#pragma GCC visibility push(default)
/* A call that the caller is about to make is made only, on a thread without a tape and inside of
   libhaft-io; or made and kept; or answered. Tasks have a tape, and threads of the pool while they
   work for one. */
enum haft_io_tape_use { HAFT_IO_TAPE_NONE, HAFT_IO_TAPE_KEEPS, HAFT_IO_TAPE_ANSWERS };
enum haft_io_tape_use haft_io_tape_use(void);
void haft_io_tape_keep(const char *name, int descriptor, int64_t result, const struct iovec *parts,
                       size_t count);
/* The result; and the bytes of all parts, one after the other, until the next call. */
int64_t haft_io_tape_ask(const char *name, int descriptor, const unsigned char **bytes,
                         size_t *size);
/* In a replay: a descriptor that the tape has given, or that is closed. */
void haft_io_tape_opened(int descriptor);
void haft_io_tape_closed(int descriptor);
/* The function is called when a run with a tape begins. */
void haft_io_tape_set_beginning(void (*begins)(void));
#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: MIT */
/* The objects that tasks wait for beside the kernel. */
#ifndef HAFTI_IO_OBJECTS_H
#define HAFTI_IO_OBJECTS_H

#include "backends.h"

/* How a task waits for a mutex, for the dump: its cell is the first of this, and what it waits for
   is this very text. */
typedef struct {
    hafti_io_cell_t cell;
    const haft_io_mutex_t *mutex;
} hafti_io_mutex_wait_t;
extern const char hafti_io_a_mutex[];

/* A channel as one of several that are waited for (channel.c): its lock; under that, what can be
   done at once (-EAGAIN: nothing), after which `*other` is to be let go; a place to wait in.
   `value` is sent, or is where what comes goes. */
uint32_t *hafti_io_channel_lock(haft_io_channel_t *channel);
int hafti_io_channel_do_now(haft_io_channel_t *channel, bool sends, void *value,
                            hafti_io_place_t **other);
void hafti_io_channel_take_place(haft_io_channel_t *channel, bool sends, void *value,
                                 hafti_io_place_t *place);
extern const haft_shown_t hafti_io_shown_channels[];
/* A signalfd, or a negative error number (processes.c). */
int hafti_io_open_signals(const sigset_t *signals);

#endif

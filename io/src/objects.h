/* SPDX-License-Identifier: MIT */
/* The objects that tasks wait for beside the kernel. */
#ifndef HAFTI_IO_OBJECTS_H
#define HAFTI_IO_OBJECTS_H

#include "backends.h"

/* A wait for a mutex, as the dump recognises it: the task's cell is the first field, and its
   `waits_for` has the address of this text. */
typedef struct {
    hafti_io_cell_t cell;
    const haft_io_mutex_t *mutex;
} hafti_io_mutex_wait_t;
extern const char hafti_io_a_mutex[];

/* A channel as one of several that are waited for (channel.c): its lock; the operation under that
   lock, if it can be done at once (-EAGAIN: it cannot), after which the waiter at `*other` is to be
   woken; a place to wait in. `value` is sent, or receives. */
uint32_t *hafti_io_channel_lock(haft_io_channel_t *channel);
int hafti_io_channel_do_now(haft_io_channel_t *channel, bool sends, void *value,
                            hafti_io_place_t **other);
void hafti_io_channel_take_place(haft_io_channel_t *channel, bool sends, void *value,
                                 hafti_io_place_t *place);
extern const haft_shown_t hafti_io_shown_channels[];
/* Returns a signalfd, or a negative error number (processes.c). */
int hafti_io_open_signals(const sigset_t *signals);

#endif

/* SPDX-License-Identifier: MIT */
/* A call for a thread of the pool that is to wait for a moment only (haft_io_call_briefly).
   libhaft-posix includes this header, too. */
#ifndef HAFTI_IO_MOMENT_H
#define HAFTI_IO_MOMENT_H

#include "haft/io_binding.h"

typedef struct hafti_io_moment {
    void (*function)(void *);
    void *argument;
} hafti_io_moment_t;

static inline void hafti_io_call_moment(void *argument) {
    const hafti_io_moment_t *moment = (const hafti_io_moment_t *)argument;
    haft_io_call_briefly(moment->function, moment->argument);
}

#endif

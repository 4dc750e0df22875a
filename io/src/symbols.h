/* SPDX-License-Identifier: MIT */
/* Which function an address is in, also a static one: for backtraces. */
#ifndef HAFT_IO_SYMBOLS_H
#define HAFT_IO_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct haft_io_module {
    uintptr_t base;
    char path[256];    /* empty: the program's own */
    const char *bytes; /* of the file; NULL: it cannot be read */
    size_t size;
} haft_io_module_t;

/* The files that have been looked at. Zeroed at first. */
enum { HAFT_IO_MOST_MODULES = 8 };
typedef struct haft_io_modules {
    haft_io_module_t of[HAFT_IO_MOST_MODULES];
    size_t count;
} haft_io_modules_t;

typedef struct haft_io_frame {
    const char *function; /* as it is linked; NULL: it is not known */
    uintptr_t offset;     /* in the function, or in the file */
    const char *file;     /* without its folder */
    bool is_own;          /* of libhaft, libhaft-io, libhaft-posix */
} haft_io_frame_t;

/* Of a call that returns to the address. It is valid until the modules are closed. In a signal handler it is as safe as
   dladdr(3). */
haft_io_frame_t haft_io_frame_of(haft_io_modules_t *modules, const void *address);
void haft_io_close_modules(haft_io_modules_t *modules);

/* A line for each frame that is the program's, on standard error; in a signal handler, too. */
void haft_io_print_frames(void *const *addresses, int count);

#endif

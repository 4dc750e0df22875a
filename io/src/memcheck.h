/* SPDX-License-Identifier: MIT */
/* Reports to Valgrind uses of memory that it does not see: by the kernel on its own, and of lent
   blocks. Valgrind's macros take some ten instructions each, whether it is there or not, and room
   on the stack; these take one. */
#ifndef HAFTI_IO_MEMCHECK_H
#define HAFTI_IO_MEMCHECK_H

#include "base.h"

#if __has_include(<valgrind/memcheck.h>)
#    include <valgrind/memcheck.h>
/* lending.c */
extern bool hafti_io_in_valgrind;
HAFTI_IO_COLD void hafti_io_tell_NOACCESS(const void *address, size_t size);
HAFTI_IO_COLD void hafti_io_tell_UNDEFINED(const void *address, size_t size);
HAFTI_IO_COLD void hafti_io_tell_DEFINED(const void *address, size_t size);
#    define HAFTI_IO_TELL_VALGRIND(what, address, size)                                            \
        do {                                                                                       \
            if (HAFTI_IO_UNLIKELY(hafti_io_in_valgrind))                                           \
                hafti_io_tell_##what(address, size);                                               \
        } while (0)
#else
#    define HAFTI_IO_TELL_VALGRIND(what, address, size) ((void)(address), (void)(size))
#endif

#endif

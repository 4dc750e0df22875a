/* SPDX-License-Identifier: MIT */
/* What Valgrind is told of memory that it does not see used: what the kernel writes by itself, what is lent. Its own macros
   take some ten instructions each, whether it is there or not, and room on the stack; these, one. */
#ifndef HAFT_IO_MEMCHECK_H
#define HAFT_IO_MEMCHECK_H

#include "internal.h"

#if __has_include(<valgrind/memcheck.h>)
#    include <valgrind/memcheck.h>
/* lending.c */
extern bool haft_io_in_valgrind;
HAFT_IO_COLD void haft_io_tell_NOACCESS(const void *address, size_t size);
HAFT_IO_COLD void haft_io_tell_UNDEFINED(const void *address, size_t size);
HAFT_IO_COLD void haft_io_tell_DEFINED(const void *address, size_t size);
#    define HAFT_IO_TELL_VALGRIND(what, address, size)                                             \
        do {                                                                                       \
            if (HAFT_IO_UNLIKELY(haft_io_in_valgrind))                                             \
                haft_io_tell_##what(address, size);                                                \
        } while (0)
#else
#    define HAFT_IO_TELL_VALGRIND(what, address, size) ((void)(address), (void)(size))
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* The numbers of tasks with thread-locals of their own, where the C library has a thread's number:
   greater than any number that the system gives a thread, and within the bits of a futex that have
   its owner. libhaft-posix includes this file, too. */
#ifndef HAFTI_IO_OWN_IDS_H
#define HAFTI_IO_OWN_IDS_H

enum { HAFTI_IO_FIRST_OWN_ID = 0x10000000, HAFTI_IO_LAST_OWN_ID = 0x3fffffff };

#endif

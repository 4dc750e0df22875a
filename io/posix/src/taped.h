/* SPDX-License-Identifier: MIT */
/* An answer of the system on a tape (taped_answers.c): the result, and the call's output. */
#ifndef HAFTI_POSIX_TAPED_H
#define HAFTI_POSIX_TAPED_H

#include "internal.h"

/* An out: memory that a function writes for its caller. */
enum hafti_posix_how {
    HAFTI_POSIX_NOTHING,
    HAFTI_POSIX_AS_MANY, /* as many bytes as the result, at most `size` */
    HAFTI_POSIX_WHOLE,   /* `size` bytes, if the call has succeeded */
    HAFTI_POSIX_SIZED,   /* `*of`, and so many bytes, if there is room */
    HAFTI_POSIX_PARTS,   /* as many bytes as the result, in an array of `size` parts */
    HAFTI_POSIX_MESSAGE  /* of recvmsg */
};
typedef struct hafti_posix_out {
    enum hafti_posix_how how;
    void *at;
    size_t size;
    socklen_t *of;
    socklen_t room; /* `*of` before the call; of a HAFTI_POSIX_MESSAGE: for the name */
} hafti_posix_out_t;
enum { HAFTI_POSIX_MOST_OUTS = 2 };

/* Keeps the result and the outs, and returns the result; `error`: if that is below 0, errno is kept
   in its place. */
int64_t hafti_posix_tape_keep(const char *name, int descriptor, int64_t result, bool error,
                              const hafti_posix_out_t *outs, size_t count);
/* Stores the outs from the tape, and returns the result; `error`: if that is below 0, it becomes
   errno, and -1 the result. */
int64_t hafti_posix_tape_answer(const char *name, int descriptor, bool error,
                                const hafti_posix_out_t *outs, size_t count);
/* Writes again to standard output and standard error, for people to read; returns `done`. */
int64_t hafti_posix_tape_show(int descriptor, int64_t done, const struct iovec *parts,
                              size_t count);

#endif
